// @ts-check
import {drawStep} from "./model.js";

/**
 * @typedef {import("../pen.js").Pen} Pen
 * @typedef {import("../i18n.js").Tell} Tell
 * @typedef {import("./model.js").Bucket} Bucket
 * @typedef {import("./model.js").Figures} Figures
 * @typedef {Record<string, string>} Palette colours by what they mean, from the style sheet
 * @typedef {{x: number, y: number, w: number, h: number}} Area
 * @typedef {{number: number, from: number, computes: number[], stalled: number, begin: number,
 *   end: number}} Step times in ms since the step began, but for `from`, since the first did
 */

const STAVES = 16;
const DECADES = [4, 10, 100, 1000, 10_000];

/**
 * The cards of each row: one each, or equal shares where there are more cards than rows.
 * @param {number} n
 * @returns {number[]}
 */
export function groupsOf(n) {
  const rows = Math.min(n, STAVES);
  return Array.from({length: rows}, (_, i) =>
    Math.floor((i + 1) * n / rows) - Math.floor(i * n / rows));
}

/**
 * The steps from the first that ends after `from` to the one under way at `to`. They are drawn one
 * after another from the first, so that a moment always shows the same.
 * @param {Bucket} of
 * @param {number[]} groups
 * @param {Step[]} known of the same bucket; longer afterwards
 * @param {number} from
 * @param {number} to
 * @returns {Step[]}
 */
export function stepsBetween(of, groups, known, from, to) {
  const reached = () => {
    const last = known.at(-1);
    return last ? last.from + last.end : 0;
  };
  while (reached() <= to) {
    const start = reached();
    known.push({number: known.length, from: start, ...drawStep(of, known.length, groups)});
  }
  let first = known.length - 1;
  while (first > 0 && known[first].from > from) first -= 1;
  return known.slice(first);
}

/**
 * What each row of cards does, over time; what has not happened yet is left out.
 * @param {Pen} pen
 * @param {Area} area
 * @param {Bucket} of
 * @param {number[]} groups
 * @param {Step[]} steps
 * @param {number} now ms
 * @param {number} span ms from the left to the right
 * @param {Palette} colour
 * @param {Tell} tell
 */
export function drawRows(pen, area, of, groups, steps, now, span, colour, tell) {
  const left = area.w < 560 ? 58 : 96;
  const high = area.h / groups.length;
  const wide = area.w - left;
  const at = (/** @type {number} */ ms) =>
    area.x + left + wide * Math.min(1, Math.max(0, (ms - now + span) / span));
  let first = 0;
  groups.forEach((size, row) => {
    const y = area.y + row * high;
    const name = size === 1 ? tell("bucketCard", {k: row})
      : tell("bucketCards", {a: first, b: first + size - 1});
    first += size;
    pen.text(area.x + left - 8, y + high / 2, name, Math.min(13, high * 0.6),
      {fill: colour.text}, "right");
    pen.box(area.x + left, y + 1, wide, high - 2, 2, {fill: colour.card});
  });
  const bar = (/** @type {number} */ row, /** @type {number} */ from, /** @type {number} */ to,
    /** @type {string} */ kind) => {
    const [a, b] = [at(from), at(Math.min(to, now))];
    if (b - a > 0.2) drawBar(pen, a, area.y + row * high + 1, b - a, high - 2, kind, colour);
  };
  for (const step of steps) {
    for (let row = 0; row < groups.length; row += 1) drawPhases(bar, row, step, of);
    const end = at(step.from + step.end);
    if (step.from + step.end < now && end > area.x + left) {
      pen.path(`M${end} ${area.y}V${area.y + area.h}`, {stroke: colour.text, width: 1});
    }
  }
}

/** @param {(row: number, from: number, to: number, kind: string) => void} bar
 * @param {number} row @param {Step} step @param {Bucket} of */
function drawPhases(bar, row, step, of) {
  const [start, begin] = [step.from, step.from + step.begin];
  const go = begin + (step.stalled >= 0 ? of.pause : 0);
  bar(row, start, start + step.computes[row], "compute");
  bar(row, start + step.computes[row], begin, "wait");
  if (step.stalled >= 0) bar(row, begin, go, step.stalled === row ? "stall" : "wait");
  bar(row, go, go + of.exchange, "exchange");
  bar(row, go + of.exchange, step.from + step.end, "update");
}

/**
 * A stretch of a row. Kinds differ in pattern as well as in colour.
 * @param {Pen} pen
 * @param {number} x
 * @param {number} y
 * @param {number} w
 * @param {number} h
 * @param {string} kind compute, wait, stall, exchange or update
 * @param {Palette} colour
 */
export function drawBar(pen, x, y, w, h, kind, colour) {
  if (kind === "compute") pen.box(x, y, w, h, 0, {fill: colour.part});
  if (kind === "update") pen.box(x, y, w, h, 0, {fill: colour.soft});
  if (kind === "exchange") {
    pen.box(x, y, w, h, 0, {fill: colour.add});
    pen.path(`M${x} ${y + h / 2}H${x + w}`, {stroke: colour.ground, width: 1.5, dash: [4, 3]});
  }
  if (kind === "wait") {
    pen.box(x, y, w, h, 0, {fill: colour.empty});
    pen.path(slashes(x, y, w, h), {stroke: colour.soft, width: 1});
  }
  if (kind === "stall") {
    pen.box(x, y, w, h, 0, {fill: colour.wrong});
    if (w > 12) pen.text(x + w / 2, y + h / 2, "!", Math.min(13, h * 0.8), {fill: colour.ground},
      "center", true);
  }
}

/** @param {number} x @param {number} y @param {number} w @param {number} h @returns {string} */
function slashes(x, y, w, h) {
  const lines = [];
  for (let from = Math.ceil((x - h) / 7) * 7; from < x + w; from += 7) {
    const [a, b] = [Math.max(x, from), Math.min(x + w, from + h)];
    if (b > a) lines.push(`M${a} ${y + h - (a - from)}L${b} ${y + h - (b - from)}`);
  }
  return lines.join("");
}

/**
 * The bucket: staves as high as rows of cards are quick in a step, and water up to the shortest. A
 * link that stalls is a hole.
 * @param {Pen} pen
 * @param {Area} area
 * @param {Bucket} of
 * @param {Step} step
 * @param {Palette} colour
 */
export function drawBarrel(pen, area, of, step, colour) {
  const rows = step.computes.length;
  const [wide, most] = [area.w / rows, 1.12];
  const top = (/** @type {number} */ speed) => area.y + area.h * (1 - Math.min(speed, most) / most);
  const foot = area.y + area.h;
  const stopped = step.stalled >= 0 ? of.pause : 0;
  const level = top(of.compute / (step.begin + stopped));
  pen.box(area.x, level, area.w, foot - level, 0, {fill: colour.part, alpha: 0.75});
  step.computes.forEach((ms, row) => {
    const [x, y] = [area.x + row * wide, top(of.compute / ms)];
    const shortest = !stopped && ms === step.begin;
    pen.box(x + 1, y, wide - 2, foot - y, 2, {stroke: shortest ? colour.wrong : colour.soft,
      width: shortest ? 2.5 : 1.2});
    if (shortest) pen.path(`M${x + wide / 2} ${y - 20}v12m-4 -5l4 5l4 -5`,
      {stroke: colour.wrong, width: 2});
    if (step.stalled === row) pen.dot(x + wide / 2, level, Math.min(6, wide / 2.2),
      {fill: colour.wrong, stroke: colour.ground, width: 1.5});
  });
  pen.path(`M${area.x} ${level}H${area.x + area.w}`, {stroke: colour.add, width: 2.5});
  pen.path(`M${area.x - 4} ${foot}H${area.x + area.w + 4}`, {stroke: colour.text, width: 3});
}

/**
 * How likely it is that all links are well, and what part of the time is lost, by number of cards.
 * @param {Pen} pen
 * @param {Area} area
 * @param {Figures[]} rows by growing n
 * @param {Figures} here
 * @param {Palette} colour
 * @param {Tell} tell
 */
export function drawOdds(pen, area, rows, here, colour, tell) {
  const [left, foot] = [44, 24];
  const [w, h] = [area.w - left - 16, area.h - foot - 22];
  const base = area.y + 22 + h;
  const x = (/** @type {number} */ n) => area.x + left + w * Math.log(n / 4) / Math.log(2500);
  const y = (/** @type {number} */ part) => base - h * part;
  for (const part of [0, 0.5, 1]) {
    pen.path(`M${area.x + left} ${y(part)}h${w}`, {stroke: colour.line, width: 1});
    pen.text(area.x + left - 8, y(part), `${100 * part} %`, 12, {fill: colour.soft}, "right");
  }
  for (const n of DECADES) {
    pen.text(x(n), base + 14, n.toLocaleString("en"), 12, {fill: colour.soft});
  }
  const line = (/** @type {(f: Figures) => number} */ of) => rows.map((f, i) =>
    `${i ? "L" : "M"}${x(f.n).toFixed(1)} ${y(of(f)).toFixed(1)}`).join("");
  pen.path(line((f) => f.well), {stroke: colour.done, width: 2.5});
  pen.path(line((f) => f.lost), {stroke: colour.wrong, width: 2.5, dash: [7, 4]});
  pen.path(`M${x(here.n)} ${y(0)}V${y(1)}`, {stroke: colour.soft, width: 1, dash: [2, 3]});
  pen.dot(x(here.n), y(here.well), 5, {fill: colour.done});
  pen.dot(x(here.n), y(here.lost), 5, {fill: colour.wrong});
  drawKey(pen, area.x + left, area.y + 8, area.w - left, colour, tell);
}

/** @param {Pen} pen @param {number} x @param {number} y @param {number} w
 * @param {Palette} colour @param {Tell} tell */
function drawKey(pen, x, y, w, colour, tell) {
  const second = x + Math.max(120, w / 2);
  pen.path(`M${x} ${y}h22`, {stroke: colour.done, width: 2.5});
  pen.text(x + 28, y, tell("bucketWell"), 12, {fill: colour.text}, "left");
  pen.path(`M${second} ${y}h22`, {stroke: colour.wrong, width: 2.5, dash: [7, 4]});
  pen.text(second + 28, y, tell("bucketLost"), 12, {fill: colour.text}, "left");
}
