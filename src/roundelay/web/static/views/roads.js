// @ts-check
import {choice, el} from "../dom.js";
import {load} from "../fetch.js";
import {timeText} from "../i18n.js";
import {Picture, saveButtons, slider} from "../picture.js";
import {tableOf} from "../table.js";
import {drawRoads, drawWaysOut, roadHeights} from "../roads/draw.js";
import {counted, hopsOf, MEDIA, ratioOf, slowestHop, WAYS} from "../roads/model.js";

/** @typedef {import("../main.js").Context} Context */
/** @typedef {Record<string, string>} Params */

const SIZES = /** @type {[string, string][]} */ ([["1e6", "1 MB"], ["1e8", "100 MB"],
  ["1e9", "1 GB"], ["1e10", "10 GB"], ["1e11", "100 GB"]]);
/** @type {Params} */
const roadsDefaults = {machine: "dgx-h100", unit: "bytes", way: "oneway", cores: "1", size: "1e9",
  tables: ""};

/** The two roads: inside a node and between nodes. */
export const roadsView = {
  name: "roads",

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const {t} = context;
    const stop = new AbortController();
    /** @type {Roads | null} */
    let roads = null;
    const box = el("div", {class: "body"}, el("p", {class: "loading"}, t("loading")));
    root.replaceChildren(box);
    load("roads", {}, stop.signal).then((data) => {
      roads = new Roads(data, context);
      box.replaceWith(roads.root);
    }).catch((error) => {
      if (!stop.signal.aborted) box.replaceChildren(el("p", {class: "wrong", role: "alert"},
        t("failed", {error: error.message})));
    });
    return () => {
      stop.abort();
      roads?.close();
    };
  },
};

class Roads {
  /** @param {any} data @param {Context} context */
  constructor(data, context) {
    this.data = data;
    this.context = context;
    this.p = {...roadsDefaults, ...context.params};
    const {t} = context;
    const names = data.machines.map((/** @type {any} */ m) => m.name);
    if (!names.includes(this.p.machine)) this.p.machine = roadsDefaults.machine;
    if (!SIZES.some(([value]) => value === this.p.size)) this.p.size = roadsDefaults.size;
    this.p.cores = String(Math.min(16, Math.max(1, Math.round(Number(this.p.cores)) || 1)));
    this.sentence = el("p", {class: "sentence", "aria-live": "polite"});
    this.title = el("p", {class: "soft"});
    this.roads = new Picture(context, () => this.sentence.textContent, (w) => roadHeights(w).roads,
      (pen, w, h, colour) => drawRoads(pen, w, h, this.machine, this.texts(), colour, t));
    this.ways = new Picture(context, () => t("roadsWays"), (w) => roadHeights(w).ways,
      (pen, w, _, colour) => drawWaysOut(pen, w, this.machine, this.given(), colour, t));
    this.away = el("div", {}, el("h2", {}, t("roadsWays")), this.ways.root,
      el("p", {class: "soft note"}, t("roadsModel")),
      saveButtons(t, "roundelay-ways", () => this.ways.svg()));
    this.tables = el("div", {class: "tables"});
    this.details = el("details", {open: this.p.tables === "1", ontoggle: () => this.changed()},
      el("summary", {}, t("tableBehind")), this.tables);
    this.root = el("div", {class: "body"}, this.controls(t), this.title, this.sentence,
      this.roads.root, saveButtons(t, `roundelay-roads-${this.p.machine}`, () => this.roads.svg()),
      this.away, this.details);
    context.repaint(() => this.changed());
    this.changed();
  }

  /** @param {import("../i18n.js").Tell} t @returns {HTMLElement} */
  controls(t) {
    const set = (/** @type {string} */ key) => (/** @type {string} */ value) =>
      this.set({[key]: value});
    const {p} = this;
    const options = (/** @type {string[]} */ list, /** @type {string} */ key) =>
      /** @type {[string, string][]} */ (list.map((value) => [value, t(key + value)]));
    return el("form", {class: "controls", onsubmit: (/** @type {Event} */ e) => e.preventDefault()},
      choice(t("roadsMachine"), this.data.machines.map((/** @type {any} */ m) => [m.name, m.name]),
        p.machine, set("machine")),
      choice(t("roadsUnit"), options(["bytes", "bits", "sheet"], "roadsUnit_"), p.unit, set("unit")),
      choice(t("roadsWay"), options(["oneway", "both", "sheet"], "roadsWay_"), p.way, set("way")),
      choice(t("roadsSize"), SIZES, p.size, set("size")),
      slider(t("roadsCores"), {name: "cores", least: 1, most: 16, at: Number(p.cores)}, String,
        (k) => this.set({cores: String(k)})));
  }

  /** @returns {import("../roads/model.js").Machine} */
  get machine() {
    return this.data.machines.find((/** @type {any} */ m) => m.name === this.p.machine);
  }

  given() {
    return {core: this.data.core, cores: Number(this.p.cores), size: Number(this.p.size)};
  }

  /** @returns {any} */
  get convention() {
    return {unit: this.p.unit, way: this.p.way};
  }

  /** Both roads' rates in the convention that is chosen. @returns {string[]} */
  texts() {
    const {t} = this.context;
    const {inside, between} = this.machine;
    return [inside, ...(between ? [between] : [])].map((road) => {
      const {value, unit, both} = counted(road, this.convention);
      return `${MEDIA[road.medium]} ${Number(value.toPrecision(4))} ${unit}`
        + ` ${t(both ? "roadsBoth" : "roadsOne")}`;
    });
  }

  /** @param {Params} changes */
  set(changes) {
    Object.assign(this.p, changes);
    this.changed();
  }

  changed() {
    const {t} = this.context;
    const {machine} = this;
    this.title.textContent = machine.title;
    this.sentence.textContent = this.says();
    this.away.hidden = !machine.between;
    this.roads.redraw();
    this.ways.redraw();
    this.tables.replaceChildren(...(this.details.open ? [roadsTable(machine, t),
      ...(machine.between ? [waysTable(machine, this.given(), t)] : [])] : []));
    this.context.keep({...this.p, tables: this.details.open ? "1" : ""});
  }

  /** @returns {string} */
  says() {
    const {t} = this.context;
    const {inside, between} = this.machine;
    if (!between) return t("roadsAlone");
    const found = ratioOf(inside, between, this.convention);
    const right = ratioOf(inside, between, {unit: "bytes", way: "oneway"});
    const [a, b] = this.texts();
    const k = (/** @type {number} */ x) => Number(x.toPrecision(3));
    return t(found.true ? "roadsRight" : "roadsWrong",
      {a, b, k: k(found.ratio), right: k(right.ratio)});
  }

  close() {
    this.roads.close();
    this.ways.close();
  }
}

/** @param {import("../roads/model.js").Machine} machine @param {import("../i18n.js").Tell} t */
function roadsTable(machine, t) {
  const kinds = /** @type {any[]} */ ([["bytes", "oneway"], ["bytes", "both"], ["bits", "oneway"],
    ["sheet", "sheet"], ["bytes", "sheet"]]).map(([unit, way]) => ({unit, way}));
  const roads = [machine.inside, ...(machine.between ? [machine.between] : [])];
  const name = (/** @type {any} */ by) =>
    [...new Set([t(`roadsUnit_${by.unit}`), t(`roadsWay_${by.way}`)])].join(", ");
  const rows = kinds.map((by) => {
    const cells = roads.map((road) => {
      const {value, unit, both} = counted(road, by);
      return `${Number(value.toPrecision(4))} ${unit} ${t(both ? "roadsBoth" : "roadsOne")}`;
    });
    const found = machine.between ? ratioOf(machine.inside, machine.between, by) : null;
    return [name(by), ...cells, ...(found ? [`${Number(found.ratio.toPrecision(3))}`,
      t(found.true ? "roadsSame" : "roadsMixed")] : [])];
  });
  const head = [t("roadsCounted"), t("roadsInside"), ...(machine.between
    ? [t("roadsBetween"), t("roadsRatio"), t("roadsAlike")] : [])];
  return tableOf(`${machine.title}: ${machine.inside.source}`
    + (machine.between ? `; ${machine.between.source}` : ""), head, rows);
}

/** @param {import("../roads/model.js").Machine} machine
 * @param {{core: number, cores: number, size: number}} given
 * @param {import("../i18n.js").Tell} t */
function waysTable(machine, given, t) {
  const rows = WAYS.map((way) => {
    const hops = hopsOf(machine, way, given.core, given.cores);
    const slowest = slowestHop(hops);
    const passed = hops.map((hop) => `${t(`roadsHop_${hop.name}`)} × ${hop.ends}: `
      + `${Number((hop.rate / 1e9).toPrecision(3))} GB/s`).join("; ");
    return [t(`roadsWay_${way}`), timeText(given.size / slowest.rate),
      t(`roadsHop_${slowest.name}`), passed];
  });
  const {medium, rate} = machine.inside;
  rows.unshift([t("roadsInside"), timeText(given.size / rate), MEDIA[medium],
    `${MEDIA[medium]}: ${rate / 1e9} GB/s`]);
  return tableOf(t("roadsWays"), [t("roadsVia"), t("roadsTime"), t("roadsNarrowest"),
    t("roadsHops")], rows);
}
