// @ts-check
import {el} from "./dom.js";

/**
 * The table behind a picture.
 * @param {string} caption
 * @param {string[]} head
 * @param {(string | Node)[][]} rows the first cell of each heads its row
 * @returns {HTMLElement}
 */
export function tableOf(caption, head, rows) {
  const top = el("tr", {}, ...head.map((text) => el("th", {scope: "col"}, text)));
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell, i) =>
    i ? el("td", {}, cell) : el("th", {scope: "row"}, cell))));
  const table = el("table", {}, el("caption", {}, caption), el("thead", {}, top),
    el("tbody", {}, ...body));
  return el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption}, table);
}
