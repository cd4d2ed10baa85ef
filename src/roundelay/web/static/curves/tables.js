// @ts-check
import {sizeText} from "../i18n.js";
import {tableOf} from "../table.js";

/** @typedef {import("./model.js").Line} Line */

/**
 * The tables behind the charts: times, busbw, crossovers, and measurements beside the model.
 * @param {{sized: boolean, shown: Line[], xs: number[],
 *   crossed: import("./model.js").Crossing[]}} now
 * @param {number[]} sizes
 * @param {import("./measured.js").Measured[]} measured
 * @param {import("../i18n.js").Tell} t
 * @returns {HTMLElement[]}
 */
export function curveTables({sized, shown, xs, crossed}, sizes, measured, t) {
  const x = (/** @type {number} */ v) => (sized ? sizeText(v) : String(v));
  const rows = (/** @type {"time" | "busbw"} */ what) => tableOf(t(`curves_${what}`),
    [t(sized ? "size" : "clusterCount"), ...shown.map((line) => line.algorithm)],
    xs.map((v, i) => [x(v), ...shown.map((line) => {
      const at = line.at[i];
      return at ? `${Number(at[what].toPrecision(4))}` : "–";
    })]));
  const cross = crossed.map((c) => [sized ? sizeText(c.x) : String(Number(c.x.toPrecision(3))),
    c.from, c.to, `${Number(c.y.toPrecision(4))}`]);
  const points = measured.flatMap(({name, points: listed}) => listed.map((p) => [name,
    sizeText(p.size), String(p.time), String(p.busbw), predicted(shown, sizes, p.size)]));
  const heads = (/** @type {string[]} */ keys) => keys.map((key) => t(key));
  const made = [rows("time"), rows("busbw"), tableOf(t("curvesCrossings"),
    heads(["curvesWhere", "curvesFrom", "curvesTo", "curves_time"]), cross)];
  if (points.length && sized) {
    made.push(tableOf(t("curvesMeasured"), heads(["curvesFile", "size", "curves_time",
      "curves_busbw", "curvesPredicted"]), points));
  }
  return made;
}

/** Microseconds of the quickest line at a size, between the points on either side.
 * @param {import("./model.js").Line[]} lines @param {number[]} sizes @param {number} size
 * @returns {string} */
function predicted(lines, sizes, size) {
  const i = sizes.findLastIndex((each) => each <= size);
  const best = (/** @type {number} */ k) =>
    Math.min(...lines.map((line) => line.at[k]?.time ?? Infinity));
  if (i < 0 || (i + 1 >= sizes.length && size > sizes[i])) return "–";
  if (size === sizes[i]) return `${Number(best(i).toPrecision(4))}`;
  const part = Math.log(size / sizes[i]) / Math.log(sizes[i + 1] / sizes[i]);
  const time = Math.exp((1 - part) * Math.log(best(i)) + part * Math.log(best(i + 1)));
  return Number.isFinite(time) ? `${Number(time.toPrecision(4))}` : "–";
}
