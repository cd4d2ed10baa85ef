// @ts-check
import {el} from "../dom.js";
import {nearestPoint, WAYS_OF} from "../spots.js";
import {cellAt} from "./geometry.js";

const SMALLEST = 8;
const PAGES = /** @type {Record<string, number>} */ ({PageUp: -1, PageDown: 1});

/** A piece chosen by keyboard: one button over the picture, which the arrow keys move. */
export class Cursor {
  /** @param {import("./panel.js").Panel} panel */
  constructor(panel) {
    this.panel = panel;
    this.place = 0;
    this.piece = 0;
    this.open = false;
    this.root = el("button", {type: "button", class: "spot cursor", onclick: () => this.#tell(),
      onfocus: () => this.fit(), onblur: () => this.#close(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event)});
  }

  /** Stand where its piece is, and say what that holds now. */
  fit() {
    const {panel, root} = this;
    const [left, top] = this.#corner();
    const [width, height] = [panel.geometry.wide, panel.geometry.high].map((side) =>
      `${Math.max(SMALLEST, side)}px`);
    Object.assign(root.style, {left: `${left}px`, top: `${top}px`, width, height});
    root.setAttribute("aria-label",
      `${panel.holds(this.place, this.piece)} ${panel.context.t("cursorHow")}`);
  }

  /** @returns {[number, number]} */
  #corner() {
    const {geometry, model} = this.panel;
    return cellAt(geometry, this.place, this.piece, model.data.pieces.length);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const {places} = this.panel.model;
    if (event.key === "Escape" && this.open) this.#close();
    else if (PAGES[event.key]) this.place = (this.place + PAGES[event.key] + places) % places;
    else if (WAYS_OF[event.key]) this.#move(WAYS_OF[event.key]);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.fit();
    if (this.open) this.#tell();
    else this.panel.context.announce(this.panel.holds(this.place, this.piece));
  }

  /** To the nearest piece in a direction, of this card or another. @param {[number, number]} way */
  #move(way) {
    const {geometry, model} = this.panel;
    const pieces = model.data.pieces.length;
    const corners = Array.from({length: model.places * pieces}, (_, i) =>
      cellAt(geometry, Math.floor(i / pieces), i % pieces, pieces));
    const to = nearestPoint(corners, this.place * pieces + this.piece, way);
    if (to < 0) return;
    this.place = Math.floor(to / pieces);
    this.piece = to % pieces;
  }

  /** Tell where the piece has been. */
  #tell() {
    const {panel, place, piece} = this;
    const [left, top] = this.#corner();
    this.open = true;
    panel.point({place, piece}, left + panel.geometry.wide, top + panel.geometry.high);
    panel.context.announce(panel.describe(place, piece));
  }

  #close() {
    if (!this.open) return;
    this.open = false;
    this.panel.point(null);
  }
}
