// @ts-check
import {timeText} from "../i18n.js";

/** @typedef {import("./model.js").RunModel} RunModel */

const MATRIX_TOP = 54;
const MATRIX_LEFT = 84;
/** Ranks up to which it is drawn; above, the table says it. */
export const MATRIX_MOST = 16;

/** How high the matrix is. @param {number} ranks @returns {number} */
export function matrixHigh(ranks) {
  return MATRIX_TOP + ranks * 30 + 10;
}

/**
 * Who waited (rows) for whom (columns): the time, and the more of it the darker.
 * @param {import("../pen.js").Pen} pen
 * @param {number} width
 * @param {RunModel} model
 * @param {Record<string, string>} colour
 * @param {import("../i18n.js").Tell} t
 */
export function drawMatrix(pen, width, model, colour, t) {
  const n = model.names.length;
  const cell = Math.min(86, (width - MATRIX_LEFT - 8) / n);
  const most = Math.max(1, ...model.data.waits.map((/** @type {any} */ w) => w[2]));
  pen.text(MATRIX_LEFT, 14, t("runForWhom"), 12, {fill: colour.soft}, "left");
  pen.text(4, MATRIX_TOP - 14, t("runWho"), 12, {fill: colour.soft}, "left");
  model.names.forEach((name, r) => {
    const short = name.length > 8 ? `${name.slice(0, 7)}…` : name;
    pen.text(MATRIX_LEFT + (r + 0.5) * cell, MATRIX_TOP - 14, cell > 52 ? short : String(r), 12,
      {fill: colour.text});
    pen.text(MATRIX_LEFT - 10, MATRIX_TOP + r * 30 + 15, short, 12, {fill: colour.text}, "right");
    for (let c = 0; c < n; c += 1) {
      pen.box(MATRIX_LEFT + c * cell + 1, MATRIX_TOP + r * 30 + 1, cell - 2, 28, 3,
        {fill: colour.empty});
    }
  });
  for (const [rank, peer, ns] of model.data.waits) {
    const [x, y] = [MATRIX_LEFT + peer * cell, MATRIX_TOP + rank * 30];
    pen.box(x + 1, y + 1, cell - 2, 28, 3, {fill: colour.part, alpha: ns / most});
    if (ns === most) pen.box(x + 1, y + 1, cell - 2, 28, 3, {stroke: colour.text, width: 2});
    if (ns && cell > 40) {
      pen.text(x + cell / 2, y + 15, timeText(ns / 1e9), 11.5, {fill: colour.text},
        "center", ns === most);
    }
  }
}
