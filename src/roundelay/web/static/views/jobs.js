// @ts-check
import {choice, el} from "../dom.js";
import {inside, load} from "../fetch.js";
import {drawJobs, holders, jobColour, jobsPlaces} from "../jobs/draw.js";
import {dayTime, fullest, jobFilm, jobLetter, longerText, longTime, momentOf} from "../jobs/model.js";
import {JobStory} from "../jobs/story.js";
import {eventSays} from "../jobs/words.js";
import {mountLoaded} from "../mount.js";
import {Picture, saveButtons} from "../picture.js";
import {Transport} from "../player/transport.js";
import {Spots} from "../spots.js";
import {tableOf} from "../table.js";

/** @typedef {import("../main.js").Context} Context */

const jobsDefaults = {jobs: "two-pods", policy: "", at: "", job: "", speed: "1", tables: ""};
const SPOTS_MOST = 1024; // nodes that are buttons, too

/** A cluster and its jobs over time, and the story of one. */
export const jobsView = {
  name: "jobs",

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const {t} = context;
    const p = {...jobsDefaults, ...context.params};
    return mountLoaded(root, t, async (box, signal) => {
      const all = await load("logs", {}, signal);
      const logs = inside ? all.filter((/** @type {any} */ one) => one.name === p.jobs) : all;
      const controls = el("form", {class: "controls",
        onsubmit: (/** @type {Event} */ e) => e.preventDefault()},
      choice(t("jobsWhich"), logs.map((/** @type {any} */ one) => [one.name, t("jobsNamed", one)]),
        p.jobs, (jobs) => context.go({jobs})));
      box.replaceChildren(controls, el("p", {class: "loading"}, t("loading")));
      const part = new JobsPart(await load("jobs", {name: p.jobs}, signal), p, context);
      controls.append(...part.choices(), inside ? el("p", {class: "soft note"}, t("oneFile")) : "");
      box.replaceChildren(controls, part.root);
      part.begin();
      return part;
    });
  },
};

class JobsPart {
  /** @param {import("../jobs/model.js").JobLog} log @param {Record<string, string>} p
   * @param {Context} context */
  constructor(log, p, context) {
    const {t} = context;
    this.log = log;
    this.p = p;
    this.context = context;
    this.film = jobFilm(log, p.policy);
    this.model = {steps: this.film.events.length, data: {}};
    const number = Math.floor(Number(p.job || NaN));
    this.moment = momentOf(this.film, this.#start());
    this.job = log.jobs[number] ? number : this.#restless();
    this.sentence = el("p", {class: "sentence"});
    this.figures = el("dl", {class: "figures"});
    this.picture = new Picture(context, () => `${t("view_jobs")}. ${this.sentence.textContent}`,
      (w) => jobsPlaces(log, w).height, (pen, w, _, colour) =>
        drawJobs(pen, w, this.film, this.moment, this.job, fullest(this.moment), colour, t));
    this.picture.drawn = () => this.#spots();
    this.spots = new Spots(this.picture.root, t("jobsNodes"));
    this.tables = el("div", {class: "tables"});
    this.details = el("details", {open: p.tables === "1", ontoggle: () => this.rested()},
      el("summary", {}, t("tableBehind")), this.tables);
    this.story = new JobStory(this.film, context, (at) => {
      this.transport.pause();
      this.transport.goTo(at);
    });
    this.transport = new Transport(context, [this], false,
      {speed: Number(p.speed), at: this.#start()}, () => this.rested());
    this.root = el("div", {}, this.sentence, this.transport.root, this.figures, this.spots.root,
      el("div", {class: "below"}, this.#legend(), saveButtons(t, "roundelay-jobs",
        () => this.picture.svg())), el("p", {class: "soft note keys"}, t("keysPlay"), " ", t("jobsKeys")),
      this.story.root, this.details);
  }

  /** Of each step. @returns {number[]} */
  ends() {
    return Array.from({length: this.film.events.length + 1}, (_, i) => i);
  }

  /** Of the jobs that run at the start, the one that is stopped most often. @returns {number} */
  #restless() {
    const counts = new Map(this.moment.running.map(({job}) => [job, 0]));
    for (const {job} of this.film.stays) {
      if (counts.has(job)) counts.set(job, (counts.get(job) ?? 0) + 1);
    }
    return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0] ?? 0;
  }

  /** The event that is shown first: asked for, or the one after which most jobs run. */
  #start() {
    if (this.p.at !== "") return Math.min(this.model.steps, Math.max(0, Math.floor(Number(this.p.at)) || 0));
    let [running, most, best] = [0, 0, 0];
    this.film.events.forEach(({what}, i) => {
      running += what === "start" ? 1 : what === "stop" || what === "end" ? -1 : 0;
      if (running > most) [most, best] = [running, i + 1];
    });
    return best;
  }

  /** What is chosen: the policy, and the job. @returns {HTMLElement[]} */
  choices() {
    const {t} = this.context;
    const policies = this.log.policies.map(({policy}) =>
      /** @type {[string, string]} */ ([policy, t(`jobsPolicy_${policy}`)]));
    this.which = choice(t("jobsJob"), this.log.jobs.map(({cards}, job) =>
      [String(job), t("jobsOf", {job: jobLetter(job), cards})]), String(this.job),
    (job) => this.choose(Number(job)));
    return [choice(t("jobsPolicy"), policies, this.film.policy, (policy) => {
      const {events} = jobFilm(this.log, policy);
      const at = events.findLastIndex(({at_s: time}) => time <= this.moment.time) + 1;
      this.context.go({...this.#state(), policy, at: String(at)});
    }), this.which];
  }

  begin() {
    this.transport.goTo(this.transport.time);
    const transport = this.transport;
    const to = (/** @type {number} */ by) => () =>
      this.choose((this.job + by + this.log.jobs.length) % this.log.jobs.length);
    this.context.keys({" ": () => transport.toggle(), ArrowRight: () => transport.step(1),
      ArrowLeft: () => transport.step(-1), Home: () => transport.goTo(0),
      End: () => transport.goTo(transport.last), "+": () => transport.faster(1),
      "=": () => transport.faster(1), "-": () => transport.faster(-1), n: to(1), p: to(-1)});
    this.context.repaint(() => this.#draw());
  }

  /** @param {number} position */
  show(position) {
    const at = Math.floor(position + 1e-9);
    if (at !== this.moment.at || !this.sentence.textContent) {
      this.moment = momentOf(this.film, at);
      this.#draw();
    }
  }

  /** @param {number} job */
  choose(job) {
    this.job = job;
    const select = this.which?.querySelector("select");
    if (select) select.value = String(job);
    this.#draw();
    this.rested();
    this.context.announce(this.story.title.textContent ?? "");
  }

  #draw() {
    const {t} = this.context;
    const {at, time} = this.moment;
    this.sentence.textContent = at ? t("jobsAt", {when: dayTime(time, t), what: eventSays(this.film, at - 1, t)})
      : t("jobsNothingYet");
    this.figures.replaceChildren(...this.#figures().map(([key, value]) =>
      el("div", {}, el("dt", {}, t(key)), el("dd", {}, value))));
    this.picture.redraw();
    this.story.show(this.job, this.moment);
  }

  /** @returns {[string, string][]} */
  #figures() {
    const {t} = this.context;
    const {running, waiting, ended, free, slowdown} = this.moment;
    const most = fullest(this.moment);
    return [["jobsRunning", String(running.length)], ["jobsWaiting", String(waiting.length)],
      ["jobsDone", `${ended} / ${this.log.jobs.length}`],
      ["jobsFree", `${free} / ${this.log.nodes * this.log.cards}`],
      ["jobsSlower", longerText(slowdown)],
      ["jobsFullest", most ? `${t(`fabric_${this.log.levels[most.level].name}`)} ${most.domain}: ` +
        `${Math.round(100 * most.filled)} %` : "–"]];
  }

  #spots() {
    if (this.transport?.playing || this.log.nodes > SPOTS_MOST) return;
    const {t} = this.context;
    const {cell, cells} = jobsPlaces(this.log, this.picture.width);
    const held = holders(this.log, this.moment);
    this.spots.set(cells.map(({node, x, y}) => {
      const own = (held.get(node) ?? []).map(({stay}) => stay.job);
      const state = this.moment.out.has(node) ? t("jobsIsOut") : this.moment.slow.has(node)
        ? t("jobsIsSlow") : "";
      const jobs = own.length ? own.map((job) => t("jobsOf", {job: jobLetter(job),
        cards: this.log.jobs[job].cards})).join(", ") : t("jobsNobody");
      return {x, y, w: cell, h: cell, label: t("jobsNodeHas", {node, jobs}) + state,
        pressed: own.includes(this.job),
        act: () => own.length && this.choose(own[(own.indexOf(this.job) + 1) % own.length])};
    }));
  }

  /** It has stopped or stepped. */
  rested() {
    if (!this.transport) return;
    this.#spots();
    this.#tables();
    this.context.keep(this.#state());
  }

  #state() {
    return {jobs: this.p.jobs === jobsDefaults.jobs ? "" : this.p.jobs,
      policy: this.film.policy === this.log.policies[this.log.policies.length - 1].policy ? "" : this.film.policy,
      at: String(this.transport.stop), job: String(this.job),
      speed: this.transport.speed === 1 ? "" : String(this.transport.speed),
      tables: this.details.open ? "1" : ""};
  }

  /** @returns {HTMLElement} */
  #legend() {
    const {t} = this.context;
    const key = (/** @type {string} */ sign, /** @type {string} */ what, kind = "") => el("li", {},
      el("span", {class: `key ${kind}`, "aria-hidden": "true"}, sign), t(what));
    const letter = key("A", "jobsKeyJob", "job");
    /** @type {HTMLElement} */ (letter.firstChild).style.background = jobColour(this.film, this.job);
    return el("ul", {class: "legend"}, letter, key("8", "jobsKeyRank", "rank"), key("✕", "jobsKeyOut"),
      key("∿", "jobsKeySlow"), key("◆", "jobsKeyLoad"));
  }

  #tables() {
    if (!this.details.open) {
      this.tables.replaceChildren();
      return;
    }
    const {t} = this.context;
    const {running, waiting, loads} = this.moment;
    const {jobs, levels} = this.log;
    const since = (/** @type {number} */ from) => longTime(this.moment.time - from, t);
    const rows = [...running.map(({job, start}) => [jobLetter(job), t("jobsRuns"), since(start.at_s),
      String(jobs[job].cards), String(new Set(start.nodes).size), longerText(start.exchange)]),
    ...waiting.map((job) => [jobLetter(job), t("jobsWaits"), since(jobs[job].submit_s),
      String(jobs[job].cards), "–", "–"])];
    const links = levels.flatMap(({name}, height) => [...loads[height]].sort(([a], [b]) => a - b)
      .map(([domain, filled]) => [`${t(`fabric_${name}`)} ${domain}`, `${(100 * filled).toFixed(1)} %`]));
    this.tables.replaceChildren(
      tableOf(t("jobsNow"), ["jobsJob", "jobsState", "jobsSince", "jobsCards", "jobsNodes",
        "jobsLonger"].map((key) => t(key)), rows),
      tableOf(t("jobsLoads"), [t("jobsSwitch"), t("jobsFilled")], links));
  }

  /** No more. */
  close() {
    this.transport.pause();
    this.picture.close();
    this.story.close();
  }
}
