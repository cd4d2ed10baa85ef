// @ts-check
import {sizeText} from "../i18n.js";
import {tableOf} from "../table.js";
import {along, geometryOf, wayOf} from "./geometry.js";

/**
 * A step of a schedule in groups, as data/grouped.py gives it.
 * @typedef {any} Groups
 */

/**
 * Groups of cards in a circle, and what they send each other in a step.
 * @param {import("../pen.js").Pen} pen
 * @param {Groups} data
 * @param {number} width
 * @param {number} height
 * @param {number} f how far it has come, from 0 to 1
 * @param {import("../main.js").Context} context
 */
export function drawGroups(pen, data, width, height, f, {palette, t}) {
  const colour = palette();
  const g = geometryFor(data, width, height);
  const most = Math.max(1, ...data.flows.map((/** @type {any} */ flow) => flow.bytes));
  const eased = f * f * (3 - 2 * f);
  for (const {src, dst, bytes, added} of data.flows) {
    if (src === dst) continue;
    const way = wayOf(g, src, dst);
    const [a, b, c] = way;
    const ink = added ? colour.add : colour.copy;
    pen.path(`M${a[0]} ${a[1]}Q${b[0]} ${b[1]} ${c[0]} ${c[1]}`, {stroke: ink,
      dash: added ? undefined : [5, 4], width: 0.8 + 4 * (bytes / most), alpha: 0.55});
    const [x, y] = along(way, eased);
    pen.dot(x, y, f < 1 ? 4 : 2.5, {fill: ink});
  }
  data.groups.forEach((/** @type {[number, number]} */ [first, last], /** @type {number} */ i) => {
    const [x, y] = g.centre[i];
    const inner = data.flows.find((/** @type {any} */ flow) => flow.src === i && flow.dst === i);
    const mine = data.rank >= first && data.rank <= last;
    pen.box(x - g.side / 2, y - g.side / 2, g.side, g.side, 5, {fill: colour.card,
      stroke: mine ? colour.text : colour.line, width: mine ? 2 : 1});
    const size = Math.min(12, g.side * 0.22);
    const name = first >= data.ranks ? t("switches") : String(first);
    if (size > 5) pen.text(x, inner ? y - size * 0.7 : y, name, size, {fill: colour.text}, "center", true);
    if (size > 5 && inner) {
      const amount = sizeText(inner.bytes).replace(/(\d)\.\d+/, "$1").replace("iB", "");
      pen.text(x, y + size * 0.75, amount, size * 0.85, {fill: inner.added ? colour.add : colour.copy});
    }
  });
}

/** @type {Map<string, import("./geometry.js").Geometry>} */
const pictures = new Map();
const KEPT_PICTURES = 8;

/** Where groups stand in a picture of a size; kept, as it is drawn many times a second.
 * @param {Groups} data @param {number} width @param {number} height */
function geometryFor(data, width, height) {
  const key = `${data.groups.length} ${data.helpers} ${width} ${height}`;
  if (pictures.size > KEPT_PICTURES) pictures.clear();
  const g = pictures.get(key) ?? geometryOf(placesOf(data), "circle", 1, width, height);
  pictures.set(key, g);
  return g;
}

/** Where groups stand: in a circle, switches in its middle.
 * @param {Groups} data @returns {[number, number][]} */
function placesOf(data) {
  const count = data.groups.length - (data.helpers ? 1 : 0);
  /** @type {[number, number][]} */
  const places = Array.from({length: count}, (_, i) => {
    const turn = (2 * Math.PI * i) / count;
    return [0.5 + 0.5 * Math.sin(turn), 0.5 - 0.5 * Math.cos(turn)];
  });
  return data.helpers ? [...places, [0.5, 0.5]] : places;
}

/** What a card does in the step. @param {Groups} data @param {string} label
 * @param {import("../i18n.js").Tell} t */
export function partTable(data, label, t) {
  const name = (/** @type {number} */ place) => place < data.ranks ? t("placeRank", {rank: place})
    : t("switch", {number: place - data.ranks});
  const rows = data.part.map((/** @type {any[]} */ [src, dst, first, count, add]) => [name(src),
    name(dst), count > 1 ? t("piecesFrom", {first, count}) : String(first),
    t(add ? "isAdded" : "isCopied")]);
  return tableOf(label + t("partOf", {rank: data.rank, step: data.step, moves: data.part_moves}),
    [t("from"), t("to"), t("piece"), t("fate")], rows);
}

/** What groups send each other in the step. @param {Groups} data @param {string} label
 * @param {import("../i18n.js").Tell} t */
export function flowTable(data, label, t) {
  const name = (/** @type {number} */ group) => {
    const [first, last] = data.groups[group];
    return first >= data.ranks ? t("switches") : `${first}–${last}`;
  };
  const flows = [...data.flows].sort((a, b) => b.bytes - a.bytes).slice(0, 200);
  return tableOf(label + t("flows", {step: data.step}),
    [t("from"), t("to"), t("messageCount"), t("bytes")],
    flows.map((f) => [name(f.src), name(f.dst), String(f.messages), sizeText(f.bytes)]));
}
