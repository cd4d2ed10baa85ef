// @ts-check
import {button, el} from "./dom.js";
import {savePng, saveSvg} from "./export.js";
import {svgPen} from "./pen.js";

/** @typedef {import("./main.js").Context} Context */
/** @typedef {{svg: string, width: number, height: number}} Made */

/** A picture in SVG that is drawn anew for its width and for its colours. */
export class Picture {
  /**
   * @param {Context} context
   * @param {() => string} title what it shows, in words
   * @param {(width: number) => number} high its height for a width
   * @param {(pen: import("./pen.js").Pen, width: number, height: number,
   *   colour: Record<string, string>) => void} draw
   */
  constructor(context, title, high, draw) {
    this.context = context;
    this.title = title;
    this.high = high;
    this.draw = draw;
    this.width = 0;
    /** Called with the width when it has been drawn. @type {(width: number) => void} */
    this.drawn = () => {};
    this.root = el("div", {class: "picture"});
    this.seen = new ResizeObserver(([entry]) => {
      const wide = Math.floor(entry.contentRect.width);
      if (wide && wide !== this.width) {
        this.width = wide;
        this.redraw();
      }
    });
    this.seen.observe(this.root);
  }

  /** Draw it as things are now. */
  redraw() {
    if (!this.width) return;
    const text = this.svg().svg;
    const made = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    this.root.replaceChildren(document.adoptNode(made));
    this.drawn(this.width);
  }

  /**
   * The picture as a text.
   * @param {number} [width]
   * @returns {{svg: string, width: number, height: number}}
   */
  svg(width = this.width || 900) {
    const height = this.high(width);
    const colour = this.context.palette();
    const {pen, picture} = svgPen(width, height, colour.ground);
    this.draw(pen, width, height, colour);
    return {svg: picture(this.title()), width, height};
  }

  /** Watch its width no longer. */
  close() {
    this.seen.disconnect();
  }
}

/**
 * Buttons that save a picture.
 * @param {import("./i18n.js").Tell} t
 * @param {string} name of the file
 * @param {() => Made | Promise<Made>} made
 * @returns {HTMLElement}
 */
export function saveButtons(t, name, made) {
  return el("div", {class: "actions"},
    button("SVG", async () => saveSvg(name, (await made()).svg), {"aria-label": t("saveAs", {kind: "SVG"})}),
    button("PNG", async () => {
      const {svg, width, height} = await made();
      savePng(name, svg, width, height);
    }, {"aria-label": t("saveAs", {kind: "PNG"})}));
}

/**
 * A slider with its label and its value in words.
 * @param {string} label
 * @param {{least: number, most: number, at: number, name: string}} range whole positions
 * @param {(at: number) => string} text of a position
 * @param {(at: number) => void} moved
 * @returns {HTMLElement}
 */
export function slider(label, {least, most, at, name}, text, moved) {
  const told = el("output", {class: "told", for: `slider-${name}`}, text(at));
  const input = el("input", {type: "range", id: `slider-${name}`, min: least, max: most, step: 1,
    value: at, "aria-valuetext": text(at), oninput: () => {
      const now = Number(input.value);
      told.textContent = text(now);
      input.setAttribute("aria-valuetext", text(now));
      moved(now);
    }});
  return el("div", {class: "field slider"},
    el("div", {class: "heading"}, el("label", {for: `slider-${name}`}, label), told), input);
}
