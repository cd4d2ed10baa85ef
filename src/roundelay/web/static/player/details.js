// @ts-check
import {button, el} from "../dom.js";
import {savePng, saveSvg} from "../export.js";
import {tableOf} from "../table.js";
import {placeName} from "./panel.js";

const ROWS = 200;
const CELLS = 2000;

/**
 * The tables behind a picture: the moves of its step, and what each card holds.
 * @param {import("./panel.js").Panel} panel
 * @param {import("../i18n.js").Tell} t
 * @param {((drop: string) => void) | null} leaveOut
 * @returns {HTMLElement[]}
 */
export function tablesOf(panel, t, leaveOut) {
  return [movesTable(panel, t, leaveOut), cardsTable(panel, t)];
}

/** @param {import("./panel.js").Panel} panel @param {import("../i18n.js").Tell} t
 * @param {((drop: string) => void) | null} leaveOut */
function movesTable(panel, t, leaveOut) {
  const {data} = panel.model;
  const step = Math.ceil(panel.at - 1e-9);
  const rows = [];
  for (const [src, dst, pieces, add] of data.states[step].moves) {
    for (const piece of pieces) {
      if (rows.length >= ROWS) break;
      const [from, to] = [src, dst].map((place) => placeName(t, data, place));
      const row = [from, to, data.pieces[piece], t(add ? "isAdded" : "isCopied")];
      const drop = `${step}.${src}.${dst}.${piece}`;
      const label = t("leaveOutWhat", {from, to, piece: data.pieces[piece]});
      rows.push(leaveOut ? [...row, button(t("leaveOut"), () => leaveOut(drop),
        {class: "small", "aria-label": label})] : row);
    }
  }
  const head = [t("from"), t("to"), t("piece"), t("fate")];
  if (leaveOut) head.push(t("breakIt"));
  const caption = step ? t("movesOf", {name: panel.label, step}) : t("noMoves", {name: panel.label});
  return tableOf(caption, head, rows);
}

/** @param {import("./panel.js").Panel} panel @param {import("../i18n.js").Tell} t */
function cardsTable(panel, t) {
  const {model} = panel;
  const {data} = model;
  const pieces = data.pieces.length;
  const shown = Math.min(pieces, Math.max(1, Math.floor(CELLS / model.places)));
  const rows = Array.from({length: model.places}, (_, place) => [
    placeName(t, data, place),
    ...Array.from({length: shown}, (_, piece) => {
      const count = model.counts[place * pieces + piece];
      const text = data.sums ? `${count}/${data.wanted[piece]}` : count ? "1" : "–";
      return model.isDone(place, piece) ? `${text} ✓` : text;
    }),
  ]);
  const more = shown < pieces ? ` ${t("firstOf", {shown, pieces})}` : "";
  return tableOf(t("cardsAfter", {name: panel.label, step: model.step}) + more,
    [t("place"), ...data.pieces.slice(0, shown).map((name) => t("pieceName", {name}))], rows);
}

/**
 * Buttons that save pictures as they are now.
 * @param {import("../i18n.js").Tell} t
 * @param {string} name of the files
 * @param {{svg: () => {svg: string, width: number, height: number}}[]} panels
 * @returns {HTMLElement}
 */
export function savesOf(t, name, panels) {
  return el("div", {class: "actions"},
    button("SVG", () => panels.forEach((panel) => saveSvg(name, panel.svg().svg)),
      {"aria-label": t("saveAs", {kind: "SVG"})}),
    button("PNG", () => panels.forEach((panel) => {
      const {svg, width, height} = panel.svg();
      savePng(name, svg, width, height);
    }), {"aria-label": t("saveAs", {kind: "PNG"})}));
}

/**
 * What the signs of the picture mean.
 * @param {import("../i18n.js").Tell} t
 * @param {import("./model.js").Played} data
 * @returns {HTMLElement}
 */
export function legendOf(t, {sums, right, wanted}) {
  const n = Math.max(...wanted);
  const k = Math.max(1, Math.floor((3 * n) / 4));
  const item = (/** @type {string} */ kind, /** @type {string} */ text, inside = "") =>
    el("li", {}, el("span", {class: `key ${kind}`, "aria-hidden": "true"}, inside), text);
  const items = [item("copy", t("keyCopy"))];
  if (sums) items.unshift(item("add", t("keyAdd")));
  if (sums) items.push(item("part", t("keyPart", {k, n}), `${k}/${n}`));
  items.push(item("done", t(sums ? "keyDone" : "keyThere"), "✓"));
  items.push(item("changed", t("keyChanged")));
  if (!right) items.push(item("bad", t("keyWrong"), "!"));
  return el("ul", {class: "legend"}, ...items);
}
