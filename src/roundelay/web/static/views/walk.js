// @ts-check
import {button, choice, el} from "../dom.js";
import {inside, load} from "../fetch.js";
import {sizeText, timeText} from "../i18n.js";
import {mountLoaded} from "../mount.js";
import {Picture, saveButtons} from "../picture.js";
import {tableOf} from "../table.js";
import {drawStairs, drawTokens, stairsHigh, tokensHigh, WALK_PARTS} from "../walk/draw.js";
import {tokensOf} from "../walk/model.js";

/** @typedef {import("../main.js").Context} Context */

/** @type {Record<string, string>} */
const walkDefaults = {walk: "smollm2", token: "1", step: "1", tables: ""};

/** A walk along one request: from the Enter key to the screen. */
export const walkView = {
  name: "walk",

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const {t} = context;
    const p = {...walkDefaults, ...context.params};
    return mountLoaded(root, t, async (box, signal) => {
      const walks = await load("walks", {}, signal);
      const here = inside ? walks.filter((/** @type {any} */ w) => w.name === p.walk) : walks;
      const controls = el("form", {class: "controls",
        onsubmit: (/** @type {Event} */ e) => e.preventDefault()},
      choice(t("walkWhich"), here.map((/** @type {any} */ w) => [w.name, w.cluster
        ? t("walkWorked", {name: w.name, cluster: w.cluster, n: w.ranks})
        : t("walkMeasured", {name: w.name, n: w.ranks, k: w.tokens})]), p.walk,
      (walk) => context.go({walk})), inside ? el("p", {class: "soft note"}, t("oneFile")) : "");
      box.replaceChildren(controls, el("p", {class: "loading"}, t("loading")));
      const drawn = new WalkPart(await load("walk", {name: p.walk}, signal), p, context);
      box.replaceChildren(controls, drawn.root);
      return drawn;
    });
  },
};

class WalkPart {
  /** @param {any} data @param {Record<string, string>} p @param {Context} context */
  constructor(data, p, context) {
    this.data = data;
    this.p = p;
    this.context = context;
    this.tokens = tokensOf(data.steps);
    const {t} = context;
    const within = (/** @type {string} */ text, /** @type {number} */ most) =>
      Math.min(most, Math.max(1, Math.floor(Number(text)) || 1)) - 1;
    this.token = within(p.token, this.tokens.length);
    this.step = within(p.step, this.now.steps.length);
    this.sentence = el("p", {class: "sentence", "aria-live": "polite"});
    this.stairs = new Picture(context, () => this.sentence.textContent ?? "",
      () => stairsHigh(this.now), (pen, w, _, colour) =>
        drawStairs(pen, w, this.now, this.step, colour, t));
    this.bars = new Picture(context, () => t("walkTokens"), tokensHigh, (pen, w, _, colour) =>
      drawTokens(pen, w, this.tokens, this.token, colour, t));
    this.title = el("h2", {});
    this.tables = el("div", {class: "tables"});
    this.details = el("details", {open: p.tables === "1", ontoggle: () => this.changed()},
      el("summary", {}, t("tableBehind")), this.tables);
    const named = (/** @type {string} */ sign, /** @type {string} */ key, /** @type {() => void} */ act) =>
      button(sign, act, {"aria-label": t(key), title: t(key)});
    const transport = el("div", {class: "transport", role: "group", "aria-label": t("walkMove")},
      named("⇤", "toStart", () => this.goTo(0, 0)), named("◁", "back", () => this.move(-1)),
      named("▷", "forward", () => this.move(1)), named("⇥", "toEnd", () => this.end()));
    this.root = el("div", {}, el("p", {class: "said"}, ...this.#said()),
      el("p", {}, this.#summary()), this.title, this.sentence, transport, this.stairs.root,
      el("div", {class: "below"}, this.#legend(),
        saveButtons(t, "roundelay-walk", () => this.stairs.svg())),
      el("p", {class: "soft note"}, t("walkAlternate")),
      ...(this.tokens.length > 1 ? [el("h2", {}, t("walkTokens")), this.bars.root,
        saveButtons(t, "roundelay-tokens", () => this.bars.svg())] : []), this.details);
    context.keys({ArrowLeft: () => this.move(-1), ArrowRight: () => this.move(1),
      Home: () => this.goTo(0, 0), End: () => this.end()});
    context.repaint(() => this.changed());
    this.changed();
  }

  /** The token that is walked along. */
  get now() {
    return this.tokens[this.token];
  }

  /** What was asked, and answered. @returns {(Node | string)[]} */
  #said() {
    const {prompt, text, cluster, ranks} = this.data;
    if (cluster) return [this.context.t("walkCluster", {cluster, n: ranks})];
    return [el("q", {}, shortened(prompt ?? "")), " → ",
      el("q", {class: "answer"}, shortened(text ?? ""))];
  }

  /** Where the time of a token goes. @returns {string} */
  #summary() {
    const {t} = this.context;
    const {token_us: whole, exchanges_per_token: count, exchange_share: share, wait_us: wait,
      compute_us: compute} = this.data;
    const percent = (/** @type {number} */ x) => (Number.isFinite(x)
      ? `${Number((100 * x).toPrecision(2))} %` : "–");
    const said = t("walkShare", {time: timeText(whole / 1e6), count: Math.round(count),
      share: percent(share)});
    return wait ? said + t("walkWait", {share: percent(wait / whole),
      compute: percent(compute / whole)}) : said;
  }

  /** @returns {HTMLElement} */
  #legend() {
    const {t} = this.context;
    return el("ul", {class: "legend"}, ...WALK_PARTS.map((part) => el("li", {},
      el("span", {class: `key walk-${part}`, "aria-hidden": "true"}), t(`walkPart_${part}`))));
  }

  /** @param {number} by steps */
  move(by) {
    const at = this.step + by;
    if (at >= 0 && at < this.now.steps.length) this.goTo(this.token, at);
    else if (by > 0 && this.token + 1 < this.tokens.length) this.goTo(this.token + 1, 0);
    else if (by < 0 && this.token) {
      this.goTo(this.token - 1, this.tokens[this.token - 1].steps.length - 1);
    }
  }

  end() {
    const last = this.tokens.length - 1;
    this.goTo(last, this.tokens[last].steps.length - 1);
  }

  /** @param {number} token @param {number} step */
  goTo(token, step) {
    [this.token, this.step] = [token, step];
    this.changed();
  }

  changed() {
    const {t} = this.context;
    const step = this.now.steps[this.step];
    this.title.textContent = t("walkTokenOf", {k: this.token + 1, all: this.tokens.length});
    const weights = step.bytes_by_rank?.length ? Math.max(...step.bytes_by_rank) : 0;
    this.sentence.textContent = t(`walkSays_${step.name}`, {n: this.data.ranks,
      time: timeText(step.duration_us / 1e6), count: step.exchanges ?? 0,
      wait: timeText((step.wait_us ?? 0) / 1e6), size: sizeText(weights)});
    this.stairs.redraw();
    this.bars.redraw();
    this.#tables();
    this.context.keep({walk: this.p.walk === walkDefaults.walk ? "" : this.p.walk,
      token: this.token ? String(this.token + 1) : "", step: this.step ? String(this.step + 1) : "",
      tables: this.details.open ? "1" : ""});
  }

  #tables() {
    if (!this.details.open) {
      this.tables.replaceChildren();
      return;
    }
    const {t} = this.context;
    const time = (/** @type {number} */ us) => timeText(us / 1e6);
    this.tables.replaceChildren(
      tableOf(t("walkTokenOf", {k: this.token + 1, all: this.tokens.length}),
        ["walkStep", "walkBegins", "walkTakes", "walkWaits"].map((key) => t(key)),
        this.now.steps.map((s) => [t(`walkStep_${s.name}`), time(s.start_us),
          time(s.duration_us), s.wait_us ? time(s.wait_us) : "–"])),
      tableOf(t("walkTokens"), [t("walkToken"), ...WALK_PARTS.map((part) => t(`walkPart_${part}`))],
        this.tokens.map(({token, parts}) => [String(token + 1),
          ...WALK_PARTS.map((part) => time(parts[part]))])));
  }

  /** No more. */
  close() {
    this.stairs.close();
    this.bars.close();
  }
}

const MOST_TOLD = 600;

/** What was asked or answered, as far as it has room. @param {string} text @returns {string} */
function shortened(text) {
  return text.length > MOST_TOLD ? `${text.slice(0, MOST_TOLD)} …` : text;
}
