// @ts-check
import {button, el} from "../dom.js";
import {timeText} from "../i18n.js";

const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];
const LONG_SPEEDS = [64, 256, 1024];
const SHORTEST = 8; // seconds that a schedule is played in, at least, where it has so many steps

/**
 * What is played: a picture, and the sentence about it.
 * @typedef {object} Film
 * @property {{steps: number, data: {parts?: [number, number, string][]}}} model
 * @property {HTMLElement} sentence
 * @property {Promise<void>} [ready] when the sentence is that of the moment shown
 * @property {(seconds: boolean) => number[]} ends of each step, when it ends
 * @property {(at: number) => void} show steps done, and part of the next
 */

/**
 * Play, pause, step, scrub: one clock for all panels, in steps or in modelled seconds.
 */
export class Transport {
  /**
   * @param {import("../main.js").Context} context
   * @param {Film[]} panels
   * @param {boolean} seconds
   * @param {{speed: number, at: number}} state
   * @param {() => void} rested called when it has stopped or stepped
   */
  constructor(context, panels, seconds, {speed, at}, rested) {
    this.context = context;
    this.panels = panels;
    this.seconds = seconds;
    this.rested = rested;
    this.ends = panels.map((panel) => panel.ends(seconds));
    this.last = Math.max(...this.ends.map((ends) => ends[ends.length - 1]));
    this.stops = [...new Set(this.ends.flat())].sort((a, b) => a - b);
    const steps = Math.max(...panels.map((panel) => panel.model.steps));
    this.speeds = [...SPEEDS, ...LONG_SPEEDS.filter((long) => long * SHORTEST <= steps)];
    this.speed = this.speeds.includes(speed) ? speed : 1;
    this.playing = false;
    const {t} = context;
    this.play = button(t("play"), () => this.toggle(), {class: "play", "aria-keyshortcuts": "Space"});
    this.slider = el("input", {type: "range", min: 0, max: 1000, step: "any", class: "scrub",
      "aria-label": t("position"), oninput: () => this.#scrub()});
    this.clock = el("output", {class: "clock"});
    this.rate = el("output", {class: "rate"});
    this.root = el("div", {class: "transport", role: "group", "aria-label": t("transport")},
      this.play,
      button("⇤", () => this.goTo(0), {"aria-label": t("toStart"), title: t("toStart")}),
      button("◁", () => this.step(-1), {"aria-label": t("back"), title: t("back")}),
      button("▷", () => this.step(1), {"aria-label": t("forward"), title: t("forward")}),
      button("⇥", () => this.goTo(this.last), {"aria-label": t("toEnd"), title: t("toEnd")}),
      el("div", {class: "track"}, this.slider, this.#parts()), this.clock,
      button("−", () => this.faster(-1), {"aria-label": t("slower"), title: t("slower")}),
      this.rate, button("+", () => this.faster(1), {"aria-label": t("faster"), title: t("faster")}));
    this.time = this.stops[Math.max(0, Math.min(Math.round(at) || 0, this.stops.length - 1))];
    this.faster(0);
  }

  /** Which of the stops the clock is at, or has passed last. @returns {number} */
  get stop() {
    return this.stops.findLastIndex((stop) => stop <= this.time + 1e-12);
  }

  /** Show the moment. @param {number} time */
  goTo(time) {
    this.time = Math.max(0, Math.min(time, this.last));
    this.panels.forEach((panel, i) => panel.show(this.#position(this.ends[i])));
    this.slider.value = String(this.last ? (1000 * this.time) / this.last : 0);
    const [now, all] = this.seconds ? [timeText(this.time), timeText(this.last)]
      : [Math.floor(this.time + 1e-9).toLocaleString(), this.last.toLocaleString()];
    this.clock.textContent = `${now} / ${all}`;
    this.slider.setAttribute("aria-valuetext",
      this.context.t("of", {now, all}));
    if (!this.playing) this.rested();
  }

  /** Stop at the next stop, or the one before. @param {1 | -1} way */
  async step(way) {
    this.pause();
    const next = way > 0 ? this.stops.find((stop) => stop > this.time + 1e-12)
      : this.stops.findLast((stop) => stop < this.time - 1e-12);
    if (next !== undefined) this.goTo(next);
    await Promise.all(this.panels.map((panel) => panel.ready));
    this.context.announce(this.panels.map((panel) => panel.sentence.textContent).join(" "));
  }

  /** @param {number} by how many speeds */
  faster(by) {
    const at = this.speeds.indexOf(this.speed) + by;
    this.speed = this.speeds[Math.max(0, Math.min(at, this.speeds.length - 1))];
    this.rate.textContent = this.context.t("speed", {speed: this.speed});
    if (by) this.rested();
  }

  /** Play or pause. */
  toggle() {
    if (this.playing) {
      this.pause();
      return;
    }
    if (this.time >= this.last) this.time = 0;
    this.playing = true;
    this.play.textContent = this.context.t("pause");
    let before = performance.now();
    const tick = (/** @type {number} */ now) => {
      if (!this.playing) return;
      const steps = Math.max(...this.panels.map((panel) => panel.model.steps));
      this.time += ((now - before) / 1000) * this.speed * (this.last / Math.max(1, steps));
      before = now;
      if (this.time >= this.last) this.pause();
      this.goTo(this.time);
      if (this.playing) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  /** Stop where it is. */
  pause() {
    const played = this.playing;
    this.playing = false;
    this.play.textContent = this.context.t("play");
    if (played) this.rested();
  }

  /**
   * Steps that have been done, and part of the next; whole ones only where motion is unwelcome.
   * @param {number[]} ends
   */
  #position(ends) {
    const step = ends.findLastIndex((end) => end <= this.time + 1e-12);
    if (step === ends.length - 1) return step;
    const part = (this.time - ends[step]) / (ends[step + 1] - ends[step]);
    return this.context.still() ? step : step + Math.max(0, part);
  }

  #scrub() {
    this.pause();
    this.goTo((Number(this.slider.value) / 1000) * this.last);
  }

  /** What runs of steps do, below the slider; of the first panel. @returns {HTMLElement} */
  #parts() {
    const {parts = []} = this.panels[0].model.data;
    const ends = this.ends[0];
    const band = el("div", {class: "parts"});
    for (const [first, last, what] of parts) {
      const share = this.last ? (ends[last] - ends[first - 1]) / this.last : 0;
      const part = el("span", {class: `part ${what}`}, this.context.t(`part_${what}`));
      part.style.width = `${100 * share}%`;
      band.append(part);
    }
    return band;
  }
}
