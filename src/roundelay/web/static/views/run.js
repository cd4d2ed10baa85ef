// @ts-check
import {button, choice, el} from "../dom.js";
import {inside, load} from "../fetch.js";
import {timeText} from "../i18n.js";
import {mountLoaded} from "../mount.js";
import {Picture, saveButtons} from "../picture.js";
import {Live} from "../run/live.js";
import {drawMatrix, matrixHigh, MATRIX_MOST} from "../run/matrix.js";
import {PATH_PARTS, RunModel} from "../run/model.js";
import {eventText, Stage} from "../run/stage.js";
import {comparedTable, mostOfPath, mostWaitedFor, runTables} from "../run/tables.js";

/** @typedef {import("../main.js").Context} Context */

/** @type {Record<string, string>} */
const runDefaults = {run: "even", against: "", from: "", to: "", path: "1", lane: "0", event: "",
  job: "", tables: ""};
const LIVE_RUN = "live";
const NARROWEST = 200;

/** A real run: who worked, who waited for whom. */
export const runView = {
  name: "run",

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const {t} = context;
    const p = {...runDefaults, ...context.params};
    return mountLoaded(root, t, async (box, signal) => {
      const controls = chooser(await load("runs", {}, signal), p, context);
      if (p.run === LIVE_RUN) {
        const live = new Live(context, p.job, (job) => context.keep({...p, job}));
        box.replaceChildren(controls, live.root);
        context.repaint(() => live.picture.redraw());
        return live;
      }
      box.replaceChildren(controls, el("p", {class: "loading"}, t("loading")));
      const names = [p.run, p.against].filter(Boolean);
      const data = await Promise.all(names.map((name) => load("run", {name}, signal)));
      const drawn = new Runs(data.map((one) => new RunModel(one)), p, context);
      box.replaceChildren(controls, drawn.root);
      return drawn;
    });
  },
};

/** Which run is seen, and which beside it. @param {any[]} runs @param {Record<string, string>} p
 * @param {Context} context @returns {HTMLElement} */
function chooser(runs, p, context) {
  const {t} = context;
  const told = (/** @type {any} */ run) => t("runTold", {name: run.name, n: run.ranks,
    events: run.events.toLocaleString(), time: timeText(run.ns / 1e9)});
  const here = inside ? runs.filter(({name}) => name === p.run || name === p.against) : runs;
  const listed = /** @type {[string, string][]} */ (here.map((run) => [run.name, told(run)]));
  const live = /** @type {[string, string][]} */ (inside ? [] : [[LIVE_RUN, t("runLive")]]);
  const go = (/** @type {Record<string, string>} */ changed) => context.go({...p, from: "", to: "",
    event: "", ...changed});
  const second = p.run === LIVE_RUN || inside ? [] : [choice(t("against"), [["", t("nothing")],
    ...listed.filter(([name]) => name !== p.run)], p.against, (against) => go({against}))];
  return el("form", {class: "controls", onsubmit: (/** @type {Event} */ e) => e.preventDefault()},
    choice(t("runWhich"), [...listed, ...live], p.run,
      (run) => go({run, against: run === p.against || run === LIVE_RUN ? "" : p.against})),
    ...second, inside ? el("p", {class: "soft note"}, t("oneFile")) : "");
}

class Runs {
  /** @param {RunModel[]} models @param {Record<string, string>} p @param {Context} context */
  constructor(models, p, context) {
    this.models = models;
    this.p = p;
    this.context = context;
    this.span = Math.max(...models.map(({span}) => span));
    this.from = p.from === "" ? 0 : Number(p.from) || 0;
    this.to = p.to === "" ? this.span : Number(p.to) || this.span;
    this.#clamp();
    this.stage = 0; // which of the runs a lane is chosen of
    this.lane = Math.min(models[0].names.length - 1, Math.max(0, Math.floor(Number(p.lane)) || 0));
    this.event = p.event === "" ? -1 : Math.floor(Number(p.event));
    if (!(this.event >= 0 && this.event < models[0].at.begin.length)) this.event = -1;
    const {t} = context;
    this.sentences = models.map((model) => el("p", {class: "sentence"}, this.#sentence(model)));
    this.told = el("p", {class: "soft told", "aria-live": "polite"});
    this.stages = models.map((model, i) => new Stage(model, context, () => this.#shown(i), {
      pan: (ns) => this.pan(ns),
      zoom: (by, at) => this.zoom(by, at),
      pick: (rank, event) => this.pick(i, rank, event),
      rest: () => this.keep(),
    }));
    this.tables = el("div", {class: "tables"});
    this.details = el("details", {open: p.tables === "1", ontoggle: () => this.#tables()},
      el("summary", {}, t("tableBehind")), this.tables);
    this.matrices = models.filter(({names}) => names.length <= MATRIX_MOST).map((model) =>
      new Picture(context, () => t("runMatrix", {name: model.name}),
        () => matrixHigh(model.names.length),
        (pen, w, _, colour) => drawMatrix(pen, w, model, colour, t)));
    const save = this.stages.map((stage) => saveButtons(t, `roundelay-run-${stage.model.name}`,
      () => stage.svg(`${stage.model.name}: ${this.#sentence(stage.model)}`)));
    this.root = el("div", {}, ...models.flatMap((model, i) => [
      el("div", {class: "below"}, el("h2", {}, model.name), save[i]), this.sentences[i],
      this.stages[i].root]), this.#buttons(), this.told, this.#legend(),
      ...(models.length > 1 ? [el("div", {class: "tables"}, comparedTable(models, t))] : []),
      el("div", {class: models.length > 1 ? "panels two" : "panels"}, ...this.matrices.map((m, i) =>
        el("section", {}, el("div", {class: "below"},
          el("h2", {}, t("runMatrix", {name: models[i].name})),
          saveButtons(t, `roundelay-waits-${models[i].name}`, () => m.svg())), m.root))),
      this.details);
    context.repaint(() => {
      for (const shown of [...this.stages, ...this.matrices]) shown.redraw();
    });
    context.keys({
      ArrowLeft: () => this.moved(-0.2), ArrowRight: () => this.moved(0.2),
      "+": () => this.zoomed(0.5), "=": () => this.zoomed(0.5), "-": () => this.zoomed(2),
      Home: () => this.fit(), ArrowUp: () => this.chosenLane(-1),
      ArrowDown: () => this.chosenLane(1), ".": () => this.next(1), ",": () => this.next(-1),
      p: () => this.togglePath(),
    });
    this.#say();
  }

  /** @param {number} i which run @returns {import("../run/stage.js").Shown} */
  #shown(i) {
    const here = i === this.stage;
    return {from: this.from, to: this.to, path: this.p.path === "1",
      lane: here ? this.lane : -1, event: here ? this.event : -1};
  }

  /** What is most worth knowing of a run. @param {RunModel} model @returns {string} */
  #sentence(model) {
    const {t} = this.context;
    const {rank, ns, all} = mostWaitedFor(model);
    const path = mostOfPath(model);
    const lost = model.data.lost ? t("runLost", {k: model.data.lost.toLocaleString()}) : "";
    if (!all) return [t("runNoWaits"), lost].join(" ");
    return [t("runPathMost", {rank: model.nameOf(path.rank),
      part: t(`runPart_${PATH_PARTS[path.part]}`), time: timeText(path.ns / 1e9),
      span: timeText(model.span / 1e9)}), t("runWaitedMost", {rank: model.nameOf(rank),
      time: timeText(ns / 1e9), share: Math.round((100 * ns) / all)}), lost].join(" ");
  }

  /** @returns {HTMLElement} */
  #buttons() {
    const {t} = this.context;
    const named = (/** @type {string} */ sign, /** @type {string} */ key, /** @type {() => void} */ act) =>
      button(sign, act, {"aria-label": t(key), title: t(key)});
    this.pathButton = button(t("runPath"), () => this.togglePath(),
      {"aria-pressed": String(this.p.path === "1")});
    return el("div", {class: "transport", role: "group", "aria-label": t("runMove")},
      named("⇤", "runFit", () => this.fit()), named("◁", "runLeft", () => this.moved(-0.2)),
      named("▷", "runRight", () => this.moved(0.2)), named("+", "runIn", () => this.zoomed(0.5)),
      named("−", "runOut", () => this.zoomed(2)), named("‹", "runBefore", () => this.next(-1)),
      named("›", "runAfter", () => this.next(1)), this.pathButton);
  }

  /** @returns {HTMLElement} */
  #legend() {
    const {t} = this.context;
    const keys = {send: "S", copied: "C", reduced: "R", waits: "", path: ""};
    return el("div", {class: "below"}, el("ul", {class: "legend"}, ...Object.entries(keys).map(
      ([key, letter]) => el("li", {}, el("span", {class: `key run-${key}`, "aria-hidden": "true"},
        letter), t(`runKey_${key}`)))), el("p", {class: "soft"}, t("runHow")));
  }

  /** Of which event is told. */
  #say() {
    const {t} = this.context;
    const model = this.models[this.stage];
    this.told.textContent = this.event < 0 ? t("runWindow", {from: timeText(this.from / 1e9),
      to: timeText(this.to / 1e9), rank: model.nameOf(this.lane)})
      : eventText(model, this.event, t);
  }

  #tables() {
    const {t} = this.context;
    this.p.tables = this.details.open ? "1" : "";
    this.tables.replaceChildren(...(this.details.open
      ? this.models.flatMap((model) => runTables(model, t)) : []));
    this.keep();
  }

  /** The address holds what is seen. */
  keep() {
    const {p} = this;
    const whole = this.from === 0 && this.to === this.span;
    p.from = whole ? "" : String(Math.round(this.from));
    p.to = whole ? "" : String(Math.round(this.to));
    p.lane = this.lane ? String(this.lane) : "";
    p.event = this.event < 0 || this.stage ? "" : String(this.event);
    this.context.keep({...p, run: p.run === runDefaults.run ? "" : p.run,
      path: p.path === "1" ? "" : p.path});
  }

  #clamp() {
    const wide = Math.min(this.span, Math.max(NARROWEST, this.to - this.from));
    this.from = Math.min(Math.max(0, this.from), this.span - wide);
    this.to = this.from + wide;
  }

  #changed() {
    this.#clamp();
    for (const stage of this.stages) stage.redraw();
    this.#say();
  }

  /** @param {number} ns */
  pan(ns) {
    const wide = this.to - this.from;
    this.from = Math.min(Math.max(0, this.from + ns), this.span - wide);
    this.to = this.from + wide;
    this.#changed();
  }

  /** @param {number} by factor of the span that is seen @param {number} at ns that stays */
  zoom(by, at) {
    const wide = Math.min(this.span, Math.max(NARROWEST, (this.to - this.from) * by));
    const share = (at - this.from) / (this.to - this.from);
    this.from = at - share * wide;
    this.to = this.from + wide;
    this.#changed();
  }

  /** @param {number} share of the span that is seen */
  moved(share) {
    this.pan(share * (this.to - this.from));
    this.keep();
  }

  /** @param {number} by */
  zoomed(by) {
    const {begin} = this.models[this.stage].at;
    const middle = (this.from + this.to) / 2;
    const at = this.event >= 0 ? begin[this.event] : middle;
    this.zoom(by, at >= this.from && at <= this.to ? at : middle);
    this.keep();
  }

  /** All of it. */
  fit() {
    [this.from, this.to] = [0, this.span];
    this.#changed();
    this.keep();
  }

  togglePath() {
    this.p.path = this.p.path === "1" ? "0" : "1";
    this.pathButton?.setAttribute("aria-pressed", String(this.p.path === "1"));
    this.#changed();
    this.keep();
  }

  /** @param {number} i which run @param {number} rank @param {number} event or -1 */
  pick(i, rank, event) {
    [this.stage, this.lane, this.event] = [i, rank, event];
    this.#changed();
    this.keep();
  }

  /** Another lane; from one run's last to the other's first. @param {number} by */
  chosenLane(by) {
    const lanes = this.models.flatMap((model, i) => model.names.map((_, rank) => [i, rank]));
    const at = lanes.findIndex(([i, rank]) => i === this.stage && rank === this.lane) + by;
    const [i, rank] = lanes[Math.max(0, Math.min(lanes.length - 1, at))];
    this.pick(i, rank, -1);
  }

  /** The lane's next event, or the one before. @param {number} by */
  next(by) {
    const model = this.models[this.stage];
    const {first, last} = model.lanes[this.lane];
    let at = this.event >= 0 ? this.event + by : model.firstAfter(this.lane, this.from);
    at = Math.max(first, Math.min(last - 1, at));
    const middle = model.at.begin[at];
    const wide = this.to - this.from;
    if (middle < this.from || middle > this.to) this.pan(middle - this.from - wide / 2);
    this.pick(this.stage, this.lane, at);
  }

  /** No more. */
  close() {
    for (const shown of [...this.stages, ...this.matrices]) shown.close();
  }
}
