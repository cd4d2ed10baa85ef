// @ts-check
import {button, el} from "../dom.js";
import {MOST_POINTS, MOST_SERIES, readMeasured} from "./measured.js";

/** @typedef {import("./measured.js").Measured} Measured */

/**
 * Where files with measurements are dropped or chosen. They are read here, and go nowhere.
 * @param {import("../i18n.js").Tell} t
 * @param {string} collective rows of others are left out
 * @param {(measured: Measured[]) => void} changed is given all that is there
 * @returns {HTMLElement}
 */
export function droppedFiles(t, collective, changed) {
  /** @type {Measured[]} */
  let measured = [];
  const forget = button(t("curvesForget"), () => {
    measured = [];
    said.textContent = "";
    forget.hidden = true;
    changed(measured);
  }, {hidden: true});
  const said = el("p", {class: "soft", role: "status"});
  const take = async (/** @type {ArrayLike<File>} */ files) => {
    const told = [];
    for (const file of Array.from(files)) {
      try {
        const found = readMeasured(await file.text(), file.name, collective);
        const all = [...measured.filter(({name}) => !found.some((f) => f.name === name)), ...found];
        if (all.length > MOST_SERIES) throw new Error("measuredSeries");
        if (all.reduce((sum, {points}) => sum + points.length, 0) > MOST_POINTS) {
          throw new Error("measuredMany");
        }
        measured = all;
        told.push(t("curvesTaken", {file: file.name,
          k: found.reduce((sum, {points}) => sum + points.length, 0)}));
      } catch (error) {
        told.push(t(/** @type {Error} */ (error).message, {file: file.name, collective,
          points: MOST_POINTS.toLocaleString("en"), series: MOST_SERIES}));
      }
    }
    said.textContent = told.join(" ");
    forget.hidden = !measured.length;
    changed(measured);
  };
  const input = el("input", {type: "file", multiple: true, class: "unseen", id: "measured",
    onchange: () => take(input.files)});
  return el("div", {class: "drop",
    ondragover: (/** @type {DragEvent} */ event) => event.preventDefault(),
    ondrop: (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      take(event.dataTransfer?.files ?? []);
    }}, input, el("label", {for: "measured", class: "pick"}, t("curvesPick")),
  el("span", {class: "soft"}, t("curvesDrop")),
  forget, said);
}
