// @ts-check
import {jobLetter, longerText} from "./model.js";

/**
 * @typedef {import("../pen.js").Pen} Pen
 * @typedef {import("./model.js").JobLog} JobLog
 * @typedef {import("./model.js").JobFilm} JobFilm
 * @typedef {import("./model.js").Moment} Moment
 * @typedef {import("./model.js").Stay} Stay
 * @typedef {{node: number, x: number, y: number}} Cell
 * @typedef {{level: number, domain: number, x: number, y: number, w: number, h: number}} Box
 */

// Light enough for dark letters; neighbours differ in hue and lightness. Letters tell jobs apart.
const JOB_COLOURS = ["#9cc4f2", "#f2c38b", "#9fdcc4", "#f0b3c6", "#e0d878", "#c9bcf2", "#c3cbd3",
  "#e0a58c"];
const JOB_INK = "#1b2027";
const NODE_SIZES = [52, 44, 36, 28, 22, 16, 12, 8, 5];
const TALL = 560;
const [POD_HEAD, LEAF_HEAD, JOBS_PAD] = [30, 22, 6];

/** @param {JobFilm} film @param {number} job @returns {string} */
export function jobColour(film, job) {
  return JOB_COLOURS[Math.max(0, film.colours[job]) % JOB_COLOURS.length];
}

/** Where nodes, leaves and pods stand: the largest cells with which all is not too tall.
 * @param {JobLog} log @param {number} width */
export function jobsPlaces(log, width) {
  const made = NODE_SIZES.map((cell) => nodePlaces(log, width, cell));
  return made.find((one) => one && one.height <= TALL) ?? made.findLast((one) => one) ??
    /** @type {NonNullable<ReturnType<typeof nodePlaces>>} */ (nodePlaces(log, width, 3));
}

/** @param {JobLog} log @param {number} width @param {number} cell */
function nodePlaces(log, width, cell) {
  const [leaf, pod] = [0, 1].map((level) => Math.min(log.nodes, log.levels[level]?.nodes ?? log.nodes));
  const most = Math.max(1, Math.floor((width - 6 * JOBS_PAD) / (cell + 2)));
  const columns = Math.min(most, leaf <= 4 ? Math.min(2, leaf) : Math.ceil(Math.sqrt(2 * leaf)));
  if (cell > 3 && most < 2) return null;
  const [wide, high] = [columns * (cell + 2) + 2 * JOBS_PAD,
    Math.ceil(leaf / columns) * (cell + 2) + LEAF_HEAD + JOBS_PAD];
  const whole = Math.ceil(Math.min(pod, log.nodes) / leaf);
  const fit = Math.max(1, Math.floor((width - 2 * JOBS_PAD) / (wide + JOBS_PAD)));
  const across = Math.min(fit, whole);
  const [podWide, podTall] = [across * (wide + JOBS_PAD) + JOBS_PAD,
    POD_HEAD + Math.ceil(whole / across) * (high + JOBS_PAD) + 2];
  const pods = Math.max(1, Math.floor(width / (podWide + JOBS_PAD)));
  /** @type {Cell[]} */
  const cells = [];
  /** @type {Box[]} */
  const boxes = [];
  for (let first = 0; first < log.nodes; first += pod) {
    const leaves = Math.ceil(Math.min(pod, log.nodes - first) / leaf);
    const domain = first / pod;
    const start = 1 + (domain % pods) * (podWide + JOBS_PAD);
    const y = 2 + Math.floor(domain / pods) * (podTall + JOBS_PAD);
    boxes.push({level: 1, domain, x: start, y, w: podWide, h: podTall});
    for (let k = 0; k < leaves; k += 1) {
      const x = start + JOBS_PAD + (k % across) * (wide + JOBS_PAD);
      const top = y + POD_HEAD + Math.floor(k / across) * (high + JOBS_PAD);
      boxes.push({level: 0, domain: first / leaf + k, x, y: top, w: wide, h: high});
      for (let i = 0; i < leaf && first + k * leaf + i < Math.min(first + pod, log.nodes); i += 1) {
        cells.push({node: first + k * leaf + i, x: x + JOBS_PAD + (i % columns) * (cell + 2),
          y: top + LEAF_HEAD + Math.floor(i / columns) * (cell + 2)});
      }
    }
  }
  const rows = Math.ceil(Math.ceil(log.nodes / pod) / pods);
  return {cell, cells, boxes, height: rows * (podTall + JOBS_PAD) + 2};
}

/** Who has cards of each node: [node] stays with their cards. @param {JobLog} log
 * @param {Moment} moment @returns {Map<number, {stay: Stay, cards: number, block: number}[]>} */
export function holders(log, moment) {
  const found = new Map();
  for (const stay of moment.running) {
    stay.start.nodes.forEach((node, block) => {
      const listed = found.get(node) ?? [];
      const own = listed.find((/** @type {any} */ one) => one.stay === stay);
      if (own) own.cards += log.jobs[stay.job].block;
      else listed.push({stay, cards: log.jobs[stay.job].block, block});
      found.set(node, listed);
    });
  }
  return found;
}

/**
 * The cluster at a moment: nodes with their jobs, and how full the links above them are.
 * @param {Pen} pen @param {number} width @param {JobFilm} film @param {Moment} moment
 * @param {number} chosen job
 * @param {{level: number, domain: number} | null} busiest
 * @param {Record<string, string>} colour @param {import("../i18n.js").Tell} t
 */
export function drawJobs(pen, width, film, moment, chosen, busiest, colour, t) {
  const {log} = film;
  const {cell, cells, boxes} = jobsPlaces(log, width);
  for (const box of boxes) {
    const level = log.levels[box.level];
    const top = !level || level.nodes >= log.nodes;
    pen.box(box.x, box.y, box.w, box.h, 6, {fill: box.level ? colour.empty : colour.ground,
      stroke: colour.line, width: 1});
    const filled = top ? null : moment.loads[box.level]?.get(box.domain) ?? 0;
    const mark = busiest?.level === box.level && busiest.domain === box.domain;
    drawDomain(pen, box, level ? t(`fabric_${level.name}`) : "", filled, mark, colour);
  }
  const held = holders(log, moment);
  for (const one of cells) {
    drawJobNode(pen, one, cell, held.get(one.node) ?? [], film, moment, chosen, colour);
  }
}

/** A switch above its nodes: its name, and how full its links up are. @param {Pen} pen
 * @param {Box} box @param {string} name @param {number | null} filled @param {boolean} mark
 * @param {Record<string, string>} colour */
function drawDomain(pen, box, name, filled, mark, colour) {
  const y = box.y + (box.level ? 14 : 11);
  const small = box.w < 90;
  const said = small ? String(box.domain) : `${name} ${box.domain}`;
  if (box.w >= 50) pen.text(box.x + 8, y, said, 12, {fill: colour.text}, "left", box.level > 0);
  if (filled === null) return;
  const text = `${mark ? "◆ " : ""}${Math.round(100 * filled)} %`;
  if (box.w >= 50) {
    pen.text(box.x + box.w - 6, y, text, 12, {fill: mark ? colour.wrong : colour.soft}, "right", mark);
  }
  const wide = box.w - 12;
  pen.box(box.x + 6, y + 8, wide, 3, 1, {fill: colour.line});
  pen.box(box.x + 6, y + 8, wide * Math.min(1, filled), 3, 1, {fill: mark ? colour.wrong : colour.add});
}

/** @param {Pen} pen @param {Cell} at @param {number} size
 * @param {{stay: Stay, cards: number, block: number}[]} held @param {JobFilm} film
 * @param {Moment} moment @param {number} chosen @param {Record<string, string>} colour */
function drawJobNode(pen, at, size, held, film, moment, chosen, colour) {
  const {log} = film;
  const {node, x, y} = at;
  const out = moment.out.has(node);
  pen.box(x, y, size, size, 2, {fill: colour.empty, stroke: colour.line, width: 1});
  let left = x;
  for (const {stay, cards, block} of held) {
    const wide = (size * cards) / log.cards;
    const own = stay.job === chosen;
    pen.box(left, y, wide, size, 2, {fill: jobColour(film, stay.job)});
    const text = own && size >= 28 ? String(block * log.jobs[stay.job].block) : jobLetter(stay.job);
    const letters = Math.min(14, size * 0.45, (wide * 1.5) / text.length);
    if (letters >= 6) pen.text(left + wide / 2, y + size / 2, text, letters, {fill: JOB_INK}, "center", own);
    if (own) pen.box(left + 1.5, y + 1.5, wide - 3, size - 3, 2, {stroke: JOB_INK, width: size < 16 ? 2 : 3});
    left += wide;
  }
  if (out) {
    pen.path(`M${x + 3} ${y + 3}L${x + size - 3} ${y + size - 3}M${x + size - 3} ${y + 3}L${x + 3} ` +
      `${y + size - 3}`, {stroke: colour.wrong, width: size > 12 ? 2 : 1});
  }
  if (moment.slow.has(node)) {
    pen.path(`M${x + 2} ${y + size - 3}q${size / 8} -5 ${size / 4} 0t${size / 4} 0t${size / 4} 0`,
      {stroke: held.length ? JOB_INK : colour.wrong, width: 2});
  }
}

const [STORY_HIGH, STORY_LEFT] = [112, 10];

/** @returns {number} */
export function storyHigh() {
  return STORY_HIGH;
}

/**
 * A job from its arrival to its end: waiting, and on its nodes.
 * @param {Pen} pen @param {number} width @param {JobFilm} film
 * @param {number} job @param {number} now seconds @param {Record<string, string>} colour
 * @param {import("../i18n.js").Tell} t
 */
export function drawStory(pen, width, film, job, now, colour, t) {
  const own = film.stays.filter((stay) => stay.job === job);
  const from = film.log.jobs[job].submit_s;
  const until = own[own.length - 1]?.left?.at_s ?? film.events[film.events.length - 1].at_s;
  const scale = (width - 2 * STORY_LEFT) / Math.max(1, until - from);
  const x = (/** @type {number} */ time) => STORY_LEFT + (time - from) * scale;
  const [y, high] = [28, 34];
  pen.box(x(from), y + high / 2 - 4, x(until) - x(from), 8, 2, {fill: colour.empty, stroke: colour.soft,
    width: 1, dash: [4, 3]});
  for (const {start, left} of own) {
    const end = left?.at_s ?? until;
    const wide = Math.max(2, x(end) - x(start.at_s));
    pen.box(x(start.at_s), y, wide, high, 3, {fill: jobColour(film, job), stroke: JOB_INK, width: 1});
    if (wide > 52) pen.text(x(start.at_s) + wide / 2, y + high / 2, longerText(start.exchange), 12,
      {fill: JOB_INK});
    if (left?.what === "stop") {
      pen.text(Math.min(x(end), width - 8), y - 9, "✕", 14, {fill: colour.wrong}, "center", true);
    }
  }
  if (now >= from && now <= until) {
    pen.path(`M${x(now).toFixed(1)} 6V${y + high + 6}`, {stroke: colour.text, width: 2});
  }
  pen.text(STORY_LEFT, y + high + 18, t("jobsArrives"), 12, {fill: colour.soft}, "left");
  pen.text(width - STORY_LEFT, y + high + 18, t("jobsEnds"), 12, {fill: colour.soft}, "right");
}
