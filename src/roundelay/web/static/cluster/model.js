// @ts-check
import {sizeText, timeText} from "../i18n.js";

/**
 * What web/data/cluster.py gives; see there. Bytes, seconds, bytes a second one way.
 * @typedef {object} Load
 * @property {string} kind
 * @property {number} link
 * @property {number[]} index
 * @property {number} count
 * @property {number} used
 * @property {number} alike
 * @property {number} bytes
 * @property {number} line
 * @property {number} rate
 * @property {number} time
 * @property {number} total
 *
 * @typedef {{rows: [number, number], out: Load, into: Load}} Edge
 * @typedef {{rows: [number, number], numbers: [number, number], cards: [number, number]}} Box
 * @typedef {{kind: string, boxes: Box[], each: number}} Column
 *
 * @typedef {object} Shown
 * @property {string} name
 * @property {string} title
 * @property {number} nodes
 * @property {number} cards
 * @property {number} ranks
 * @property {number} size
 * @property {number} first
 * @property {number} last
 * @property {number} rows
 * @property {number} middle
 * @property {Column[]} columns
 * @property {Edge[][]} gaps
 * @property {Load[]} kinds
 * @property {Load | null} busiest
 * @property {[number, number]} at
 * @property {number} time
 * @property {string} protocol
 * @property {number} slices
 * @property {number} bus
 * @property {{algorithm: string, protocol: string, channels: number, time: number} | null} nccl
 *
 * @typedef {import("../i18n.js").Tell} Tell
 */

/** Part of the busiest link's time from which a link counts as busiest, and the steps below. */
const STEPS = /** @type {[number, string][]} */ ([[1 - 1e-9, "busiest"], [0.5, "half"],
  [0.1, "tenth"], [0, "less"]]);

/**
 * How busy a link is, beside the busiest: the name of the step.
 * @param {Load} load
 * @param {Load | null} busiest
 * @returns {string}
 */
export function busyness(load, busiest) {
  if (!load.time || !busiest) return "nothing";
  const share = load.time / busiest.time;
  return STEPS.find(([least]) => share >= least)?.[1] ?? "less";
}

/**
 * A link's time as a part of the busiest one's, in words.
 * @param {Load} load
 * @param {Load | null} busiest
 * @returns {string}
 */
export function shareText(load, busiest) {
  if (!load.time || !busiest) return "0";
  const share = 100 * load.time / busiest.time;
  return share < 0.5 ? "< 1 %" : `${share.toFixed(0)} %`;
}

/** A link's name. @param {Load | {kind: string, index: number[]}} load @param {Tell} t
 * @returns {string} */
export function linkName(load, t) {
  return t(`link_${load.kind}`, load.index);
}

/** @param {number} rate @returns {string} */
export function rateText(rate) {
  const [unit, name] = rate < 1e12 ? [1e9, "GB/s"] : [1e12, "TB/s"];
  return `${Number((rate / unit).toPrecision(3))} ${name}`;
}

/**
 * All that is known of some links, in a line.
 * @param {Load} load @param {Load | null} busiest @param {Tell} t @returns {string}
 */
export function loadText(load, busiest, t) {
  const values = {name: load.link < 0 ? "" : linkName(load, t), count: load.count,
    kind: t(`kind_${load.kind}`), bytes: sizeText(load.bytes), rate: rateText(load.rate),
    time: timeText(load.time), share: shareText(load, busiest)};
  if (!load.time) return t("clusterIdle", values);
  return t(load.count > 1 ? "clusterLoads" : "clusterLoad", values);
}

/** First and last of a range. @param {[number, number]} span @returns {string} */
export function spanText([a, b]) {
  return a === b ? String(a) : `${a}–${b}`;
}

/**
 * The ranges of cards around one, from all of them on: the whole, its nodes, its node, the card.
 * @param {Shown} shown
 * @param {Tell} t
 * @returns {{first: number, last: number, text: string}[]}
 */
export function wayIn({first, last, cards, nodes}, t) {
  const found = [{first: 0, last: nodes * cards - 1, text: t("clusterWhole")}];
  const [low, high] = [Math.floor(first / cards), Math.floor(last / cards)];
  const count = high - low + 1;
  if (count < nodes) {
    found.push({first: low * cards, last: (high + 1) * cards - 1,
      text: `${t(count > 1 ? "clusterNodes" : "clusterNode")} ${spanText([low, high])}`});
  }
  if (last - first + 1 < cards) {
    found.push({first, last, text: `${t(first < last ? "clusterCards" : "clusterCard")} `
      + spanText([first % cards, last % cards])});
  }
  return found;
}
