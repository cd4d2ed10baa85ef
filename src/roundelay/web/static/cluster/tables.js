// @ts-check
import {button, el} from "../dom.js";
import {sizeText, timeText} from "../i18n.js";
import {tableOf} from "../table.js";
import {busyness, linkName, rateText, shareText, spanText} from "./model.js";

/** @typedef {import("../i18n.js").Tell} Tell */
/** @typedef {import("./model.js").Shown} Shown */

/**
 * Classes of links, the busiest first.
 * @param {Shown} shown
 * @param {(link: number) => void} choose
 * @param {Tell} t
 * @returns {HTMLElement}
 */
export function kindsTable({kinds, busiest}, choose, t) {
  const rows = kinds.map((load) => [t(`kind_${load.kind}`),
    (busyness(load, busiest) === "busiest" ? "◆ " : "") + shareText(load, busiest),
    load.time ? timeText(load.time) : "–",
    load.time ? button(linkName(load, t), () => choose(load.link), {class: "small"})
      : t("clusterUnused"),
    [load.alike, load.used, load.count].map((k) => k.toLocaleString("en")).join(" / "),
    sizeText(load.bytes), rateText(load.line), rateText(load.rate)]);
  return tableOf(t("kindsTable"), ["kindsKind", "kindsShare", "kindsTime", "kindsBusiest",
    "kindsAlike", "bytes", "kindsLine", "kindsRate"].map((key) => t(key)), rows);
}

/**
 * Every bundle that the picture shows.
 * @param {Shown} shown
 * @param {Tell} t
 * @returns {HTMLElement}
 */
export function linksTable(shown, t) {
  const rows = shown.gaps.flatMap((edges, gap) => {
    const side = gap < shown.middle ? gap + 1 : gap;
    const {kind, boxes} = shown.columns[side];
    return edges.flatMap(({rows: [a, b], out, into}) => [out, into].map((load) => {
      const near = boxes.filter((box) => box.rows[0] <= b && box.rows[1] >= a);
      const span = near.length ? spanText([near[0].numbers[0], near[near.length - 1].numbers[1]])
        : "";
      return [`${t(`fabric_${kind}`)} ${span}`, t(`kind_${load.kind}`),
        load.time ? linkName(load, t) : t("clusterUnused"), String(load.count),
        sizeText(load.bytes), sizeText(load.total), load.time ? timeText(load.time) : "–",
        shareText(load, shown.busiest)];
    }));
  });
  return tableOf(t("linksTable"), ["linksAt", "kindsKind", "kindsBusiest", "linksCount", "bytes",
    "linksTotal", "kindsTime", "kindsShare"].map((key) => t(key)), rows);
}

/**
 * The moves that cross a link.
 * @param {any} found as web/data/crossing.py gives it
 * @param {Tell} t
 * @returns {HTMLElement[]}
 */
export function crossingTable(found, t) {
  const name = linkName(found, t);
  const place = (/** @type {number} */ p) => (p < found.ranks ? t("card", {rank: p})
    : t("switch", {number: p - found.ranks}));
  const says = found.count ? t("crossingSays", {count: found.count.toLocaleString("en"),
    bytes: sizeText(found.bytes), pairs: found.pairs.toLocaleString("en"), a: found.steps[0],
    b: found.steps[1]}) : t("crossingEmpty");
  const more = found.count > found.moves.length
    ? ` ${t("crossingFirst", {k: found.moves.length})}` : "";
  const made = [el("h2", {}, t("crossingOf", {link: name})), el("p", {}, says + more)];
  if (!found.count) return made;
  const rows = found.moves.map((/** @type {any[]} */ [step, src, dst, piece, pieces, bytes, add]) => [
    String(step), place(src), place(dst), pieces > 1 ? spanText([piece, piece + pieces - 1])
      : String(piece), String(pieces), sizeText(bytes), t(add ? "isAdded" : "isCopied")]);
  made.push(tableOf(t("crossingTable", {link: name}), ["crossingStep", "from", "to", "piece",
    "crossingPieces", "bytes", "fate"].map((key) => t(key)), rows));
  return made;
}
