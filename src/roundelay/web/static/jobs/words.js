// @ts-check
import {longerText, longTime, jobLetter, rangesText} from "./model.js";

/**
 * @typedef {import("../i18n.js").Tell} Tell
 * @typedef {import("./model.js").JobFilm} JobFilm
 * @typedef {import("./model.js").JobEvent} JobEvent
 */

/** What happens at an event, and why. @param {JobFilm} film @param {number} i @param {Tell} t
 * @returns {string} */
export function eventSays(film, i, t) {
  const event = film.events[i];
  if (event.job < 0) return t(`jobsSays_${event.what}`, {nodes: nodesText(event.nodes, t)});
  const job = film.log.jobs[event.job];
  const name = jobLetter(event.job);
  if (event.what === "submit") {
    return t("jobsSays_submit", {job: name, cards: job.cards, kind: t(`jobsKind_${job.kind}`),
      work: longTime(job.work_s, t)}) + (job.priority ? t("jobsUrgent") : "");
  }
  if (event.what === "start") {
    const wait = event.at_s - waitsSince(film, i);
    return t("jobsSays_start", {job: name, nodes: nodesText(event.nodes, t)}) +
      (wait >= 1 ? t("jobsAfter", {wait: longTime(wait, t)}) : t("jobsAtOnce")) +
      whyThere(event, t);
  }
  const left = {job: name, kept: longTime(event.kept_s, t), lost: longTime(event.lost_s, t),
    saves: event.saves};
  if (event.what === "end") return t("jobsSays_end", left);
  return t(`jobsStop_${event.reason}`, left) +
    t(event.lost_s ? "jobsLost" : "jobsKept", left);
}

/** Since when the job of a start has waited. @param {JobFilm} film @param {number} i */
function waitsSince(film, i) {
  const {job} = film.events[i];
  const before = film.stays.findLast((stay) => stay.job === job && stay.from < i);
  return before?.left?.at_s ?? film.log.jobs[job].submit_s;
}

/** What an exchange costs there, and elsewhere, and which link decides. @param {JobEvent} event
 * @param {Tell} t @returns {string} */
export function whyThere(event, t) {
  if (event.nodes.length < 2) return t("jobsWithin");
  const {exchange, first_fit: first, best_fit: best, part, link, index} = event;
  const costs = {exchange: longerText(exchange).slice(1), first: longerText(first),
    best: longerText(best)};
  return t(exchange > 1.0005 ? "jobsWhy" : "jobsCheapest", costs) +
    (link ? t("jobsLink", {part: t(`jobsPart_${part}`), link: linkText(link, index, t)}) : "");
}

/** A link, as the picture calls what it leads up from. @param {string} link @param {number[]} index
 * @param {Tell} t @returns {string} */
function linkText(link, index, t) {
  const [, name, way] = link.match(/^(leaf|spine|core) (up|down)$/) ?? [];
  return way ? t(`jobsLink_${way}`, {what: `${t(`fabric_${name}`)} ${index[0]}`})
    : t(`link_${link}`, index);
}

/** @param {number[]} nodes @param {Tell} t @returns {string} */
function nodesText(nodes, t) {
  return t(new Set(nodes).size > 1 ? "jobsSomeNodes" : "jobsOneNode", {nodes: rangesText(nodes)});
}
