// @ts-check
import {timeText} from "../i18n.js";
import {EVENT_KINDS, NEAR, PATH_PARTS, placeOf} from "./model.js";

/**
 * @typedef {import("./model.js").RunModel} RunModel
 * @typedef {{from: number, to: number}} Span ns
 */

export const LANE_LEFT = 74;
const LANE_TOP = 26;
const LANE_GAP = 8;
const LABEL_LEAST = 64;
/** Events of a lane up to which each of them is drawn. */
const EACH = 600;

/** How high a lane is. @param {number} lanes @returns {number} */
export function laneHeight(lanes) {
  return Math.max(12, Math.min(44, Math.floor(420 / lanes) - LANE_GAP));
}

/** How high the picture is. @param {number} lanes @returns {number} */
export function lanesHigh(lanes) {
  return LANE_TOP + lanes * (laneHeight(lanes) + LANE_GAP) + 6;
}

/** Where a lane begins. @param {number} rank @param {number} lanes @returns {number} */
export function laneY(rank, lanes) {
  return LANE_TOP + rank * (laneHeight(lanes) + LANE_GAP);
}

/**
 * Every rank's lane over a span of time: filled where it works, hatched where it waits.
 * @param {import("../pen.js").Pen} pen
 * @param {number} width
 * @param {RunModel} model
 * @param {Span} span
 * @param {{path: boolean, event: number, lane: number}} shown
 * @param {Record<string, string>} colour
 */
export function drawLanes(pen, width, model, span, shown, colour) {
  const lanes = model.lanes.length;
  const scale = (width - LANE_LEFT - 8) / (span.to - span.from);
  const x = (/** @type {number} */ ns) => LANE_LEFT + (ns - span.from) * scale;
  drawTimes(pen, width, lanes, span, x, colour);
  const high = laneHeight(lanes);
  model.lanes.forEach((lane, rank) => {
    const y = laneY(rank, lanes);
    const picked = rank === shown.lane;
    pen.text(LANE_LEFT - 10, y + high / 2, shortName(model.nameOf(rank)), 13,
      {fill: picked ? colour.text : colour.soft}, "right", picked);
    pen.box(LANE_LEFT, y, width - LANE_LEFT - 8, high, 0, {fill: colour.empty, alpha: 0.55});
    const from = placeOf(model.at.begin, span.from, lane.first, lane.last) + 1;
    const to = placeOf(model.at.begin, span.to, lane.first, lane.last) + 1;
    const before = Math.max(lane.first, from - NEAR);
    if (to - from <= EACH) drawEach(pen, width, model, rank, before, to, x, y, high, colour);
    else drawShares(pen, width, lane, span, 1 / scale, y, high, lanes > 16 ? 2 : 1, colour);
  });
  if (shown.path) drawPath(pen, width, model, span, x, high, colour);
  if (shown.event >= 0) drawPicked(pen, model, shown.event, x, high, colour);
}

/** @param {string} name @returns {string} */
function shortName(name) {
  return name.length > 9 ? `${name.slice(0, 8)}…` : name;
}

/** The axis above. @param {import("../pen.js").Pen} pen @param {number} width
 * @param {number} lanes @param {Span} span @param {(ns: number) => number} x
 * @param {Record<string, string>} colour */
function drawTimes(pen, width, lanes, span, x, colour) {
  const about = ((span.to - span.from) * 110) / (width - LANE_LEFT);
  const power = 10 ** Math.floor(Math.log10(about));
  const step = power * ([1, 2, 5, 10].find((k) => k * power >= about) ?? 10);
  for (let at = Math.ceil(span.from / step) * step; at <= span.to; at += step) {
    pen.path(`M${x(at).toFixed(1)} ${LANE_TOP - 4}V${lanesHigh(lanes) - 4}`,
      {stroke: colour.line, width: 1, alpha: 0.6});
    pen.text(x(at), 12, at ? timeText(at / 1e9) : "0", 12, {fill: colour.soft});
  }
}

/** Every event by itself. @param {import("../pen.js").Pen} pen @param {number} width
 * @param {RunModel} model @param {number} rank @param {number} from @param {number} to
 * @param {(ns: number) => number} x @param {number} y @param {number} high
 * @param {Record<string, string>} colour */
function drawEach(pen, width, model, rank, from, to, x, y, high, colour) {
  const {begin, wait, work, kind} = model.at;
  const {calls} = model.lanes[rank];
  const clip = (/** @type {number} */ at) =>
    Math.max(LANE_LEFT, Math.min(width - 8, x(at)));
  for (let i = Math.max(0, placeOf(calls.begin, nsAt(x, LANE_LEFT))); i < calls.begin.length; i += 1) {
    const [a, b] = [clip(calls.begin[i]), clip(calls.end[i])];
    if (a >= width - 8) break;
    if (b > a) pen.box(a, y, b - a, high, 0, {stroke: colour.soft, width: 1});
  }
  const fills = [colour.copy, colour.part, colour.add];
  for (let i = from; i < to; i += 1) {
    if (kind[i] > 2) continue;
    const [a, b] = [clip(begin[i]), clip(begin[i] + wait[i])];
    const c = clip(begin[i] + wait[i] + work[i]);
    if (b - a > 0.5) drawWaiting(pen, a, y + high * 0.15, b - a, high * 0.3, colour);
    if (c <= a) continue;
    const top = y + high * 0.5;
    pen.box(b, top, Math.max(0.8, c - b), high * 0.5, 0, {fill: fills[kind[i]]});
    if (c - b > 14 && high > 20) {
      const name = EVENT_KINDS[kind[i]];
      const ink = {fill: kind[i] === 1 ? colour.text : colour.ground};
      pen.text((b + c) / 2, top + high / 4, c - b > LABEL_LEAST ? name : name[0].toUpperCase(), 11,
        ink);
    }
  }
}

/** The ns at an x, of a linear x. @param {(ns: number) => number} x @param {number} wanted */
function nsAt(x, wanted) {
  const zero = x(0);
  return (wanted - zero) / (x(1e6) - zero) * 1e6;
}

/** Waiting is hatched. @param {import("../pen.js").Pen} pen @param {number} x @param {number} y
 * @param {number} w @param {number} h @param {Record<string, string>} colour */
function drawWaiting(pen, x, y, w, h, colour) {
  pen.box(x, y, w, h, 0, {fill: colour.wrong, alpha: 0.16});
  let d = "";
  for (let at = 4; at < w; at += 6) {
    d += `M${(x + at).toFixed(1)} ${y.toFixed(1)}l-${Math.min(4, at).toFixed(1)} ${h.toFixed(1)}`;
  }
  if (d) pen.path(d, {stroke: colour.wrong, width: 1});
}

/**
 * For each column of pixels, how much of it is work (from below) and waiting (from above).
 * @param {import("../pen.js").Pen} pen @param {number} width
 * @param {import("./model.js").Lane} lane @param {Span} span @param {number} per ns of a pixel
 * @param {number} y @param {number} high @param {number} wide pixels of a column
 * @param {Record<string, string>} colour
 */
function drawShares(pen, width, lane, span, per, y, high, wide, colour) {
  const columns = Math.floor((width - LANE_LEFT - 8) / wide);
  const [worked, waited, called] = [lane.work, lane.wait, lane.calls].map((stretches) =>
    stretches.shares(span.from, per * wide, columns));
  const rest = waited.map((share, k) => Math.min(1 - worked[k], share));
  // Colour by colour and runs of equal columns at once: a canvas is slow where its colour changes.
  const fill = (/** @type {Float64Array} */ shares, /** @type {boolean} */ above,
    /** @type {import("../pen.js").Look} */ look) => {
    for (let k = 0, next = 0; k < columns; k = next) {
      const part = Math.round(high * shares[k]);
      for (next = k + 1; next < columns && Math.round(high * shares[next]) === part;) next += 1;
      if (!part) continue;
      pen.box(LANE_LEFT + k * wide, above ? y : y + high - part, (next - k) * wide, part, 0, look);
    }
  };
  fill(called, false, {fill: colour.line, alpha: 0.5});
  fill(rest, true, {fill: colour.wrong, alpha: 0.28});
  let hatch = "";
  for (let k = 0; k < columns; k += Math.ceil(6 / wide)) {
    if (rest[k]) hatch += `M${LANE_LEFT + k * wide + 1} ${y}v${(high * rest[k]).toFixed(1)}`;
  }
  if (hatch) pen.path(hatch, {stroke: colour.wrong, width: 1});
  fill(worked, false, {fill: colour.add});
}

/** The longest path: a band below the lane that it is in, and lines where a message takes it on.
 * @param {import("../pen.js").Pen} pen @param {number} width @param {RunModel} model
 * @param {Span} span @param {(ns: number) => number} x @param {number} high
 * @param {Record<string, string>} colour */
function drawPath(pen, width, model, span, x, high, colour) {
  const {begin, end, rank, source, part} = model.path;
  const lanes = model.lanes.length;
  const first = Math.max(0, placeOf(begin, span.from));
  const last = placeOf(begin, span.to);
  const bottom = (/** @type {number} */ r) => laneY(r, lanes) + high + 3;
  if (last - first > width / 3) {
    let since = LANE_LEFT;
    let lane = -1;
    for (let k = LANE_LEFT; k <= width - 8; k += 1) {
      const at = k < width - 8 ? model.pathAt(nsAt(x, k + 0.5)) : -1;
      const now = at < 0 ? -1 : rank[at];
      if (now === lane) continue;
      if (lane >= 0) pen.box(since, bottom(lane) - 2, k - since, 5, 0, {fill: colour.text});
      [since, lane] = [k, now];
    }
    return;
  }
  for (let i = first; i <= last; i += 1) {
    const a = Math.max(LANE_LEFT, x(begin[i]));
    const b = Math.min(width - 8, x(end[i]));
    if (b < a) continue;
    const dash = PATH_PARTS[part[i]] === "work" ? [] : [3, 3];
    const from = PATH_PARTS[part[i]] === "message" ? source[i] : rank[i];
    pen.path(`M${a.toFixed(1)} ${bottom(from)}L${b.toFixed(1)} ${bottom(rank[i])}`,
      {stroke: colour.text, width: part[i] ? 2 : 4, dash});
  }
}

/** The event that was chosen, and the send that it waited for. @param {import("../pen.js").Pen} pen
 * @param {RunModel} model @param {number} event @param {(ns: number) => number} x
 * @param {number} high @param {Record<string, string>} colour */
function drawPicked(pen, model, event, x, high, colour) {
  const {begin, wait, work, cause} = model.at;
  const lanes = model.lanes.length;
  const mark = (/** @type {number} */ i) => {
    const lane = model.lanes.findIndex(({last}) => i < last);
    const y = laneY(lane, lanes);
    const [a, b] = [x(begin[i]), x(begin[i] + wait[i] + work[i])];
    if (b > LANE_LEFT) {
      const left = Math.max(LANE_LEFT, a) - 1.5;
      pen.box(left, y - 1.5, Math.max(3, b - left + 1.5), high + 3, 2, {stroke: colour.text, width: 2});
    }
    return {y, ready: x(begin[i] + wait[i]), end: b};
  };
  const here = mark(event);
  if (cause[event] < 0) return;
  const sent = mark(cause[event]);
  const down = here.y > sent.y;
  const from = sent.y + (down ? high : 0);
  const to = here.y + (down ? 0 : high);
  if (here.ready > LANE_LEFT) {
    pen.path(`M${Math.max(LANE_LEFT, sent.end).toFixed(1)} ${from}L${here.ready.toFixed(1)} ${to}`,
      {stroke: colour.text, width: 1.5, dash: [4, 3]});
    pen.dot(here.ready, to, 3, {fill: colour.text});
  }
}
