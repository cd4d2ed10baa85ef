// @ts-check
import {button, choice, el} from "../dom.js";
import {inside, load} from "../fetch.js";
import {sizeText} from "../i18n.js";
import {saveButtons, slider} from "../picture.js";
import {firstOf, insteadText} from "../curves/asked.js";
import {layoutOf, loadCharts, tracesOf} from "../curves/charts.js";
import {droppedFiles} from "../curves/drop.js";
import {measuredKeys, quickestText, showLines} from "../curves/lines.js";
import {byNodes, bySize, crossings, near} from "../curves/model.js";
import {curveTables} from "../curves/tables.js";

/** @typedef {import("../main.js").Context} Context */
/** @typedef {import("../curves/model.js").CurvesData} CurvesData */
/** @typedef {Record<string, string>} Params */

/** @type {Params} */
const curvesDefaults = {collective: "all_reduce", cluster: "dgx-h100", x: "size", nodes: "4",
  size: "10", latency: "0", bandwidth: "0", hide: "", tables: ""};
const STEEP = 6; // steps of a slider of factors, each way; two are a doubling
const CHARTS = /** @type {["time", "busbw"]} */ (["time", "busbw"]);

/** The curves: time and busbw against size or nodes, by algorithm, and where they cross. */
export const curvesView = {
  name: "curves",

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const {t} = context;
    const stop = new AbortController();
    /** @type {Curves | null} */
    let made = null;
    const box = el("div", {class: "body"}, el("p", {class: "loading"}, t("loading")));
    root.replaceChildren(box);
    const start = async () => {
      const p = {...curvesDefaults, ...context.params};
      p.cluster = p.cluster.split(":")[0];
      const asked = {nodes: p.nodes, size: p.size};
      const [known, first] = await Promise.all([load("catalogue", {}, stop.signal),
        firstOf(p, stop.signal)]);
      made = new Curves(context, p, known, first, stop.signal);
      made.instead(asked);
      box.replaceWith(made.root);
      made.changed();
      await made.loadCharts();
      await made.fetchAll();
    };
    start().catch((error) => {
      if (stop.signal.aborted) return;
      box.replaceChildren(el("div", {class: "wrong", role: "alert"},
        el("p", {}, t("failed", {error: error.message})),
        button(t("startAgain"), () => context.go({}))));
    });
    return () => {
      stop.abort();
      made?.close();
    };
  },
};

class Curves {
  /**
   * @param {Context} context @param {Params} p @param {any} known @param {CurvesData} first
   * @param {AbortSignal} signal
   */
  constructor(context, p, known, first, signal) {
    this.context = context;
    this.p = p;
    this.signal = signal;
    this.sizes = first.sizes;
    this.offered = first.offered;
    this.title = first.title;
    /** @type {Map<number, CurvesData>} */
    this.each = new Map([[first.nodes, first]]);
    p.nodes = String(first.nodes);
    const size = Math.round(Number(p.size));
    p.size = Number.isNaN(size) ? curvesDefaults.size
      : String(Math.max(0, Math.min(size, this.sizes.length - 1)));
    for (const key of ["latency", "bandwidth"]) {
      p[key] = String(Math.max(-STEEP, Math.min(STEEP, Math.round(Number(p[key])) || 0)));
    }
    if (p.x !== "nodes") p.x = "size";
    this.hidden = new Set(p.hide.split(",").filter(Boolean));
    /** @type {import("../curves/measured.js").Measured[]} */
    this.measured = [];
    /** @type {any} */
    this.plotly = null;
    const {t} = context;
    /** Names of all algorithms, in an order that gives each its look. */
    this.names = known.collectives[p.collective].map((/** @type {any} */ a) => a.name).sort();
    this.points = el("ul", {class: "legend points"});
    this.sentence = el("p", {class: "sentence", "aria-live": "polite"});
    this.plots = CHARTS.map((what) => el("div", {class: "plot", role: "img",
      "aria-label": t(`curves_${what}`)}, el("p", {class: "loading"}, t("loading"))));
    this.legend = el("fieldset", {class: "lines"});
    this.tables = el("div", {class: "tables"});
    this.details = el("details", {open: p.tables === "1", ontoggle: () => this.listed()},
      el("summary", {}, t("tableBehind")), this.tables);
    this.sliders = el("div", {class: "controls"});
    this.charts = el("div", {class: "plots"}, ...this.plots.map((plot, i) => el("div", {}, plot, saveButtons(t,
        `roundelay-${p.collective}-${CHARTS[i]}`, () => this.svg(i)))));
    this.root = el("div", {class: "body"}, this.controls(known), this.sliders,
      el("p", {class: "soft"}, this.title), this.sentence,
      this.charts, this.legend, this.points, droppedFiles(t, p.collective, (measured) => {
        this.measured = measured;
        this.changed();
      }), el("p", {class: "soft note"}, t("curvesModel")), this.details);
    this.fields();
    this.due = 0;
    this.later = 0;
    this.width = 0;
    this.seen = new ResizeObserver(() => {
      if (this.plots[0].clientWidth !== this.width) this.soon();
    });
    this.seen.observe(this.plots[0]);
    context.repaint(() => this.changed());
  }

  /** @param {any} known @returns {HTMLElement} */
  controls(known) {
    const {t} = this.context;
    const {p} = this;
    const go = (/** @type {Params} */ changes) => this.context.go({...p, ...changes});
    const pairs = (/** @type {string[]} */ list) =>
      /** @type {[string, string][]} */ (list.map((name) => [name, name]));
    const fixed = [
      choice(t("cluster"), pairs(known.clusters), p.cluster, (cluster) => go({cluster})),
      choice(t("collective"), pairs(Object.keys(known.collectives)), p.collective,
        (collective) => go({collective, hide: ""}))];
    if (inside) fixed.forEach((label) => label.querySelector("select")?.setAttribute("disabled", ""));
    return el("form", {class: "controls", onsubmit: (/** @type {Event} */ e) => e.preventDefault()},
      ...fixed, choice(t("curvesX"), [["size", t("size")], ["nodes", t("clusterCount")]], p.x,
        (x) => {
          p.x = x;
          this.fields();
          this.changed();
        }));
  }

  /** The sliders: that of what stands still, and of latency and bandwidth. */
  fields() {
    const {t} = this.context;
    const {p} = this;
    const times = (/** @type {number} */ k) => `${Number((2 ** (k / 2)).toPrecision(2))} ×`;
    const moved = (/** @type {string} */ key) => (/** @type {number} */ k) => {
      p[key] = String(k);
      this.soon();
    };
    const still = p.x === "size"
      ? slider(t("clusterCount"), {name: "nodes", least: 0, most: this.offered.length - 1,
        at: Math.max(0, this.offered.indexOf(Number(p.nodes)))}, (i) => String(this.offered[i]),
      (i) => {
        p.nodes = String(this.offered[i]);
        this.soon();
      })
      : slider(t("size"), {name: "size", least: 0, most: this.sizes.length - 1, at: Number(p.size)},
        (i) => sizeText(this.sizes[i]), moved("size"));
    this.sliders.replaceChildren(still,
      slider(t("curvesLatency"), {name: "latency", least: -STEEP, most: STEEP,
        at: Number(p.latency)}, times, moved("latency")),
      slider(t("curvesBandwidth"), {name: "bandwidth", least: -STEEP, most: STEEP,
        at: Number(p.bandwidth)}, times, moved("bandwidth")));
  }

  /** Load the script that draws charts, and draw them; what is missing is said. */
  async loadCharts() {
    const {t} = this.context;
    try {
      const found = await loadCharts(await load("charts", {}, this.signal));
      if (this.signal.aborted) return;
      for (const plot of this.plots) plot.replaceChildren();
      this.plotly = found;
      this.changed();
    } catch {
      if (this.signal.aborted) return;
      this.charts.replaceChildren(el("p", {class: "wrong", role: "alert"}, t("noCharts")));
    }
  }

  /** Ask for the other numbers of nodes, one after another. */
  async fetchAll() {
    const {collective, cluster} = this.p;
    for (const nodes of this.offered) {
      if (this.each.has(nodes)) continue;
      try {
        this.each.set(nodes, await load("curves", {collective, cluster, nodes: String(nodes)},
          this.signal));
      } catch {
        return;
      }
      if (this.p.x === "nodes" || this.p.nodes === String(nodes)) this.soon();
    }
  }

  /** Draw in the next frame. */
  soon() {
    cancelAnimationFrame(this.due);
    this.due = requestAnimationFrame(() => this.changed());
  }

  get factors() {
    return {latency: 2 ** (Number(this.p.latency) / 2), bandwidth: 2 ** (Number(this.p.bandwidth) / 2)};
  }

  /** The lines as they are now, and where they cross. */
  now() {
    const {p} = this;
    const sized = p.x === "size";
    const each = [...this.each.values()].sort((a, b) => a.nodes - b.nodes);
    const data = this.each.get(Number(p.nodes));
    const lines = sized ? (data ? bySize(data, this.factors) : [])
      : byNodes(each, Number(p.size), this.factors);
    const xs = sized ? this.sizes : each.map((one) => one.nodes);
    const shown = lines.filter((line) => !this.hidden.has(line.algorithm));
    return {sized, each, data, lines, shown, xs, crossed: shown.length ? crossings(shown, xs) : []};
  }

  /** Draw everything as it is now. */
  changed() {
    const {t} = this.context;
    const now = this.now();
    const {sized, data, lines} = now;
    this.keep();
    if (sized && !data) {
      this.sentence.textContent = t("loading");
      return;
    }
    this.points.replaceChildren(...measuredKeys(sized ? this.measured : [],
      this.context.palette()));
    const wait = !sized && now.each.length < this.offered.length ? ` ${t("loading")}` : "";
    this.sentence.textContent = quickestText(now, t) + wait;
    const {names} = this;
    const dark = isDark(this.context.palette().ground);
    showLines(this.legend, lines, names, this.hidden, dark, t, () => this.changed());
    this.listed();
    cancelAnimationFrame(this.later);
    if (!this.plotly) return;
    // The second chart in the next frame, so that a slider's answer does not wait for both.
    this.draw(0, now);
    this.later = requestAnimationFrame(() => this.draw(1, now));
  }

  /** Draw a chart. @param {number} i its number @param {ReturnType<Curves["now"]>} now */
  draw(i, {sized, each, data, shown, xs, crossed}) {
    const {t} = this.context;
    const colour = this.context.palette();
    const busbwOf = (/** @type {number} */ k) => {
      const {x, y} = crossed[k];
      const bus = sized ? data?.bus ?? 1 : near(each, x).bus;
      return (sized ? x : this.sizes[Number(this.p.size)]) / y / 1e3 * bus;
    };
    const [plot, what] = [this.plots[i], CHARTS[i]];
    this.width = this.plots[0].clientWidth;
    const title = t(what === "time" ? "time" : "curves_busbw");
    this.plotly.react(plot, tracesOf({lines: shown, names: this.names, xs, what, sized,
      measured: sized ? this.measured : [], crossed, busbwOf, dark: isDark(colour.ground), colour,
      t}),
    layoutOf(title, what === "time", sized, xs, crossed, colour,
      {width: Math.max(280, this.width), x: t(sized ? "size" : "clusterCount")}),
    {displayModeBar: false});
    plot.setAttribute("aria-label", `${title}. ${this.sentence.textContent}`);
  }

  /** Say where something else is shown than was asked for. @param {Params} asked */
  instead(asked) {
    const said = insteadText(asked, this.p, this.sizes, this.context.t);
    if (said) this.sentence.before(el("p", {class: "soft", role: "status"}, said));
  }

  listed() {
    const open = this.details.open;
    this.p.tables = open ? "1" : "";
    this.keep();
    this.tables.replaceChildren(...(open ? curveTables(this.now(), this.sizes, this.measured,
      this.context.t) : []));
  }

  keep() {
    this.context.keep({...this.p, hide: [...this.hidden].join(",")});
  }

  /** @param {number} i @returns {Promise<{svg: string, width: number, height: number}>} */
  async svg(i) {
    const [width, height] = [900, 500];
    const url = await this.plotly.toImage(this.plots[i], {format: "svg", width, height});
    return {svg: decodeURIComponent(url.slice(url.indexOf(",") + 1)), width, height};
  }

  close() {
    cancelAnimationFrame(this.due);
    cancelAnimationFrame(this.later);
    this.seen.disconnect();
    if (this.plotly) for (const plot of this.plots) this.plotly.purge(plot);
  }
}

/** Whether a colour, #rrggbb, is dark. @param {string} colour @returns {boolean} */
function isDark(colour) {
  return parseInt(colour.slice(1, 3), 16) < 128;
}
