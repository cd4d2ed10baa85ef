// @ts-check
import {el} from "./dom.js";

/**
 * A place of a picture that does something: where it is, what it is called, what it does.
 * @typedef {object} Spot
 * @property {number} x
 * @property {number} y
 * @property {number} w
 * @property {number} h
 * @property {string} label
 * @property {() => void} act
 * @property {boolean} [pressed] whether it is the one that is chosen, where one may be
 */

/** Where an arrow key leads. */
export const WAYS_OF = /** @type {Record<string, [number, number]>} */ ({ArrowLeft: [-1, 0],
  ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]});

/** Places over a picture: buttons, one of which Tab reaches; the arrow keys lead on from it. */
export class Spots {
  /** @param {HTMLElement} picture its root @param {string} label of the whole */
  constructor(picture, label) {
    this.list = el("div", {class: "spots", role: "group", "aria-label": label,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.moved(event)});
    this.root = el("div", {class: "spotted"}, picture, this.list);
    /** @type {Spot[]} */
    this.spots = [];
  }

  /** @param {Spot[]} spots */
  set(spots) {
    const had = [...this.list.children].indexOf(document.activeElement);
    const same = spots.length === this.spots.length;
    this.spots = spots;
    this.list.replaceChildren(...spots.map((spot, i) => {
      const made = el("button", {type: "button", class: "spot", "aria-label": spot.label,
        title: spot.label, tabindex: i ? -1 : 0, onclick: spot.act,
        "aria-pressed": spot.pressed === undefined ? null : String(spot.pressed)});
      made.style.left = `${spot.x}px`;
      made.style.top = `${spot.y}px`;
      made.style.width = `${spot.w}px`;
      made.style.height = `${spot.h}px`;
      return made;
    }));
    if (had >= 0) this.goTo(same ? had : 0);
  }

  /** Let a spot have the focus, and Tab lead to it. @param {number} at */
  goTo(at) {
    [...this.list.children].forEach((made, i) => made.setAttribute("tabindex", i === at ? "0" : "-1"));
    const chosen = /** @type {HTMLElement | undefined} */ (this.list.children[at]);
    chosen?.focus();
  }

  /** @param {KeyboardEvent} event */
  moved(event) {
    const way = WAYS_OF[event.key];
    const from = [...this.list.children].indexOf(/** @type {Element} */ (event.target));
    if (!way || from < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const middles = this.spots.map(({x, y, w, h}) =>
      /** @type {[number, number]} */ ([x + w / 2, y + h / 2]));
    const to = nearestPoint(middles, from, way);
    if (to >= 0) this.goTo(to);
  }
}

/**
 * The nearest point in a direction, -1 for none; what lies aside counts for twice as far.
 * @param {[number, number][]} points @param {number} from @param {[number, number]} way
 * @returns {number}
 */
export function nearestPoint(points, from, [dx, dy]) {
  const [x, y] = points[from];
  let [best, least] = [-1, Infinity];
  points.forEach(([a, b], i) => {
    const ahead = (a - x) * dx + (b - y) * dy;
    const far = ahead + 2 * Math.abs((a - x) * dy + (b - y) * dx);
    if (ahead > 1 && far < least) [best, least] = [i, far];
  });
  return best;
}
