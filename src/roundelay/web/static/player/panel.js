// @ts-check
import {el} from "../dom.js";
import {sizeText, timeText} from "../i18n.js";
import {canvasPen, svgPen} from "../pen.js";
import {Cursor} from "./cursor.js";
import {drawCards, drawHistory, drawPieces, drawWays} from "./draw.js";
import {formulaKey, formulaText} from "./formula.js";
import {geometryOf, under} from "./geometry.js";
import {Model} from "./model.js";

/**
 * @typedef {import("../main.js").Context} Context
 * @typedef {import("./model.js").Played} Played
 */

/** A schedule's picture, what is said of its step, and its counters. */
export class Panel {
  /**
   * @param {Played} data
   * @param {Context} context
   * @param {string} label what it is called, unlike the other panel
   */
  constructor(data, context, label) {
    this.label = label;
    this.model = new Model(data);
    this.context = context;
    this.at = 0;
    this.width = 0;
    this.height = 0;
    this.scale = 1;
    this.told = -1;
    this.done = -1;
    this.stillOf = -1;
    this.geometry = geometryOf(data.places, data.layout, data.pieces.length, 600, 400,
      this.#letters());
    /** @type {{place: number, piece: number} | null} */
    this.pointed = null;
    const {t, lang} = context;
    this.canvas = el("canvas", {role: "img"});
    this.still = document.createElement("canvas");
    this.tip = el("div", {class: "tip", hidden: true});
    this.cursor = new Cursor(this);
    this.stage = el("div", {class: "stage"}, this.canvas, this.tip, this.cursor.root);
    this.sentence = el("p", {class: "sentence"});
    this.part = el("p", {class: "soft part-says"});
    this.counters = el("dl", {class: "counters"});
    this.root = el("section", {class: "panel", "aria-label": label},
      el("h2", {}, label), el("p", {class: "soft"}, data.purpose[lang]), this.stage,
      this.sentence, this.part, this.counters, el("p", {class: "soft formulas"}, formulaKey(t,
        Object.values(data.card).map(([formula]) => formulaText(formula)), data.ranks, data.size)));
    const broken = data.broken?.[lang];
    if (broken) this.root.append(el("p", {class: "wrong", role: "alert"}, this.#found(broken)));
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => this.#point(e));
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => this.#point(e));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.stage);
  }

  /** Steps of the clock: of each step when it ends. @param {boolean} seconds @returns {number[]} */
  ends(seconds) {
    const ends = seconds ? this.model.data.seconds : null;
    return ends?.length ? [0, ...ends] : this.model.data.states.map((_, step) => step);
  }

  /** Fit the picture to its stage. */
  resize() {
    const width = Math.floor(this.stage.clientWidth);
    const height = Math.floor(this.stage.clientHeight);
    if (!width || !height) return;
    const scale = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.still]) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    this.width = width;
    this.height = height;
    this.scale = scale;
    const {places, layout, pieces} = this.model.data;
    this.geometry = geometryOf(places, layout, pieces.length, width, height,
      this.#letters());
    this.cursor.fit();
    this.told = -1; // what is said at the start depends on the picture's size
    this.redraw();
  }

  /** Draw all anew: another size, or other colours. */
  redraw() {
    this.stillOf = -1;
    this.show(this.at);
  }

  /**
   * Show a moment.
   * @param {number} at steps done, and part of the next
   */
  show(at) {
    this.at = Math.max(0, Math.min(at, this.model.steps));
    const step = Math.floor(this.at + 1e-9);
    const part = Math.max(0, this.at - step);
    this.#say(part > 0 ? step + 1 : step, step);
    if (!this.width) return;
    const colour = this.context.palette();
    const flying = part > 0;
    this.#drawStill(step, flying, colour);
    const on = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    on.setTransform(1, 0, 0, 1, 0, 0);
    on.clearRect(0, 0, this.canvas.width, this.canvas.height);
    on.drawImage(this.still, 0, 0);
    on.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    const pen = canvasPen(on);
    if (flying) drawPieces(pen, this.model, this.geometry, colour, step + 1, part);
    if (this.pointed) {
      const {place, piece} = this.pointed;
      this.tip.textContent = this.describe(place, piece);
      drawHistory(pen, this.geometry, colour, this.model.history(place, piece));
    }
    if (document.activeElement === this.cursor.root) this.cursor.fit();
  }

  /** The picture as it is now. @returns {{svg: string, width: number, height: number}} */
  svg() {
    const colour = this.context.palette();
    const {pen, picture} = svgPen(this.width, this.height, colour.ground);
    const step = Math.floor(this.at + 1e-9);
    const part = Math.max(0, this.at - step);
    const {model, geometry} = this;
    model.goTo(step);
    drawCards(pen, model, geometry, colour, this.context.t);
    drawWays(pen, model, geometry, colour, part ? step + 1 : step, part > 0);
    if (part) drawPieces(pen, model, geometry, colour, step + 1, part);
    return {svg: picture(`${this.model.data.name}: ${this.sentence.textContent}`),
      width: this.width, height: this.height};
  }

  /** Let go of what it listens to. */
  close() {
    this.sizes.disconnect();
  }

  /** What stays as it is during a step.
   * @param {number} step @param {boolean} flying @param {Record<string, string>} colour */
  #drawStill(step, flying, colour) {
    const key = 2 * step + (flying ? 1 : 0);
    if (this.stillOf === key && this.model.step === step) return;
    this.stillOf = key;
    this.model.goTo(step);
    const on = /** @type {CanvasRenderingContext2D} */ (this.still.getContext("2d"));
    on.setTransform(1, 0, 0, 1, 0, 0);
    on.clearRect(0, 0, this.still.width, this.still.height);
    on.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    const pen = canvasPen(on);
    drawCards(pen, this.model, this.geometry, colour, this.context.t);
    drawWays(pen, this.model, this.geometry, colour, flying ? step + 1 : step, flying);
  }

  /** What the step that is under way or just done does. @param {number} told @param {number} done */
  #say(told, done) {
    if (this.told === told && this.done === done) return;
    [this.told, this.done] = [told, done];
    const {t, lang} = this.context;
    const {data, steps} = this.model;
    const said = data.states[told].said[lang];
    const ended = done === steps && done > 0 && told === done ? ` ${data.outcome[lang] ?? ""}` : "";
    this.sentence.textContent = told ? t("step", {step: told}) + said + ended : this.#start();
    this.part.textContent = told ? this.#partSays(told) : this.#introduction();
    this.canvas.setAttribute("aria-label", `${this.label}. ${this.sentence.textContent}`);
    this.#count(done, told);
  }

  /** What there is before the first step, for who sees such a picture for the first time. */
  #start() {
    const {ranks, pieces, sums} = this.model.data;
    return this.context.t(!sums ? "start" : pieces.length > 1 ? "startPieces" : "startWhole",
      {n: ranks, pieces: pieces.length, last: pieces.length - 1});
  }

  /** What a rank is, what stands on its pieces, and which rank is the next. */
  #introduction() {
    const {t, lang} = this.context;
    const {ranks, sums, wanted, layout} = this.model.data;
    const counted = sums && wanted.every((count) => count === ranks);
    return [t("startRank"), ...(counted ? [t(this.geometry.label === "full" ? "startCount"
      : "startFilled", {n: ranks})] : []),
      ...(layout === "circle" ? [t("startRound")] : [])].join(lang === "zh" ? "" : " ");
  }

  /** What the run of steps does that a step is one of. @param {number} step @returns {string} */
  #partSays(step) {
    const [a, b, what] = this.model.data.parts.find(([first, last]) => first <= step && step <= last)
      ?? [0, 0, ""];
    const key = `partSays_${what}`;
    const said = this.context.t(key, {a, b});
    return said === key ? "" : said;
  }

  /** What was left out, and what the verifier finds. @param {string} broken @returns {string} */
  #found(broken) {
    const {t} = this.context;
    const {data} = this.model;
    const [step, src, dst, piece] = data.dropped ?? [0, 0, 0, 0];
    return t("verifier", {broken, step, piece: data.pieces[piece], from: placeName(t, data, src),
      to: placeName(t, data, dst)});
  }

  /** Letters of the longest name of a piece, and of what it holds. @returns {[number, number]} */
  #letters() {
    const {pieces, sums, wanted, broken} = this.model.data;
    const held = sums ? 1 + 2 * String(Math.max(...wanted)).length : 2;
    return [Math.max(...pieces.map((name) => name.length)), held + (broken ? 2 : 0)];
  }

  /** @param {number} done @param {number} told */
  #count(done, told) {
    const {t} = this.context;
    const {data, steps, tallies} = this.model;
    const [now, last] = [tallies[done], tallies[steps]];
    const rows = [
      [t("steps"), t("of", {now: done, all: steps}), data.card.steps[0]],
      [t("sent"), t("of", {now: sizeText(now.sent), all: sizeText(last.sent)}),
        data.card.bytes_sent[0]],
      [t("messages"), t("of", {now: now.messages, all: last.messages}), data.card.messages[0]],
      [t("arrivals"), String(tallies[told].arrivals), ""],
    ];
    if (data.seconds?.length && data.timing) {
      const ends = [0, ...data.seconds];
      rows.push([t("time"), t("of", {now: timeText(ends[done]), all: timeText(ends[steps])}),
        t(data.timing.slices > 1 ? "timedSliced" : "timed", {cluster: data.cluster,
          protocol: data.timing.protocol, slices: data.timing.slices,
          time: timeText(data.timing.time), link: data.timing.binding_link})]);
    }
    this.counters.replaceChildren(...rows.map(([name, value, formula]) => el("div",
      {class: name === t("time") ? "wide" : null},
      el("dt", {}, name), el("dd", {}, value),
      el("dd", {class: "formula"}, name === t("time") ? formula : formulaText(formula)))));
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const found = under(this.geometry, this.model.data.pieces.length, x, y);
    const had = this.pointed;
    const piece = found && found.piece >= 0 ? found : null;
    if (piece?.place === had?.place && piece?.piece === had?.piece) return;
    this.point(piece, x, y);
  }

  /**
   * Tell where a piece has been, below a point of the picture; null: no more.
   * @param {{place: number, piece: number} | null} pointed @param {number} [x] @param {number} [y]
   */
  point(pointed, x = 0, y = 0) {
    this.pointed = pointed;
    this.tip.hidden = !pointed;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, this.width - 240))}px`;
    this.tip.style.top = `${Math.min(y + 16, this.height - 20)}px`;
    this.show(this.at);
  }

  /**
   * What a piece of a card has in it, in words.
   * @param {number} place @param {number} piece @returns {string}
   */
  holds(place, piece) {
    const {t} = this.context;
    const {data, counts} = this.model;
    const count = counts[place * data.pieces.length + piece];
    const [named, wanted] = [data.pieces[piece], data.wanted[piece]];
    const where = {piece: named, place: placeName(t, data, place)};
    return data.sums ? t("holds", {...where, count, wanted})
      : t("holdsPiece", {...where, count: t(count ? "isThere" : "isNotThere")});
  }

  /**
   * The same, and where it has been.
   * @param {number} place @param {number} piece @returns {string}
   */
  describe(place, piece) {
    const {t} = this.context;
    const {data, counts} = this.model;
    const holds = this.holds(place, piece);
    const way = this.model.history(place, piece);
    if (!way.length) {
      return counts[place * data.pieces.length + piece] ? `${holds} ${t("own")}` : holds;
    }
    const been = [way[0].src, ...way.map((move) => move.dst)].map((p) => placeName(t, data, p));
    return `${holds} ${t("been", {way: been.join(" → ")})}`;
  }
}

/**
 * @param {import("../i18n.js").Tell} t @param {Played} data @param {number} place
 * @returns {string}
 */
export function placeName(t, data, place) {
  return place < data.ranks ? t("placeRank", {rank: place}) : t("switch", {number: place - data.ranks});
}
