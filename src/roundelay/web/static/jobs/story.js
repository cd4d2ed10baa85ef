// @ts-check
import {button, el} from "../dom.js";
import {Picture, saveButtons} from "../picture.js";
import {tableOf} from "../table.js";
import {drawStory, storyHigh} from "./draw.js";
import {dayTime, jobLetter, longTime} from "./model.js";
import {eventSays} from "./words.js";

/**
 * @typedef {import("./model.js").JobFilm} JobFilm
 * @typedef {import("./model.js").Moment} Moment
 */

/** The story of one job: from its arrival to its end, and its ranks on their nodes. */
export class JobStory {
  /** @param {JobFilm} film @param {import("../main.js").Context} context
   * @param {(at: number) => void} goTo an event */
  constructor(film, context, goTo) {
    this.film = film;
    this.context = context;
    this.goTo = goTo;
    this.job = -1;
    this.now = 0;
    const {t} = context;
    this.title = el("h2", {});
    this.picture = new Picture(context, () => this.title.textContent ?? "", storyHigh,
      (pen, w, _, colour) => drawStory(pen, w, film, this.job, this.now, colour, t));
    this.steps = el("ol", {class: "story"});
    this.ranks = el("div", {class: "tables"});
    this.root = el("section", {}, this.title, this.picture.root,
      saveButtons(t, "roundelay-job", () => this.picture.svg()), this.steps, this.ranks);
  }

  /** @param {number} job @param {Moment} moment */
  show(job, moment) {
    const {t} = this.context;
    this.now = moment.time;
    if (job !== this.job) {
      this.job = job;
      const {cards, kind, work_s: work, interval_s: interval} = this.film.log.jobs[job];
      this.title.textContent = t("jobsStory", {job: jobLetter(job), cards, kind: t(`jobsKind_${kind}`),
        work: longTime(work, t)}) + (interval ? t("jobsSaves", {time: longTime(interval, t)}) : "");
      this.#list();
    }
    [...this.steps.children].forEach((item) => {
      const passed = Number(item.dataset.at) <= moment.at;
      item.classList.toggle("soft", !passed);
    });
    this.picture.redraw();
    this.#ranks(moment);
  }

  #list() {
    const {t} = this.context;
    const own = this.film.events.map((event, i) => ({event, i}))
      .filter(({event}) => event.job === this.job);
    this.steps.replaceChildren(...own.map(({event, i}) => el("li", {"data-at": i + 1},
      button(dayTime(event.at_s, t), () => this.goTo(i + 1), {class: "small"}), " ",
      eventSays(this.film, i, t))));
  }

  /** Its ranks, in their order, on the nodes that it has now or had last. @param {Moment} moment */
  #ranks(moment) {
    const {t} = this.context;
    const {log, stays} = this.film;
    const stay = stays.findLast(({job, from}) => job === this.job && from < moment.at);
    if (!stay) {
      this.ranks.replaceChildren();
      return;
    }
    const {block} = log.jobs[this.job];
    const running = moment.running.includes(stay);
    const rows = stay.start.nodes.map((node, i) => [
      block > 1 ? `${i * block}–${(i + 1) * block - 1}` : String(i), String(node),
      ...log.levels.slice(0, -1).map((level) => String(Math.floor(node / level.nodes)))]);
    this.ranks.replaceChildren(tableOf(t(running ? "jobsRanksNow" : "jobsRanksLast"),
      [t("jobsRanks"), t("jobsNode"), ...log.levels.slice(0, -1).map(({name}) => t(`fabric_${name}`))],
      rows));
  }

  /** No more. */
  close() {
    this.picture.close();
  }
}
