// @ts-check
import {timeText} from "../i18n.js";
import {busyness, shareText, spanText} from "./model.js";

/**
 * @typedef {import("../pen.js").Pen} Pen
 * @typedef {import("../i18n.js").Tell} Tell
 * @typedef {import("./model.js").Shown} Shown
 * @typedef {import("./model.js").Load} Load
 * @typedef {Record<string, string>} Palette
 */

const LANE = 24; // height of a link's lane; a box has one each way
const ROW = 2 * LANE + 6;
const HEAD = 36;
const INKS = /** @type {Record<string, string>} */ ({busiest: "wrong", half: "copy", tenth: "add",
  less: "soft", nothing: "line"});

/** @param {Shown} shown @returns {number} */
export function fabricHeight(shown) {
  return HEAD + shown.rows * ROW + 4;
}

/**
 * Where everything stands.
 * @param {Shown} shown
 * @param {number} w
 */
export function fabricPlaces(shown, w) {
  const many = shown.columns.length;
  const box = w < 640 ? Math.min(52, w / (2 * many - 1)) : Math.min(110, w / (1.9 * many));
  const gap = many > 1 ? (w - many * box - 2) / (many - 1) : 0;
  const x = (/** @type {number} */ column) => 1 + column * (box + gap);
  const y = ([a, b] = [0, 0]) => ({top: HEAD + a * ROW + 3, high: (b - a + 1) * ROW - 6});
  const lanes = shown.gaps.flatMap((edges, column) => edges.flatMap((edge) => {
    const {top, high} = y(edge.rows);
    const left = column < shown.middle;
    return [edge.out, edge.into].map((load, way) => ({load, x: x(column) + box, w: gap,
      y: top + high / 2 + (way ? 0 : -LANE), h: LANE, to: left === !way ? -1 : 1}));
  }));
  const boxes = shown.columns.flatMap(({kind, boxes: listed}, column) => listed.map((each) => {
    const {top, high} = y(each.rows);
    return {kind, box: each, column, x: x(column), y: top, w: box, h: high};
  }));
  return {box, gap, x, lanes, boxes};
}

/**
 * The columns, and the links between them: as wide as the bytes of the busiest of each bundle,
 * with the time of that one.
 * @param {Pen} pen
 * @param {number} w
 * @param {Shown} shown
 * @param {number} chosen number of the link that is chosen, -1 for none
 * @param {Palette} colour
 * @param {Tell} t
 */
export function drawFabric(pen, w, shown, chosen, colour, t) {
  const {box, gap, x, lanes, boxes} = fabricPlaces(shown, w);
  const narrow = w < 640;
  shown.columns.forEach(({kind, each}, column) => {
    const last = column === shown.columns.length - 1;
    const [at, align] = /** @type {[number, CanvasTextAlign]} */ (!column ? [1, "left"]
      : last ? [w - 1, "right"] : [x(column) + box / 2, "center"]);
    pen.text(at, 10, t(`fabric_${kind}`), narrow ? 12 : 13, {fill: colour.text}, align, true);
    if (each > 1) {
      pen.text(at, 25, t("clusterEach", {k: each}), narrow ? 11 : 12, {fill: colour.soft}, align);
    }
  });
  const most = Math.max(...shown.kinds.map((load) => load.bytes), 1);
  for (const lane of lanes) drawLane(pen, lane, shown, most, chosen, gap, colour);
  for (const {box: each, x: left, y, w: wide, h} of boxes) {
    pen.box(left, y, wide, h, 8, {fill: colour.card, stroke: colour.soft, width: 1.2});
    pen.text(left + wide / 2, y + h / 2, spanText(each.numbers), narrow ? 11 : 13,
      {fill: colour.text});
  }
}

/** @param {Pen} pen @param {ReturnType<typeof fabricPlaces>["lanes"][number]} lane
 * @param {Shown} shown @param {number} most bytes @param {number} chosen @param {number} gap
 * @param {Palette} colour */
function drawLane(pen, {load, x, y, w, h, to}, shown, most, chosen, gap, colour) {
  const busy = busyness(load, shown.busiest);
  const ink = colour[INKS[busy]];
  const thick = load.bytes ? 1.5 + 9 * load.bytes / most : 1;
  const [middle, from, until] = [y + h / 2, to > 0 ? x + 2 : x + w - 2, to > 0 ? x + w - 2 : x + 2];
  const head = Math.min(5 + thick / 2, w / 4);
  if (chosen >= 0 && load.link === chosen) {
    pen.box(x + 1, y + 1, w - 2, h - 2, 6, {stroke: colour.text, width: 2});
  }
  pen.path(`M${from} ${middle}H${until - to * head}`, {stroke: ink, width: thick,
    dash: busy === "nothing" ? [2, 4] : undefined});
  pen.path(`M${until} ${middle}l${-to * head} ${-head}v${2 * head}z`, {fill: ink});
  const mark = busy === "busiest" ? "◆ " : "";
  const share = shareText(load, shown.busiest);
  // Where there is no room the mark alone says it: the busiest has 100 %.
  const words = mark && gap < 60 ? "◆" : mark + (gap > 140 && load.time ? `${share} · ${timeText(load.time)}`
    : gap < 60 ? share.replaceAll(" ", "") : share);
  const [size, bold] = [gap < 60 ? 10 : 12, busy === "busiest"];
  const wide = words.length * size * (bold ? 0.64 : 0.58) + 8;
  const at = x + w / 2 - to * head / 2;
  pen.box(at - wide / 2, middle - 8, wide, 16, 8, {fill: colour.ground,
    stroke: bold ? ink : undefined, width: 1.5});
  pen.text(at, middle, words, size, {fill: bold ? ink : colour.text}, "center", bold);
}

/**
 * A short piece of a link, for the legend.
 * @param {Pen} pen @param {string} busy @param {Palette} colour
 */
export function drawBusyness(pen, busy, colour) {
  pen.path("M1 7H27", {stroke: colour[INKS[busy]], width: busy === "nothing" ? 1 : 4,
    dash: busy === "nothing" ? [2, 4] : undefined});
}
