// @ts-check
import {button, el} from "../dom.js";
import {canvasPen, svgPen} from "../pen.js";
import {Picture, saveButtons, slider} from "../picture.js";
import {tableOf} from "../table.js";
import {drawBar, drawBarrel, drawRows, drawOdds, groupsOf, stepsBetween} from "../bucket/draw.js";
import {bucketFigures} from "../bucket/model.js";
import {bucketOf, bucketParams, CARDS, nearest, STALLS} from "../bucket/settings.js";

/** @typedef {import("../main.js").Context} Context */

const SPAN = 1200; // ms of the model that are seen at once
const PACE = 0.35; // ms of the model in a ms of the reader's
const BARREL = 220; // width of the bucket
const BESIDE = 720; // of the picture, above which the bucket stands beside the rows
const ROWS_HIGH = 290;
const KINDS = ["compute", "wait", "stall", "exchange", "update"];

/** The bucket: a step is as slow as its slowest card and link. */
export const bucketView = {
  name: "bucket",
  alone: true,

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const bucket = new Bucket(context);
    root.replaceChildren(bucket.root);
    bucket.changed();
    return () => bucket.close();
  },
};

class Bucket {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    const {params, t} = context;
    this.of = bucketOf(params);
    this.groups = groupsOf(this.of.n);
    this.shown = bucketFigures(this.of);
    this.rows = [this.shown];
    this.now = Math.min(Math.max(0, Number(params.ms || SPAN) || 0), 1e6);
    this.tables = params.tables === "1";
    /** @type {import("../bucket/draw.js").Step[]} */
    this.steps = [];
    this.frame = 0;
    this.canvas = el("canvas", {class: "lanes", role: "img"});
    this.playing = button(t("play"), () => this.toggle(), {class: "play"});
    this.sentence = el("p", {class: "sentence", "aria-live": "polite"});
    this.figures = el("dl", {class: "figures"});
    this.odds = new Picture(context, () => t("bucketOdds"), () => 240, (pen, w, h, colour) =>
      drawOdds(pen, {x: 4, y: 4, w: w - 8, h: h - 8}, this.rows, this.shown, colour, t));
    this.body = el("div", {class: "tables"});
    this.details = el("details", {open: this.tables, ontoggle: () => this.changed()},
      el("summary", {}, t("tableBehind")), this.body);
    this.seen = new ResizeObserver(() => this.draw());
    this.seen.observe(this.canvas);
    this.root = this.laidOut(t);
    context.keys({" ": () => this.toggle(), ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1), Home: () => this.goTo(0)});
    context.repaint(() => this.changed());
  }

  /** @param {import("../i18n.js").Tell} t @returns {HTMLElement} */
  laidOut(t) {
    const share = (/** @type {number} */ x) => `${Number((100 * x).toPrecision(3))} %`;
    const controls = el("form", {class: "controls", onsubmit: (/** @type {Event} */ e) =>
      e.preventDefault()},
    slider(t("bucketN"), {name: "n", least: 0, most: CARDS.length - 1,
      at: nearest(CARDS, this.of.n)}, (i) => CARDS[i].toLocaleString("en"),
    (i) => this.set({n: CARDS[i]})),
    slider(t("bucketSlow"), {name: "slow", least: 20, most: 60, at: Math.round(20 * this.of.slow)},
      (i) => `${(i / 20).toFixed(2)} ×`, (i) => this.set({slow: i / 20})),
    slider(t("bucketStall"), {name: "stall", least: 0, most: STALLS.length - 1,
      at: nearest(STALLS, this.of.stall)}, (i) => STALLS[i]
      ? t("bucketOneIn", {k: Math.round(1 / STALLS[i]).toLocaleString("en")}) : t("bucketNever"),
    (i) => this.set({stall: STALLS[i]})),
    slider(t("bucketNoise"), {name: "noise", least: 0, most: 20,
      at: Math.round(200 * this.of.noise)}, (i) => share(i / 200),
    (i) => this.set({noise: i / 200})));
    const transport = el("div", {class: "actions"},
      button("⇤", () => this.goTo(0), {"aria-label": t("toStart")}),
      button("◁", () => this.step(-1), {"aria-label": t("back")}), this.playing,
      button("▷", () => this.step(1), {"aria-label": t("forward")}));
    const key = el("ul", {class: "legend"}, ...KINDS.map((kind) => el("li", {},
      this.swatch(kind), t(`bucket_${kind}`))));
    return el("div", {class: "body"}, controls, this.sentence, this.canvas,
      el("div", {class: "below"}, transport, key,
        saveButtons(t, `roundelay-bucket-${this.of.n}`, () => this.svg())),
      this.figures, el("div", {class: "below"}, el("h2", {}, t("bucketOdds")),
        saveButtons(t, "roundelay-odds", () => this.odds.svg())), this.odds.root,
      el("p", {class: "soft note"}, t("bucketModel")), this.details);
  }

  /** A small picture of a pattern. @param {string} kind */
  swatch(kind) {
    const {pen, picture} = svgPen(24, 14, "none");
    drawBar(pen, 0, 0, 24, 14, kind, this.context.palette());
    const made = new DOMParser().parseFromString(picture(""), "image/svg+xml").documentElement;
    made.setAttribute("aria-hidden", "true");
    return document.adoptNode(made);
  }

  /** @param {Partial<import("../bucket/model.js").Bucket>} changes */
  set(changes) {
    Object.assign(this.of, changes);
    this.steps = [];
    this.changed();
  }

  /** Work out the figures and draw everything anew. */
  changed() {
    const {t} = this.context;
    this.groups = groupsOf(this.of.n);
    this.shown = bucketFigures(this.of);
    this.rows = CARDS.map((n) => bucketFigures({...this.of, n}));
    this.sentence.textContent = t("bucketSays", {n: this.of.n.toLocaleString("en"),
      mean: this.shown.mean.toFixed(0),
      more: Math.round(100 * (this.shown.mean / this.shown.ideal - 1)),
      lost: Number((100 * this.shown.lost).toPrecision(2))});
    this.figures.replaceChildren(...figuresOf(this.shown, t));
    this.odds.redraw();
    this.draw();
    this.body.replaceChildren(...(this.details.open ? [bucketTable(this.rows, t)] : []));
    this.keep();
  }

  keep() {
    this.context.keep({...bucketParams(this.of), ms: String(Math.round(this.now)),
      tables: this.details.open ? "1" : ""});
  }

  /** Draw the cards as they are now. */
  draw() {
    const {width} = this.canvas.getBoundingClientRect();
    if (!width) return;
    const [wide, ratio] = [Math.floor(width), devicePixelRatio || 1];
    const high = heightOf(wide);
    if (this.canvas.width !== Math.round(wide * ratio)) {
      this.canvas.width = Math.round(wide * ratio);
      this.canvas.height = Math.round(high * ratio);
      this.canvas.style.height = `${high}px`;
    }
    const on = this.canvas.getContext("2d");
    on.setTransform(ratio, 0, 0, ratio, 0, 0);
    on.clearRect(0, 0, wide, high);
    this.paint(canvasPen(on), wide, high);
  }

  /** @param {import("../pen.js").Pen} pen @param {number} wide @param {number} high */
  paint(pen, wide, high) {
    const {t} = this.context;
    const [groups, colour] = [this.groups, this.context.palette()];
    const seen = stepsBetween(this.of, groups, this.steps, Math.max(0, this.now - SPAN), this.now);
    const step = seen[seen.length - 1];
    // The bucket stands beside the rows, or below them.
    const beside = wide > BESIDE;
    const [x, y] = beside ? [wide - BARREL - 8, 4] : [(wide - BARREL) / 2, ROWS_HIGH + 12];
    drawRows(pen, {x: 0, y: 4, w: beside ? wide - BARREL - 40 : wide - 4,
      h: (beside ? high : ROWS_HIGH) - 8}, this.of, groups, seen, this.now, SPAN, colour, t);
    drawBarrel(pen, {x, y, w: BARREL, h: high - y - 48}, this.of, step, colour);
    const said = {k: step.number + 1, ms: step.end.toFixed(0)};
    ["bucketStep", "bucketWater"].forEach((key, i) => pen.text(x + BARREL / 2,
      high - 32 + 18 * i, t(key, said), 13, {fill: i ? colour.soft : colour.text}));
    this.canvas.setAttribute("aria-label", t("bucketShows", {n: this.of.n, k: step.number + 1,
      ms: step.end.toFixed(0), wait: (step.begin - Math.min(...step.computes)).toFixed(0)}));
  }

  /** @returns {{svg: string, width: number, height: number}} */
  svg() {
    const [width, height] = [960, heightOf(960)];
    const {pen, picture} = svgPen(width, height, this.context.palette().ground);
    this.paint(pen, width, height);
    return {svg: picture(this.canvas.getAttribute("aria-label")), width, height};
  }

  toggle() {
    if (this.frame) {
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      this.keep();
    } else {
      let before = performance.now();
      const tick = (/** @type {number} */ time) => {
        this.now += PACE * Math.min(100, Math.max(0, time - before));
        before = time;
        this.draw();
        this.frame = requestAnimationFrame(tick);
      };
      this.frame = requestAnimationFrame(tick);
    }
    this.playing.textContent = this.context.t(this.frame ? "pause" : "play");
  }

  /** To the end of the next step, or of the one before. @param {number} by */
  step(by) {
    if (this.frame) this.toggle();
    const ends = [0];
    for (const s of stepsBetween(this.of, this.groups, this.steps, 0, this.now + 1)) {
      ends.push(s.from + s.end);
    }
    const next = by > 0 ? ends.find((end) => end > this.now + 1e-6)
      : ends.findLast((end) => end < this.now - 1e-6);
    this.goTo(next ?? 0);
  }

  /** @param {number} ms */
  goTo(ms) {
    this.now = ms;
    this.draw();
    this.keep();
  }

  close() {
    cancelAnimationFrame(this.frame);
    this.seen.disconnect();
    this.odds.close();
  }
}

/** @param {number} wide @returns {number} */
function heightOf(wide) {
  return wide > BESIDE ? 340 : ROWS_HIGH + 250;
}

/** @param {import("../bucket/model.js").Figures} f @param {import("../i18n.js").Tell} t */
function figuresOf(f, t) {
  const ms = (/** @type {number} */ x) => `${x.toFixed(0)} ms`;
  const shown = /** @type {[string, string][]} */ ([
    ["bucketIdeal", ms(f.ideal)], ["bucketMean", ms(f.mean)], ["p50", ms(f.p50)],
    ["p99", ms(f.p99)], ["p99.9", ms(f.p999)],
    ["bucketHours", Number(f.hours.toPrecision(3)).toLocaleString("en")],
    ["bucketWell", `${Number((100 * f.well).toPrecision(4))} %`],
  ]);
  return shown.map(([key, value]) => el("div", {}, el("dt", {}, t(key)), el("dd", {}, value)));
}

/** @param {import("../bucket/model.js").Figures[]} rows @param {import("../i18n.js").Tell} t */
function bucketTable(rows, t) {
  const head = ["bucketN", "bucketMean", "p50", "p99", "p99.9", "bucketLost", "bucketHours",
    "bucketWell"].map((key) => t(key));
  return tableOf(t("bucketTable"), head, rows.map((f) => [f.n.toLocaleString("en"),
    ...[f.mean, f.p50, f.p99, f.p999].map((ms) => `${ms.toFixed(1)} ms`),
    `${(100 * f.lost).toFixed(1)} %`, Number(f.hours.toPrecision(3)).toLocaleString("en"),
    `${(100 * f.well).toFixed(2)} %`]));
}
