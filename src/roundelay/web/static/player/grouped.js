// @ts-check
import {el, field} from "../dom.js";
import {sizeText} from "../i18n.js";
import {load} from "../fetch.js";
import {canvasPen, svgPen} from "../pen.js";
import {savesOf} from "./details.js";
import {formulaKey, formulaText} from "./formula.js";
import {drawGroups, flowTable, partTable} from "./groups.js";
import {Transport} from "./transport.js";

/**
 * @typedef {import("../main.js").Context} Context
 * @typedef {Record<string, string>} Params
 * @typedef {(step: number, rank: number) => Promise<import("./groups.js").Groups>} Ask
 */

const KEPT = 4; // answers, of which one may be the next step's

/**
 * Schedules over many ranks, step by step, in groups.
 * @param {HTMLElement} body @param {Params} p @param {Context} context
 * @param {AbortSignal} signal
 * @returns {Promise<{transport: Transport, close: () => void}>}
 */
export async function groupedPart(body, p, context, signal) {
  const {t} = context;
  const panels = await Promise.all([p.algorithm, ...(p.against ? [p.against] : [])].map(
    (algorithm, i) => groupedPanel(p, algorithm, !i, context, signal)));
  const tables = el("div", {class: "tables"});
  const rested = () => {
    if (signal.aborted || transport?.playing) return;
    const label = (/** @type {GroupedPanel} */ panel) => panels.length > 1 ? `${panel.name}: ` : "";
    tables.replaceChildren(...panels.flatMap((panel) =>
      [partTable(panel.data, label(panel), t), flowTable(panel.data, label(panel), t)]));
    context.keep({...p, at: String(transport?.stop ?? p.at), speed: String(transport?.speed ?? 1),
      rank: String(panels[0].rank)});
  };
  for (const panel of panels) panel.changed = rested;
  /** @type {Transport} */
  const transport = new Transport(context, panels, false,
    {speed: Number(p.speed), at: Number(p.at) || 0}, rested);
  transport.root.append(field(t("rank"), {type: "number", min: 0, max: Number(p.n) - 1,
    value: panels[0].rank}, (rank) => panels.forEach((panel) => panel.of(Number(rank)))));
  body.replaceChildren(transport.root, el("div", {class: panels.length > 1 ? "panels two" : "panels"},
    ...panels.map((panel) => panel.root)), el("div", {class: "below"},
    el("p", {class: "soft note keys"}, t("keysPlay")),
    savesOf(t, `roundelay-${p.collective}-${p.algorithm}-${p.n}`, panels)), tables);
  transport.goTo(transport.time);
  context.repaint(() => panels.forEach((panel) => panel.redraw()));
  return {transport, close: () => {
    transport.pause();
    for (const panel of panels) panel.close();
  }};
}

/**
 * @param {Params} p @param {string} algorithm @param {boolean} first
 * @param {Context} context @param {AbortSignal} signal @returns {Promise<GroupedPanel>}
 */
async function groupedPanel(p, algorithm, first, context, signal) {
  const {collective, n, size, root} = p;
  const asked = {collective, algorithm, n, size, root, params: first ? p.params : ""};
  const ask = (/** @type {number} */ step, /** @type {string | number} */ rank) =>
    load("grouped", {...asked, step: String(step), rank: String(rank)}, signal);
  // Of two, one may have fewer steps than the clock has.
  return new GroupedPanel(await ask(p.against ? 0 : Math.round(Number(p.at)) || 0, p.rank || "0"), ask, context);
}

/** A schedule's groups at a step, what is said of it, and counters. */
class GroupedPanel {
  /** @param {import("./groups.js").Groups} data @param {Ask} ask @param {Context} context */
  constructor(data, ask, context) {
    const {t, lang} = context;
    this.data = data;
    this.name = data.name;
    this.ask = ask;
    this.context = context;
    this.at = data.step;
    this.rank = data.rank;
    this.model = {steps: data.steps, data: {}};
    /** Called when another step is there. */
    this.changed = () => {};
    /** @type {Promise<void>} */
    this.ready = Promise.resolve();
    this.asking = false;
    this.refused = -1; // a step that could not be had
    /** @type {Map<string, Promise<import("./groups.js").Groups>>} */
    this.answers = new Map();
    this.canvas = el("canvas", {role: "img"});
    this.stage = el("div", {class: "stage"}, this.canvas);
    this.sentence = el("p", {class: "sentence"});
    this.counters = el("dl", {class: "counters"});
    this.root = el("section", {class: "panel", "aria-label": data.name}, el("h2", {}, data.name),
      el("p", {class: "soft"},
        `${data.purpose[lang]} ${t("grouped", {n: data.ranks.toLocaleString()})}`),
      this.stage, this.sentence, this.counters, el("p", {class: "soft formulas"}, formulaKey(t,
        [data.card.steps[0], data.card.bytes_sent[0]].map(formulaText), data.ranks, data.size)));
    this.sizes = new ResizeObserver(() => this.redraw());
    this.sizes.observe(this.stage);
    this.#tell();
  }

  /** @returns {number[]} of each step when it ends, in steps */
  ends() {
    return Array.from({length: this.model.steps + 1}, (_, step) => step);
  }

  /** The step that is under way, or was done last. */
  get step() {
    return Math.ceil(this.at - 1e-9);
  }

  /** Show a moment; its step is asked for if need be. @param {number} at */
  show(at) {
    this.at = Math.max(0, Math.min(at, this.model.steps));
    this.#follow();
    this.redraw();
  }

  /** Whose part is told. @param {number} rank */
  of(rank) {
    this.rank = rank;
    this.refused = -1;
    this.#follow();
  }

  /** Draw it as things are now. */
  redraw() {
    const [width, height] = [this.stage.clientWidth, this.stage.clientHeight];
    const scale = devicePixelRatio || 1;
    if (!width || !height) return;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const on = this.canvas.getContext("2d");
    on.scale(scale, scale);
    drawGroups(canvasPen(on), this.data, width, height, this.#part, this.context);
  }

  /** The picture as it is now. @returns {{svg: string, width: number, height: number}} */
  svg() {
    const [width, height] = [this.stage.clientWidth, this.stage.clientHeight];
    const {pen, picture} = svgPen(width, height, this.context.palette().ground);
    drawGroups(pen, this.data, width, height, this.#part, this.context);
    return {svg: picture(`${this.name}: ${this.sentence.textContent}`), width, height};
  }

  /** Let go of what it listens to. */
  close() {
    this.sizes.disconnect();
  }

  /** How far the step that is shown has come, from 0 to 1. */
  get #part() {
    return this.data.step === this.step ? this.at - this.step + 1 : 1;
  }

  #behind() {
    return this.data.step !== this.step || this.data.rank !== this.rank;
  }

  /** Ask until what is shown is what is wanted; steps that were passed by are not asked for. */
  #follow() {
    if (this.asking || !this.#behind() || this.refused === this.step) return;
    this.asking = true;
    this.ready = this.#caughtUp().catch((/** @type {Error} */ error) => {
      this.sentence.textContent = this.context.t("failed", {error: error.message});
      this.rank = this.data.rank;
      this.refused = this.step;
    }).finally(() => {
      this.asking = false;
    });
  }

  async #caughtUp() {
    do {
      const before = this.data.step;
      this.data = await this.#answer(this.step);
      this.refused = -1;
      this.#tell();
      this.redraw();
      if (this.data.step === before + 1 && before + 1 < this.model.steps) this.#answer(before + 2);
      this.changed();
    } while (this.#behind());
  }

  /** @param {number} step @returns {Promise<import("./groups.js").Groups>} */
  #answer(step) {
    const key = `${step} ${this.rank}`;
    const found = this.answers.get(key) ?? this.ask(step, this.rank);
    this.answers.delete(key);
    this.answers.set(key, found);
    found.catch(() => this.answers.delete(key));
    if (this.answers.size > KEPT) this.answers.delete(this.answers.keys().next().value ?? "");
    return found;
  }

  /** What the step does, in words and numbers. */
  #tell() {
    const {data} = this;
    const {t, lang} = this.context;
    const messages = data.flows.reduce((/** @type {number} */ sum, /** @type {any} */ f) =>
      sum + f.messages, 0);
    const said = data.said[lang] ?? t("manyMoves", {messages});
    this.sentence.textContent = data.step ? t("step", {step: data.step}) + said 
      : `${t("start", {n: data.ranks.toLocaleString("en")})} ${t("startRank")}`;
    this.canvas.setAttribute("aria-label", `${data.name}. ${this.sentence.textContent}`);
    const rows = [
      [t("steps"), t("of", {now: data.step.toLocaleString(), all: data.steps.toLocaleString()}), data.card.steps[0]],
      [t("sentNow"), sizeText(data.busiest_sent), ""],
      [t("receivedNow"), sizeText(data.busiest_received), ""],
      [t("sentBy", {rank: data.rank}),
        t("of", {now: sizeText(data.part_sent), all: sizeText(data.card.bytes_sent[1])}),
        data.card.bytes_sent[0]],
    ];
    this.counters.replaceChildren(...rows.map(([name, value, formula]) => el("div", {},
      el("dt", {}, name), el("dd", {}, value), el("dd", {class: "formula"}, formulaText(formula)))));
  }
}
