// @ts-check
import {el} from "../dom.js";
import {sizeText, timeText} from "../i18n.js";
import {canvasPen, svgPen} from "../pen.js";
import {drawLanes, laneHeight, LANE_LEFT, lanesHigh, laneY} from "./draw.js";
import {EVENT_KINDS} from "./model.js";

/**
 * @typedef {import("../main.js").Context} Context
 * @typedef {import("./model.js").RunModel} RunModel
 */

/** What a window shows of all stages. @typedef {{from: number, to: number, path: boolean,
 *   lane: number, event: number}} Shown ns from the start; lane and event of this stage or -1 */

/** A run's lanes on a canvas: drag to pan, wheel with Ctrl to zoom, point to ask. */
export class Stage {
  /**
   * @param {RunModel} model
   * @param {Context} context
   * @param {() => Shown} shown
   * @param {{pan: (ns: number) => void, zoom: (by: number, at: number) => void,
   *   pick: (rank: number, event: number) => void, rest: () => void}} acts
   */
  constructor(model, context, shown, acts) {
    this.model = model;
    this.context = context;
    this.shown = shown;
    this.acts = acts;
    this.width = 0;
    this.frame = 0;
    this.high = lanesHigh(model.lanes.length);
    this.canvas = el("canvas", {role: "img", "aria-label": model.name});
    this.tip = el("div", {class: "tip", hidden: true});
    this.root = el("div", {class: "stage lanes"}, this.canvas, this.tip);
    this.root.style.height = `${this.high}px`;
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.root);
    /** @type {{x: number, moved: boolean} | null} */
    this.held = null;
    this.#listen();
  }

  #listen() {
    const {canvas} = this;
    canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ e) => {
      this.held = {x: e.offsetX, moved: false};
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ e) => this.#moved(e));
    canvas.addEventListener("pointerup", (/** @type {PointerEvent} */ e) => {
      this.#moved(e);
      if (this.held && !this.held.moved) {
        const rank = this.#laneAt(e.offsetY);
        if (rank >= 0) this.acts.pick(rank, this.model.eventAt(rank, this.nsAtX(e.offsetX)));
      } else {
        this.acts.rest();
      }
      this.held = null;
    });
    canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    canvas.addEventListener("wheel", (/** @type {WheelEvent} */ e) => {
      if (e.ctrlKey || e.metaKey) this.acts.zoom(2 ** (e.deltaY / 300), this.nsAtX(e.offsetX));
      else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.acts.pan(e.deltaX * this.#per());
      else return;
      e.preventDefault();
      this.acts.rest();
    }, {passive: false});
  }

  /** @param {PointerEvent} e */
  #moved(e) {
    if (this.held) {
      const by = this.held.x - e.offsetX;
      if (Math.abs(by) < 3 && !this.held.moved) return;
      this.held = {x: e.offsetX, moved: true};
      this.tip.hidden = true;
      this.acts.pan(by * this.#per());
      return;
    }
    const rank = this.#laneAt(e.offsetY);
    const event = rank < 0 || e.offsetX < LANE_LEFT ? -1
      : this.model.eventAt(rank, this.nsAtX(e.offsetX));
    this.tip.hidden = event < 0;
    if (event < 0) return;
    this.tip.textContent = eventText(this.model, event, this.context.t);
    this.tip.style.left = `${Math.max(4, Math.min(e.offsetX + 12, this.width - 250))}px`;
    this.tip.style.top = `${laneY(rank, this.model.lanes.length) + laneHeight(this.model.lanes.length) + 6}px`;
  }

  /** @param {number} y @returns {number} */
  #laneAt(y) {
    const lanes = this.model.lanes.length;
    return this.model.lanes.findIndex((_, r) =>
      y >= laneY(r, lanes) && y <= laneY(r, lanes) + laneHeight(lanes));
  }

  /** ns of a pixel. @returns {number} */
  #per() {
    const {from, to} = this.shown();
    return (to - from) / Math.max(1, this.width - LANE_LEFT - 8);
  }

  /** @param {number} x @returns {number} */
  nsAtX(x) {
    return this.shown().from + (x - LANE_LEFT) * this.#per();
  }

  /** Fit the canvas to its place. */
  resize() {
    const width = Math.floor(this.root.clientWidth);
    if (!width || width === this.width) return;
    const scale = window.devicePixelRatio || 1;
    this.width = width;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.high * scale);
    this.canvas.getContext("2d").setTransform(scale, 0, 0, scale, 0, 0);
    this.draw();
  }

  /** Draw at the next frame. */
  redraw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  /** Draw now. */
  draw() {
    if (!this.width) return;
    const on = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    on.clearRect(0, 0, this.width, this.high);
    drawLanes(canvasPen(on), this.width, this.model, this.shown(), this.shown(),
      this.context.palette());
  }

  /** The picture as it is now. @param {string} title */
  svg(title) {
    const colour = this.context.palette();
    const width = this.width || 900;
    const {pen, picture} = svgPen(width, this.high, colour.ground);
    drawLanes(pen, width, this.model, this.shown(), this.shown(), colour);
    return {svg: picture(title), width, height: this.high};
  }

  /** No more. */
  close() {
    cancelAnimationFrame(this.frame);
    this.sizes.disconnect();
  }
}

/**
 * An event in a sentence.
 * @param {RunModel} model
 * @param {number} i
 * @param {import("../i18n.js").Tell} t
 * @returns {string}
 */
export function eventText(model, i, t) {
  const {begin, wait, work, kind, bytes, call, act, peer, cause} = model.at;
  const name = EVENT_KINDS[kind[i]];
  const rank = model.lanes.findIndex(({last}) => i < last);
  const worked = timeText(work[i] / 1e9);
  const when = timeText(begin[i] / 1e9);
  if (name === "call") {
    const numbers = model.at.call_number;
    const at = numbers.indexOf(call[i]);
    const text = model.data.calls[model.at.call_kind[at]] ?? "";
    return t("runCall", {rank: model.nameOf(rank), text, when, time: worked});
  }
  const [step, peers] = model.data.acts[act[i]] ?? [null, [peer[i]]];
  const others = peers.filter((/** @type {number} */ p) => p >= 0)
    .map((/** @type {number} */ p) => model.nameOf(p)).join(", ");
  const whom = cause[i] >= 0 ? model.lanes.findIndex(({last}) => cause[i] < last) : peer[i];
  const parts = [t(`runDid_${name}`, {rank: model.nameOf(rank), size: sizeText(bytes[i]),
    others: others || t("runItself"), when, time: worked})];
  if (step !== null) parts.push(t("runStep", {step: step + 1}));
  if (wait[i] > 0) {
    parts.push(t("runWaited", {time: timeText(wait[i] / 1e9), peer: model.nameOf(whom)}));
  }
  return parts.join(" ");
}
