// @ts-check
import {el} from "../dom.js";
import {sizeText} from "../i18n.js";
import {svgPen} from "../pen.js";
import {drawLook, drawMeasured, lookOf, markOf} from "./charts.js";
import {firstBest} from "./model.js";

/** @typedef {import("./model.js").Line} Line */
/** @typedef {import("../i18n.js").Tell} Tell */

/**
 * Which algorithm is the quickest, and from where on another is.
 * @param {{sized: boolean, shown: Line[], crossed: import("./model.js").Crossing[]}} now
 * @param {Tell} t
 * @returns {string}
 */
export function quickestText({sized, shown, crossed}, t) {
  if (!shown.length) return t("curvesNothing");
  const x = (/** @type {number} */ v) => (sized ? sizeText(Math.round(Number(v.toPrecision(3))))
    : t("curvesAtNodes", {k: Number(v.toPrecision(2))}));
  const first = t("curvesFirst", {algorithm: firstBest(shown)});
  const then = crossed.map((c) => t("curvesThen", {x: x(c.x), algorithm: c.to}));
  return first + then.join("") + t("curvesStop");
}

/**
 * What measured points are, by their markers.
 * @param {import("./measured.js").Measured[]} measured
 * @param {Record<string, string>} colour
 * @returns {HTMLElement[]}
 */
export function measuredKeys(measured, colour) {
  return measured.map(({name}, i) => el("li", {}, pictured((pen) =>
    drawMeasured(pen, markOf(i, colour))), name));
}

/** A small picture for the legend. @param {(pen: import("../pen.js").Pen) => void} draw */
function pictured(draw) {
  const {pen, picture} = svgPen(40, 16, "none");
  draw(pen);
  const made = new DOMParser().parseFromString(picture(""), "image/svg+xml").documentElement;
  made.setAttribute("aria-hidden", "true");
  return document.adoptNode(made);
}

/**
 * Boxes that say which lines are shown, with how each looks; left as they are where nothing changed.
 * @param {HTMLElement} legend
 * @param {Line[]} lines
 * @param {string[]} names all, in the order that gives them their looks
 * @param {Set<string>} hidden
 * @param {boolean} dark
 * @param {Tell} t
 * @param {() => void} changed
 */
export function showLines(legend, lines, names, hidden, dark, t, changed) {
  const key = [lines.map((line) => line.algorithm), names, dark].join();
  if (legend.dataset.key === key) return;
  legend.dataset.key = key;
  legend.replaceChildren(el("legend", {}, t("curvesLines")), ...lines.map(({algorithm}) => {
    const look = pictured((pen) => drawLook(pen, lookOf(names.indexOf(algorithm), dark)));
    const box = el("input", {type: "checkbox", checked: !hidden.has(algorithm), onchange: () => {
      if (box.checked) hidden.delete(algorithm);
      else hidden.add(algorithm);
      changed();
    }});
    return el("label", {}, box, look, el("span", {}, algorithm));
  }));
}
