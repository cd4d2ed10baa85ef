// @ts-check
import {button, choice, el} from "../dom.js";
import {inside, load} from "../fetch.js";
import {sizeText} from "../i18n.js";
import {svgPen} from "../pen.js";
import {saveButtons, slider} from "../picture.js";
import {tableOf} from "../table.js";
import {drawLook, layoutOf, loadCharts, lookOf, tracesOf} from "../curves/charts.js";
import {readMeasured} from "../curves/measured.js";
import {byNodes, bySize, crossings, firstBest} from "../curves/model.js";

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
      const [known, drawn] = await Promise.all([load("catalogue", {}, stop.signal),
        load("charts", {}, stop.signal)]);
      const [plotly, first] = await Promise.all([loadCharts(drawn), firstOf(p, stop.signal)]);
      if (stop.signal.aborted) return;
      made = new Curves(context, p, known, plotly, first, stop.signal);
      box.replaceWith(made.root);
      made.changed();
      made.fetchAll();
    };
    start().catch((error) => {
      if (stop.signal.aborted) return;
      const said = error.message === "noCharts" ? t("noCharts") : t("failed", {error: error.message});
      box.replaceChildren(el("div", {class: "wrong", role: "alert"}, el("p", {}, said),
        button(t("startAgain"), () => context.go({}))));
    });
    return () => {
      stop.abort();
      made?.close();
    };
  },
};

/** The data of the number of nodes that is asked for, or of the usual one.
 * @param {Params} p @param {AbortSignal} signal @returns {Promise<CurvesData>} */
async function firstOf(p, signal) {
  const {collective, cluster} = p;
  try {
    return await load("curves", {collective, cluster, nodes: p.nodes}, signal);
  } catch (error) {
    if (p.nodes === "1") throw error;
    return load("curves", {collective, cluster, nodes: "1"}, signal);
  }
}

class Curves {
  /**
   * @param {Context} context @param {Params} p @param {any} known @param {any} plotly
   * @param {CurvesData} first @param {AbortSignal} signal
   */
  constructor(context, p, known, plotly, first, signal) {
    this.context = context;
    this.p = p;
    this.plotly = plotly;
    this.signal = signal;
    this.sizes = first.sizes;
    this.offered = first.offered;
    this.title = first.title;
    /** @type {Map<number, CurvesData>} */
    this.each = new Map([[first.nodes, first]]);
    p.nodes = String(first.nodes);
    if (!this.sizes[Number(p.size)]) p.size = curvesDefaults.size;
    for (const key of ["latency", "bandwidth"]) {
      p[key] = String(Math.max(-STEEP, Math.min(STEEP, Math.round(Number(p[key])) || 0)));
    }
    if (p.x !== "nodes") p.x = "size";
    this.hidden = new Set(p.hide.split(",").filter(Boolean));
    /** @type {import("../curves/measured.js").Measured[]} */
    this.measured = [];
    const {t} = context;
    this.sentence = el("p", {class: "sentence", "aria-live": "polite"});
    this.plots = CHARTS.map(() => el("div", {class: "plot", role: "img"}));
    this.legend = el("fieldset", {class: "lines"});
    this.said = el("p", {class: "soft", role: "status"});
    this.tables = el("div", {class: "tables"});
    this.details = el("details", {open: p.tables === "1", ontoggle: () => this.listed()},
      el("summary", {}, t("tableBehind")), this.tables);
    this.sliders = el("div", {class: "controls"});
    this.root = el("div", {class: "body"}, this.controls(known), this.sliders,
      el("p", {class: "soft"}, this.title), this.sentence,
      el("div", {class: "plots"}, ...this.plots.map((plot, i) => el("div", {}, plot, saveButtons(t,
        `roundelay-${p.collective}-${CHARTS[i]}`, () => this.svg(i))))),
      this.legend, this.dropping(), el("p", {class: "soft note"}, t("curvesModel")), this.details);
    this.fields();
    this.due = 0;
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

  /** Where files are dropped or chosen; they are read here. @returns {HTMLElement} */
  dropping() {
    const {t} = this.context;
    const input = el("input", {type: "file", multiple: true, class: "unseen", id: "measured",
      onchange: () => this.take(input.files)});
    const over = (/** @type {DragEvent} */ event) => event.preventDefault();
    return el("div", {class: "drop", ondragover: over, ondrop: (/** @type {DragEvent} */ event) => {
      event.preventDefault();
      this.take(event.dataTransfer?.files ?? []);
    }}, input, el("label", {for: "measured", class: "pick"}, t("curvesPick")),
    el("span", {class: "soft"}, t("curvesDrop")),
    button(t("curvesForget"), () => {
      this.measured = [];
      this.said.textContent = "";
      this.changed();
    }), this.said);
  }

  /** @param {ArrayLike<File>} files */
  async take(files) {
    const {t} = this.context;
    const said = [];
    for (const file of Array.from(files)) {
      try {
        const found = readMeasured(await file.text(), file.name, this.p.collective);
        this.measured = [...this.measured.filter(({name}) => !found.some((f) => f.name === name)),
          ...found];
        said.push(t("curvesTaken", {file: file.name,
          k: found.reduce((sum, {points}) => sum + points.length, 0)}));
      } catch (error) {
        said.push(t(/** @type {Error} */ (error).message, {file: file.name,
          collective: this.p.collective}));
      }
    }
    this.said.textContent = said.join(" ");
    this.changed();
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
    const {sized, data, lines, shown, xs, crossed} = now;
    this.keep();
    if (sized && !data) {
      this.sentence.textContent = t("loading");
      return;
    }
    this.sentence.textContent = this.says(now);
    const names = this.names();
    const colour = this.context.palette();
    const dark = isDark(colour.ground);
    const busbwOf = (/** @type {number} */ i) => {
      const {x, y} = crossed[i];
      const bus = sized ? data?.bus ?? 1 : near(now.each, x).bus;
      return (sized ? x : this.sizes[Number(this.p.size)]) / y / 1e3 * bus;
    };
    this.width = this.plots[0].clientWidth;
    this.plots.forEach((plot, i) => {
      const what = CHARTS[i];
      const title = t(`curves_${what}`);
      this.plotly.react(plot, tracesOf({lines: shown, hidden: this.hidden, names, xs, what, sized,
        measured: sized ? this.measured : [], crossed, busbwOf, dark, colour, t}),
      layoutOf(title, what === "time", sized, xs, crossed, colour,
        {width: Math.max(280, this.width), x: t(sized ? "size" : "clusterCount")}),
      {displayModeBar: false, staticPlot: false, responsive: false});
      plot.setAttribute("aria-label", `${title}. ${this.sentence.textContent}`);
    });
    this.choices(lines, names, dark);
    this.listed();
  }

  /** Names of all algorithms, in an order that does not change. @returns {string[]} */
  names() {
    return [...new Set([...this.each.values()].flatMap((one) =>
      one.curves.map((c) => c.algorithm)))].sort();
  }

  /** Which algorithm is the quickest, from where on. @param {ReturnType<Curves["now"]>} now */
  says({sized, shown, crossed, each}) {
    const {t} = this.context;
    if (!shown.length) return t("curvesNothing");
    const x = (/** @type {number} */ v) => (sized ? sizeText(Math.round(Number(v.toPrecision(3))))
      : t("curvesAtNodes", {k: Number(v.toPrecision(2))}));
    const first = t("curvesFirst", {algorithm: firstBest(shown)});
    const then = crossed.map((c) => t("curvesThen", {x: x(c.x), algorithm: c.to}));
    const wait = !sized && each.length < this.offered.length ? ` ${t("loading")}` : "";
    return first + then.join("") + t("curvesStop") + wait;
  }

  /** Which lines are shown. @param {import("../curves/model.js").Line[]} lines
   * @param {string[]} names @param {boolean} dark */
  choices(lines, names, dark) {
    const {t} = this.context;
    const key = [lines.map((line) => line.algorithm), names, dark].join();
    if (this.legend.dataset.key === key) return;
    this.legend.dataset.key = key;
    this.legend.replaceChildren(el("legend", {}, t("curvesLines")), ...lines.map(({algorithm}) => {
      const {pen, picture} = svgPen(40, 16, "none");
      drawLook(pen, lookOf(names.indexOf(algorithm), dark));
      const look = new DOMParser().parseFromString(picture(""), "image/svg+xml").documentElement;
      look.setAttribute("aria-hidden", "true");
      const box = el("input", {type: "checkbox", checked: !this.hidden.has(algorithm),
        onchange: () => {
          if (box.checked) this.hidden.delete(algorithm);
          else this.hidden.add(algorithm);
          this.changed();
        }});
      return el("label", {}, box, document.adoptNode(look), el("span", {}, algorithm));
    }));
  }

  listed() {
    const open = this.details.open;
    this.p.tables = open ? "1" : "";
    this.keep();
    const {t} = this.context;
    const {sized, shown, xs, crossed} = this.now();
    const x = (/** @type {number} */ v) => (sized ? sizeText(v) : String(v));
    const rows = (/** @type {"time" | "busbw"} */ what) => tableOf(t(`curves_${what}`),
      [t(sized ? "size" : "clusterCount"), ...shown.map((line) => line.algorithm)],
      xs.map((v, i) => [x(v), ...shown.map((line) => {
        const at = line.at[i];
        return at ? `${Number(at[what].toPrecision(4))}` : "–";
      })]));
    const cross = crossed.map((c) => [sized ? sizeText(c.x) : String(Number(c.x.toPrecision(3))),
      c.from, c.to, `${Number(c.y.toPrecision(4))}`]);
    const measured = this.measured.flatMap(({name, points}) => points.map((p) => [name,
      sizeText(p.size), String(p.time), String(p.busbw), predicted(shown, this.sizes, p.size)]));
    this.tables.replaceChildren(...(open ? [rows("time"), rows("busbw"),
      tableOf(t("curvesCrossings"), ["curvesWhere", "curvesFrom", "curvesTo", "curves_time"].map(
        (k) => t(k)), cross),
      ...(measured.length && sized ? [tableOf(t("curvesMeasured"), ["curvesFile", "size",
        "curves_time", "curves_busbw", "curvesPredicted"].map((k) => t(k)), measured)] : [])] : []));
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
    this.seen.disconnect();
    for (const plot of this.plots) this.plotly.purge(plot);
  }
}

/** Whether a colour, #rrggbb, is dark. @param {string} colour @returns {boolean} */
function isDark(colour) {
  return parseInt(colour.slice(1, 3), 16) < 128;
}

/** The data of the number of nodes that is nearest. @param {CurvesData[]} each @param {number} x */
function near(each, x) {
  return each.reduce((best, one) =>
    (Math.abs(one.nodes - x) < Math.abs(best.nodes - x) ? one : best));
}

/** Microseconds of the quickest line at a size, between the points on either side.
 * @param {import("../curves/model.js").Line[]} lines @param {number[]} sizes @param {number} size
 * @returns {string} */
function predicted(lines, sizes, size) {
  const i = sizes.findLastIndex((each) => each <= size);
  const best = (/** @type {number} */ k) =>
    Math.min(...lines.map((line) => line.at[k]?.time ?? Infinity));
  if (i < 0 || (i + 1 >= sizes.length && size > sizes[i])) return "–";
  if (size === sizes[i]) return `${Number(best(i).toPrecision(4))}`;
  const part = Math.log(size / sizes[i]) / Math.log(sizes[i + 1] / sizes[i]);
  const time = Math.exp((1 - part) * Math.log(best(i)) + part * Math.log(best(i + 1)));
  return Number.isFinite(time) ? `${Number(time.toPrecision(4))}` : "–";
}
