// @ts-check
import {along, cellAt, wayOf} from "./geometry.js";

/**
 * @typedef {import("../pen.js").Pen} Pen
 * @typedef {import("./geometry.js").Geometry} Geometry
 * @typedef {import("./model.js").Model} Model
 * @typedef {Record<string, string>} Palette colours by what they mean, from the style sheet
 */

const TOKENS = 600; // moves of a step up to which each is a piece that flies
const READABLE = 4.5; // pixels of a cell below which a card shows only how much it has
const CROWD = 200; // and above which ways have neither heads nor dashes

/**
 * The cards with their pieces.
 * @param {Pen} pen
 * @param {Model} model
 * @param {Geometry} g
 * @param {Palette} colour
 * @param {import("../i18n.js").Tell} t
 */
export function drawCards(pen, model, g, colour, t) {
  for (let place = 0; place < model.places; place += 1) {
    const [x, y] = g.centre[place];
    const isSwitch = place >= model.data.ranks;
    const look = {fill: colour.card, stroke: isSwitch ? colour.soft : colour.line,
      width: isSwitch ? 1.5 : 1};
    pen.box(x - g.side / 2, y - g.side / 2, g.side, g.side, g.side * (isSwitch ? 0.22 : 0.09),
      look);
    if (g.cell < READABLE || !g.head) drawShare(pen, model, g, colour, place);
    else drawCells(pen, model, g, colour, place, t);
    drawName(pen, model, g, colour, place, t);
  }
}

/** A card's name, above its pieces, or its number in the middle where it is small.
 * @param {Pen} pen @param {Model} model @param {Geometry} g @param {Palette} colour
 * @param {number} place @param {import("../i18n.js").Tell} t */
function drawName(pen, model, g, colour, place, t) {
  const [x, y] = g.centre[place];
  const isSwitch = place >= model.data.ranks;
  const short = isSwitch ? `S${place - model.data.ranks}` : String(place);
  if (!g.head) {
    const [done, wanted] = shareOf(model, place);
    const fill = done >= wanted ? colour.ground : colour.text;
    pen.text(x, y, short, Math.min(11, g.side * 0.6), {fill}, "center", true);
    return;
  }
  const named = isSwitch ? t("switch", {number: place - model.data.ranks})
    : t("placeRank", {rank: place});
  const name = g.side >= (isSwitch ? 72 : 60) ? named : short;
  pen.text(x, y - g.side / 2 + g.head * 0.62 + 1, name, Math.min(15, g.head * 0.85),
    {fill: colour.text}, "center", true);
}

/** How much a card has of what it needs, in contributions, and how much that is.
 * @param {Model} model @param {number} place @returns {[number, number]} */
function shareOf(model, place) {
  const pieces = model.data.pieces.length;
  const needed = model.need[place]?.size ? [...model.need[place]] : [...Array(pieces).keys()];
  let [done, wanted] = [0, 0];
  for (const piece of needed) {
    done += model.counts[place * pieces + piece];
    wanted += model.data.wanted[piece];
  }
  return [done, wanted];
}

/** The part of its pieces that a card has, where each would be too small to see.
 * @param {Pen} pen @param {Model} model @param {Geometry} g @param {Palette} colour
 * @param {number} place */
function drawShare(pen, model, g, colour, place) {
  const [done, wanted] = shareOf(model, place);
  const [x, y] = g.centre[place];
  const pad = g.head ? 0.1 * g.side : 1;
  const [w, h] = [g.side - 2 * pad, g.side - 2 * pad - g.head];
  const high = h * Math.min(1, done / wanted);
  const bottom = y + g.side / 2 - pad;
  pen.box(x - w / 2, bottom - h, w, h, 0, {fill: colour.empty});
  pen.box(x - w / 2, bottom - high, w, high, 0, {fill: done < wanted ? colour.part : colour.done});
}

/** @param {Pen} pen @param {Model} model @param {Geometry} g @param {Palette} colour
 * @param {number} place @param {import("../i18n.js").Tell} t */
function drawCells(pen, model, g, colour, place, t) {
  const pieces = model.data.pieces.length;
  const pad = g.cell > 12 ? 1.5 : g.cell > 5 ? 0.75 : 0.25;
  const [wide, high] = [g.wide - 2 * pad, g.high - 2 * pad];
  const round = g.cell > 12 ? 3 : 0;
  for (let piece = 0; piece < pieces; piece += 1) {
    const [left, top] = cellAt(g, place, piece, pieces).map((v) => v + pad);
    const at = place * pieces + piece;
    const [count, wanted] = [model.counts[at], model.data.wanted[piece]];
    const wrong = model.isWrong(place, piece);
    const done = model.isDone(place, piece);
    const filled = wrong ? 1 : Math.min(1, count / Math.max(1, wanted));
    pen.box(left, top, wide, high, round, {fill: colour.empty});
    if (count || wrong) {
      const fill = wrong ? colour.wrong : done ? colour.done : colour.part;
      pen.box(left, top + high * (1 - filled), wide, high * filled, filled === 1 ? round : 0, {fill});
    }
    if (model.step && model.changed.get(at) === model.step) {
      pen.box(left, top, wide, high, round, {stroke: colour.text, width: g.cell > 20 ? 2 : 1});
    }
    if (!g.label) continue;
    const ink = done || wrong ? colour.ground : count ? colour.text : colour.soft;
    const held = wrong ? "!" : done ? "✓" : model.data.sums ? `${count}/${wanted}` : count ? "•" : "";
    drawLabel(pen, g, model.data.pieces[piece], wrong && model.data.sums ? `! ${count}/${wanted}` : held,
      [left, top, wide, high], ink, t);
  }
}

/** Which piece a cell is, and what is in it; only the former where there is little room.
 * @param {Pen} pen @param {Geometry} g @param {string} name @param {string} held
 * @param {number[]} box left, top, width, height @param {string} ink
 * @param {import("../i18n.js").Tell} t */
function drawLabel(pen, g, name, held, [left, top, wide, high], ink, t) {
  const [x, y] = [left + wide / 2, top + high / 2];
  const tall = g.label === "full" && high >= 34;
  if (tall) {
    const whole = t("pieceShort", {name});
    pen.text(left + 4, top + 9, whole.length * 5.4 < wide - 6 ? whole : name, 10, {fill: ink}, "left");
  } else if (g.label === "full") {
    const size = Math.min(12, high * 0.78);
    pen.text(left + 3, y, name, size, {fill: ink}, "left", true);
    if (held !== "✓") pen.text(left + wide - 3, y, held, size, {fill: ink}, "right");
  } else if (held !== "✓") {
    pen.text(x, y, held.startsWith("!") ? "!" : name, Math.min(13, high * 0.7), {fill: ink}, "center",
      held.startsWith("!"));
  }
  if (held === "✓") {
    const [at, size] = tall ? [y + high * 0.1, high * 0.42] : [y, Math.min(14, high * 0.6)];
    tick(pen, g.label === "full" && !tall ? left + wide - 4 - size / 2 : x, at, size, ink);
  } else if (tall) {
    pen.text(x, y + high * 0.1, held, Math.min(15, wide * 0.3, high * 0.36), {fill: ink});
  }
}

/** @param {Pen} pen @param {number} x @param {number} y @param {number} size @param {string} ink */
function tick(pen, x, y, size, ink) {
  const [a, b] = [size * 0.42, size * 0.3];
  pen.path(`M${x - a} ${y}L${x - a / 4} ${y + b}L${x + a} ${y - b}`,
    {stroke: ink, width: Math.max(1.3, size * 0.14)});
}

/**
 * The moves of a step between places.
 * @param {Model} model @param {number} step
 */
function movesOf(model, step) {
  return (model.data.states[step]?.moves ?? []).filter(([src, dst]) => src !== dst);
}

/**
 * The ways of a step's moves: thick for many pieces, faint where there are many or where pieces fly.
 * @param {Pen} pen
 * @param {Model} model
 * @param {Geometry} g
 * @param {Palette} colour
 * @param {number} step
 * @param {boolean} flying
 */
export function drawWays(pen, model, g, colour, step, flying) {
  const moves = movesOf(model, step);
  const many = moves.length > CROWD;
  const alpha = many ? Math.max(0.04, 40 / moves.length) : flying ? 0.28 : 0.6;
  for (const [src, dst, pieces, add] of moves) {
    const way = wayOf(g, src, dst, !many);
    const wide = 1 + 3.5 * (pieces.length / model.widest) * Math.min(1, g.side / 60);
    const ink = add ? colour.add : colour.copy;
    const [a, b, c] = way;
    pen.path(`M${a[0]} ${a[1]}Q${b[0]} ${b[1]} ${c[0]} ${c[1]}`,
      {stroke: ink, width: many ? 1 : wide, dash: add || many ? undefined : [5, 4], alpha});
    if (g.side > 16 && !many) drawHead(pen, way, ink, alpha * 1.2, Math.min(9, 4 + wide));
  }
}

/**
 * The pieces that fly along the ways.
 * @param {Pen} pen
 * @param {Model} model
 * @param {Geometry} g
 * @param {Palette} colour
 * @param {number} step whose moves
 * @param {number} f how far they have come, from 0 to 1
 */
export function drawPieces(pen, model, g, colour, step, f) {
  const moves = movesOf(model, step);
  if (moves.length > TOKENS) return;
  const eased = f * f * (3 - 2 * f);
  for (const [src, dst, pieces, add] of moves) {
    const [x, y] = along(wayOf(g, src, dst, moves.length <= CROWD), eased);
    drawToken(pen, model, g, colour, x, y, pieces, add);
  }
}

/** @param {Pen} pen @param {import("./geometry.js").Way} way
 * @param {string} ink @param {number} alpha @param {number} size */
function drawHead(pen, [, b, c], ink, alpha, size) {
  const long = Math.hypot(c[0] - b[0], c[1] - b[1]) || 1;
  const [ux, uy] = [(c[0] - b[0]) / long, (c[1] - b[1]) / long];
  const [x, y] = [c[0] - ux * size, c[1] - uy * size];
  const w = size * 0.55;
  pen.path(`M${c[0]} ${c[1]}L${x - uy * w} ${y + ux * w}L${x + uy * w} ${y - ux * w}Z`,
    {fill: ink, alpha});
}

/** @param {Pen} pen @param {Model} model @param {Geometry} g @param {Palette} colour
 * @param {number} x @param {number} y @param {number[]} pieces @param {boolean} add */
function drawToken(pen, model, g, colour, x, y, pieces, add) {
  const ink = add ? colour.add : colour.copy;
  if (g.side < 30 || (!g.label && pieces.length === 1)) {
    pen.dot(x, y, Math.max(2, Math.min(7, g.side * 0.14)), add ? {fill: ink} : {fill: colour.ground, stroke: ink,
      width: 1.5});
    return;
  }
  const text = pieces.length === 1 ? model.data.pieces[pieces[0]] : `×${pieces.length}`;
  const high = Math.min(24, Math.max(15, g.side * 0.24));
  const wide = Math.max(high, text.length * high * 0.42 + 10);
  pen.box(x - wide / 2, y - high / 2, wide, high, high / 3,
    add ? {fill: ink} : {fill: colour.ground, stroke: ink, width: 2, dash: [4, 2]});
  pen.text(x, y, text, high * 0.6, {fill: add ? colour.ground : ink}, "center", true);
}

/**
 * The way by which a piece came where it is.
 * @param {Pen} pen
 * @param {Geometry} g
 * @param {Palette} colour
 * @param {{step: number, src: number, dst: number}[]} history
 */
export function drawHistory(pen, g, colour, history) {
  for (const {step, src, dst} of history) {
    const way = wayOf(g, src, dst);
    const [a, b, c] = way;
    pen.path(`M${a[0]} ${a[1]}Q${b[0]} ${b[1]} ${c[0]} ${c[1]}`, {stroke: colour.text, width: 2.5});
    drawHead(pen, way, colour.text, 1, 9);
    const [x, y] = along(way, 0.5);
    pen.dot(x, y, 9, {fill: colour.text});
    pen.text(x, y, String(step), 10, {fill: colour.ground}, "center", true);
  }
}
