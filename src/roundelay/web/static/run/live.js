// @ts-check
import {choice, el} from "../dom.js";
import {inside, load} from "../fetch.js";
import {timeText} from "../i18n.js";
import {Picture, saveButtons} from "../picture.js";
import {tableOf} from "../table.js";

/** @typedef {import("../main.js").Context} Context */

const AGAIN_MS = 1000;
const AROUND = 260;

/** A job on this machine, asked every second: what each rank does, who keeps whom waiting. */
export class Live {
  /** @param {Context} context @param {string} job @param {(job: string) => void} chosen */
  constructor(context, job, chosen) {
    this.context = context;
    this.job = job;
    this.chosen = chosen;
    /** @type {any} */
    this.status = null;
    this.listed = "";
    this.timer = 0;
    this.stop = new AbortController();
    this.top = el("div", {class: "controls"});
    this.said = el("div", {class: "sentence", "aria-live": "polite"});
    this.picture = new Picture(context, () => this.said.textContent ?? "",
      (w) => Math.min(2 * AROUND, w, 180 + 28 * (this.status?.ranks.length ?? 0)),
      (pen, w, h, colour) => drawStatus(pen, w, h, this.status, colour, context.t));
    this.table = el("div", {class: "tables"});
    this.shown = el("div", {}, this.picture.root, saveButtons(context.t, "roundelay-live",
      () => this.picture.svg()), this.table);
    this.root = el("div", {}, this.top, this.said, this.shown);
    this.shown.hidden = true;
    if (inside) this.#say(context.t("liveNever"));
    else this.#ask();
  }

  /** @param {string} text @param {boolean} [wrong] */
  #say(text, wrong = false) {
    if (this.said.textContent === text) return;
    this.said.replaceChildren(el("p", wrong ? {class: "wrong", role: "alert"} : {}, text));
  }

  async #ask() {
    try {
      const found = await load("live", {job: this.job}, this.stop.signal);
      this.#show(found.jobs, found.status);
    } catch (error) {
      if (this.stop.signal.aborted) return;
      this.shown.hidden = true;
      this.#say(this.context.t("failed", {error: /** @type {Error} */ (error).message}), true);
    }
    this.timer = window.setTimeout(() => this.#ask(), AGAIN_MS);
  }

  /** @param {string[]} jobs @param {any} status */
  #show(jobs, status) {
    const {t} = this.context;
    if (jobs.join() !== this.listed) {
      this.listed = jobs.join();
      const listed = /** @type {[string, string][]} */ ([["", t("liveFirst")],
        ...jobs.map((name) => [name, name])]);
      this.top.replaceChildren(...(jobs.length ? [choice(t("liveJob"), listed, this.job, (name) => {
        this.job = name;
        this.chosen(name);
      })] : []));
    }
    this.status = status;
    this.shown.hidden = !status;
    if (!status) {
      this.#say(this.job ? t("liveGone", {job: this.job}) : t("liveNone"));
      return;
    }
    const found = status.findings.map((/** @type {any} */ f) => f.text).join(" ");
    this.#say(found || t("liveFine", {job: status.job, n: status.ranks.length}), Boolean(found));
    this.picture.redraw();
    this.table.replaceChildren(tableOf(t("liveTable"), ["liveRank", "liveNode", "liveState",
      "liveDoes", "liveSince", "liveWaits"].map((key) => t(key)), status.ranks.map(
      (/** @type {any} */ r) => [String(r.rank), String(r.node), t(`live_${r.state}`),
        r.operation || "–", r.operation ? timeText(r.since_s) : "–",
        r.waiting_for.join(", ") || "–"])));
  }

  /** Ask no longer. */
  close() {
    this.stop.abort();
    clearTimeout(this.timer);
    this.picture.close();
  }
}

const LIVE_MARKS = /** @type {Record<string, string>} */ ({waiting: "…", running: "▷", silent: "?",
  gone: "✕", unknown: "?"});

/** Ranks in a circle; an arrow leads from who waits to whom.
 * @param {import("../pen.js").Pen} pen @param {number} width @param {number} height
 * @param {any} status @param {Record<string, string>} colour
 * @param {import("../i18n.js").Tell} t */
function drawStatus(pen, width, height, status, colour, t) {
  if (!status) return;
  const n = status.ranks.length;
  const radius = Math.min(width, height) / 2 - 42;
  const box = Math.max(5, Math.min(22, (2.4 * radius) / n));
  const at = status.ranks.map((/** @type {any} */ _, /** @type {number} */ i) => {
    const turn = (2 * Math.PI * i) / n - Math.PI / 2;
    return [width / 2 + radius * Math.cos(turn), height / 2 + radius * Math.sin(turn)];
  });
  const places = new Map(status.ranks.map((/** @type {any} */ r, /** @type {number} */ i) =>
    [r.rank, i]));
  status.ranks.forEach((/** @type {any} */ r, /** @type {number} */ i) => {
    for (const other of r.waiting_for) {
      const [x, y] = at[i];
      const [u, v] = at[places.get(other) ?? i];
      const far = Math.hypot(u - x, v - y) || 1;
      const [dx, dy] = [(u - x) / far, (v - y) / far];
      const [ex, ey] = [u - dx * (box + 4), v - dy * (box + 4)];
      pen.path(`M${x + dx * box} ${y + dy * box}L${ex} ${ey}M${ex - 7 * dx - 4 * dy} ` +
        `${ey - 7 * dy + 4 * dx}L${ex} ${ey}L${ex - 7 * dx + 4 * dy} ${ey - 7 * dy - 4 * dx}`,
      {stroke: colour.wrong, width: 1.5});
    }
  });
  status.ranks.forEach((/** @type {any} */ r, /** @type {number} */ i) => {
    const [x, y] = at[i];
    const bad = r.state === "silent" || r.state === "gone";
    pen.dot(x, y, box, {fill: colour.card, stroke: bad ? colour.wrong : colour.add, width: 2});
    if (box < 10) return;
    pen.text(x, y - box * 0.2, String(r.rank), box * 0.7, {fill: colour.text}, "center", true);
    pen.text(x, y + box * 0.5, LIVE_MARKS[r.state] ?? "", box * 0.6, {fill: colour.soft});
    pen.text(x, y + box + 11, t(`live_${r.state}`), 11, {fill: colour.soft});
  });
}
