// @ts-check
import {hopsOf, MEDIA, slowestHop, WAYS} from "./model.js";
import {timeText} from "../i18n.js";

/**
 * @typedef {import("../pen.js").Pen} Pen
 * @typedef {import("../i18n.js").Tell} Tell
 * @typedef {import("./model.js").Machine} Machine
 * @typedef {Record<string, string>} Palette
 */

const STATIONS = ["card", "program", "kernel", "nic", "wire"];
const STOPS = /** @type {Record<string, string[]>} */ ({
  gpudirect: ["card", "nic", "wire"], rdma: ["card", "program", "nic", "wire"],
  kernel: ["card", "program", "kernel", "nic", "wire"],
});

/**
 * The two roads, as wide as their rates are high: from card to card in a node, and from node to
 * node.
 * @param {Pen} pen
 * @param {number} w
 * @param {number} h
 * @param {Machine} machine
 * @param {string[]} texts of both roads
 * @param {Palette} colour
 * @param {Tell} tell
 */
export function drawRoads(pen, w, h, machine, texts, colour, tell) {
  const house = {x: 1, y: 26, w: w * 0.62, h: h - 56 - (isNarrow(w) ? 20 : 0)};
  const card = Math.min(64, w * 0.11);
  const middle = house.y + house.h / 2;
  const widest = house.h * 0.62;
  const wide = (/** @type {number} */ rate) => Math.max(1.5, widest * rate / machine.inside.rate);
  const [left, right] = [house.x + house.w * 0.06, house.x + house.w - house.w * 0.06 - card];
  pen.box(house.x, house.y, house.w, house.h, 10, {stroke: colour.line, width: 1.5,
    fill: colour.card});
  pen.text(house.x + 2, 12, tell("roadsNode", {k: machine.cards}), 13, {fill: colour.soft}, "left");
  drawRoad(pen, left + card, right, middle, wide(machine.inside.rate), colour.done, colour);
  const other = {x: w * 0.86, w: w * 0.14 - 2};
  if (machine.between) {
    const near = other.x + other.w * 0.16;
    pen.box(other.x, house.y, other.w, house.h, 10, {stroke: colour.line, width: 1.5,
      fill: colour.card});
    pen.text(other.x + other.w, 12, tell("roadsOther"), 13, {fill: colour.soft}, "right");
    drawRoad(pen, right + card, near, middle, wide(machine.between.rate), colour.add, colour);
    drawCard(pen, near, middle, Math.min(card, other.w * 0.68), colour);
  }
  drawCard(pen, left, middle, card, colour);
  drawCard(pen, right, middle, card, colour);
  const low = isNarrow(w) ? 20 : 0;
  pen.text(house.x + 2, h - 14 - low, texts[0], 14, {fill: colour.done}, "left", true);
  if (machine.between) pen.text(w, h - 14, texts[1], 14, {fill: colour.add}, "right", true);
}

/** Whether a picture is too narrow for two texts beside one another.
 * @param {number} w @returns {boolean} */
function isNarrow(w) {
  return w < 640;
}

/**
 * How high the pictures are for a width: the roads, and a row of the ways.
 * @param {number} w
 * @returns {{roads: number, row: number, ways: number}}
 */
export function roadHeights(w) {
  const row = isNarrow(w) ? 124 : 104;
  return {roads: isNarrow(w) ? 240 : 260, row, ways: 44 + 3 * row};
}

/** Both directions of a road, with a line between them.
 * @param {Pen} pen @param {number} from @param {number} to @param {number} y
 * @param {number} thick @param {string} ink @param {Palette} colour */
function drawRoad(pen, from, to, y, thick, ink, colour) {
  pen.box(from, y - thick / 2, to - from, thick, 0, {fill: ink, alpha: 0.85});
  if (thick > 5) pen.path(`M${from} ${y}H${to}`, {stroke: colour.ground, width: 1.2, dash: [8, 6]});
  if (thick < 22) return;
  const [middle, a] = [(from + to) / 2, Math.min(8, thick / 7)];
  for (const [side, way] of [[-1, 1], [1, -1]]) {
    const at = y + side * thick / 4;
    pen.path(`M${middle - way * 2 * a} ${at}h${way * 4 * a}m${-way * a} ${-a}l${way * a} ${a}`
      + `l${-way * a} ${a}`, {stroke: colour.ground, width: 2});
  }
}

/** @param {Pen} pen @param {number} x @param {number} y @param {number} side
 * @param {Palette} colour */
function drawCard(pen, x, y, side, colour) {
  pen.box(x, y - side / 2, side, side, 6, {fill: colour.ground, stroke: colour.text, width: 1.5});
  const inner = side * 0.44;
  pen.box(x + (side - inner) / 2, y - inner / 2, inner, inner, 3, {fill: colour.soft});
}

/**
 * The three ways out of a node, like lines on a map of a railway: what data stop at, how wide each
 * stretch is, and which is the narrowest. The other node is its mirror.
 * @param {Pen} pen
 * @param {number} w
 * @param {Machine} machine
 * @param {{core: number, cores: number, size: number}} given
 * @param {Palette} colour
 * @param {Tell} tell
 */
export function drawWaysOut(pen, w, machine, given, colour, tell) {
  const narrow = isNarrow(w);
  const {row: high} = roadHeights(w);
  const left = narrow ? 34 : 60;
  const x = (/** @type {string} */ name) =>
    left + (w - 2 * left) * STATIONS.indexOf(name) / (STATIONS.length - 1);
  for (const name of STATIONS) {
    pen.path(`M${x(name)} 44V${44 + 3 * high - 18}`, {stroke: colour.empty, width: 1});
    const words = tell(`roads_${name}`).split("|");
    words.forEach((word, i) => pen.text(x(name), 14 + 15 * i, word, narrow ? 11 : 13,
      {fill: colour.text}));
  }
  WAYS.forEach((way, row) =>
    drawWayOut(pen, 44 + row * high, narrow, x, machine, way, given, colour, tell));
}

/** @param {Pen} pen @param {number} top @param {boolean} narrow
 * @param {(name: string) => number} x
 * @param {Machine} machine @param {string} way
 * @param {{core: number, cores: number, size: number}} given @param {Palette} colour
 * @param {Tell} tell */
function drawWayOut(pen, top, narrow, x, machine, way, given, colour, tell) {
  const hops = hopsOf(machine, way, given.core, given.cores);
  const slowest = slowestHop(hops);
  const most = Math.max(machine.pcie, slowest.rate);
  const y = top + (narrow ? 82 : 62);
  const stops = STOPS[way];
  for (let i = 0; i + 1 < stops.length; i += 1) {
    const [from, to] = [x(stops[i]), x(stops[i + 1])];
    const name = stops[i + 1] === "kernel" ? "copy" : stops[i + 1] === "wire" ? "wire" : "pcie";
    const hop = hops.find((each) => each.name === name) ?? hops[0];
    const thick = Math.max(1.5, 20 * Math.min(1, hop.rate / most));
    const ink = hop === slowest ? colour.wrong : name === "copy" ? colour.copy : colour.done;
    pen.path(`M${from} ${y}H${to}`, {stroke: ink, width: thick,
      dash: name === "copy" ? [6, 3] : undefined});
    const label = `${MEDIA[machine.between?.medium ?? "tcp"]}`;
    const words = name === "wire" ? label : name === "copy" ? tell("roadsCopy") : "PCIe";
    pen.text((from + to) / 2, y + 20, words, 11, {fill: colour.soft});
  }
  for (const name of stops) {
    pen.dot(x(name), y, 7, {fill: colour.ground, stroke: colour.text, width: 2.5});
  }
  const times = (/** @type {string} */ name) => hops.find((hop) => hop.name === name)?.ends ?? 0;
  const left = x("card") - 24;
  pen.text(left, top + 38, tell("roadsPasses", {pcie: times("pcie"),
    memory: times("pcie") > 2 ? 2 : 0, copies: times("copy")}), 12, {fill: colour.soft}, "left");
  const time = timeText(given.size / slowest.rate);
  pen.text(left, top + 20, tell(`roadsWay_${way}`), 13, {fill: colour.text}, "left", true);
  const takes = tell("roadsTakes", {time, rate: gb(slowest.rate),
    what: tell(`roadsHop_${slowest.name}`)});
  if (narrow) pen.text(left, top + 56, takes, 12, {fill: colour.text}, "left");
  else pen.text(x("wire") + 24, top + 20, takes, 12, {fill: colour.text}, "right");
}

/** @param {number} rate @returns {string} */
function gb(rate) {
  return `${Number((rate / 1e9).toPrecision(3))} GB/s`;
}
