// @ts-check
import {sizeText, timeText} from "../i18n.js";
import {tableOf} from "../table.js";
import {PATH_PARTS} from "./model.js";

/**
 * @typedef {import("./model.js").RunModel} RunModel
 * @typedef {import("../i18n.js").Tell} Tell
 */

const LISTED_LINKS = 40;
const secondsOf = (/** @type {number} */ ns) => timeText(ns / 1e9);

/** The rank for which the others waited longest, and how long. @param {RunModel} model */
export function mostWaitedFor(model) {
  const sums = model.names.map(() => 0);
  for (const [, peer, ns] of model.data.waits) sums[peer] += ns;
  const rank = sums.indexOf(Math.max(...sums));
  return {rank, ns: sums[rank], all: sums.reduce((a, b) => a + b, 0)};
}

/** The part that is most of the longest path. @param {RunModel} model */
export function mostOfPath(model) {
  let found = {rank: 0, part: 0, ns: 0};
  model.pathShares().forEach((parts, rank) => parts.forEach((ns, part) => {
    if (ns > found.ns) found = {rank, part, ns};
  }));
  return found;
}

/**
 * The tables behind a run.
 * @param {RunModel} model
 * @param {Tell} t
 * @returns {HTMLElement[]}
 */
export function runTables(model, t) {
  const shares = model.pathShares();
  const ranks = model.data.loads.map((/** @type {any} */ load, /** @type {number} */ r) => {
    const [sent, copied, reduced, busy, waiting, calls] = load;
    return [model.nameOf(r), ...[sent, copied, reduced].map(sizeText),
      ...[calls, busy, waiting].map(secondsOf), secondsOf(shares[r].reduce((a, b) => a + b, 0))];
  });
  const links = model.data.waits.slice(0, LISTED_LINKS).map((/** @type {any} */ wait) => {
    const [rank, peer, ns, times, most, bytes] = wait;
    return [model.nameOf(rank), model.nameOf(peer), secondsOf(ns), times.toLocaleString(),
      secondsOf(most), sizeText(bytes)];
  });
  const path = model.names.map((_, r) =>
    [model.nameOf(r), ...PATH_PARTS.map((_, k) => secondsOf(shares[r][k]))]);
  const named = (/** @type {string} */ key) => `${model.name}: ${t(key)}`;
  const head = (/** @type {string[]} */ keys) => keys.map((key) => t(key));
  return [
    tableOf(named("runByRank"), head(["runRank", "runSent", "runCopied", "runAdded", "runInCalls",
      "runBusy", "runWaiting", "runOnPath"]), ranks),
    tableOf(named("runByLink"), head(["runWho", "runForWhom", "runInAll", "runTimes", "runLongest",
      "runBytes"]), links),
    tableOf(named("runPathBy"), [t("runRank"), ...PATH_PARTS.map((part) => t(`runPart_${part}`))], path),
    tableOf(named("runByCall"), head(["runWhat", "runTimes", "runMean", "runInAll", "runLate",
      "runBehind"]), [...model.callKinds()].map(([text, row]) => [text, row.count.toLocaleString(),
        secondsOf(row.total / row.count), secondsOf(row.total), model.nameOf(row.last),
        secondsOf(row.behind / row.count)])),
  ];
}

/**
 * Two runs beside each other, by kind of call.
 * @param {RunModel[]} models
 * @param {Tell} t
 * @returns {HTMLElement}
 */
export function comparedTable(models, t) {
  const [first, second] = models.map((model) => model.callKinds());
  const rows = [...new Set([...first.keys(), ...second.keys()])].map((text) => {
    const [a, b] = [first.get(text), second.get(text)];
    const [mean, other] = [a, b].map((row) => (row ? row.total / row.count : NaN));
    const told = (/** @type {number} */ ns) => (Number.isNaN(ns) ? "–" : secondsOf(ns));
    const times = mean && other ? `${Number((other / mean).toPrecision(3))} ×` : "–";
    return [text, told(mean), told(other), Number.isNaN(other / mean) ? "–" : times];
  });
  return tableOf(t("runCompared"), [t("runWhat"), models[0].name, models[1].name,
    t("runRatio")], rows);
}
