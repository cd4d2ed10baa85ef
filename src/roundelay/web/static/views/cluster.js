// @ts-check
import {button, el} from "../dom.js";
import {canLoad, load} from "../fetch.js";
import {sizeText, timeText} from "../i18n.js";
import {svgPen} from "../pen.js";
import {Picture, saveButtons} from "../picture.js";
import {Spots} from "../spots.js";
import {tableOf} from "../table.js";
import {drawBusyness, drawFabric, fabricHeight, fabricPlaces} from "../cluster/draw.js";
import {clusterFields} from "../cluster/fields.js";
import {linkName, loadText, rateText, spanText, wayIn} from "../cluster/model.js";
import {crossingTable, kindsTable, linksTable} from "../cluster/tables.js";

/** @typedef {import("../main.js").Context} Context */
/** @typedef {import("../cluster/model.js").Shown} Shown */
/** @typedef {Record<string, string>} Params */

/** @type {Params} */
const clusterDefaults = {collective: "all_reduce", algorithm: "ring", n: "", params: "", root: "",
  size: "256M", cluster: "dgx-h100:4", first: "", last: "", link: "", tables: ""};
const BUSY = ["busiest", "half", "tenth", "less", "nothing"];

/** The cluster: what each link carries, and which one binds. */
export const clusterView = {
  name: "cluster",

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const stop = new AbortController();
    const made = new Fabric(context, stop.signal);
    root.replaceChildren(made.root);
    made.start();
    return () => {
      stop.abort();
      made.close();
    };
  },
};

class Fabric {
  /** @param {Context} context @param {AbortSignal} signal */
  constructor(context, signal) {
    this.context = context;
    this.signal = signal;
    this.p = {...clusterDefaults, ...context.params};
    this.asked = 0;
    /** @type {Shown | null} */
    this.shown = null;
    const {t} = context;
    this.controls = el("form", {class: "controls", onsubmit: (/** @type {Event} */ e) =>
      e.preventDefault()});
    this.sentence = el("p", {class: "sentence", "aria-live": "polite"});
    this.figures = el("p", {class: "rates"});
    this.title = el("p", {class: "soft"});
    this.way = el("nav", {class: "way", "aria-label": t("clusterWay")});
    this.wrong = el("div", {});
    this.picture = new Picture(context, () => this.sentence.textContent, () =>
      this.shown ? fabricHeight(this.shown) : 200, (pen, w, _, colour) => {
      if (this.shown) drawFabric(pen, w, this.shown, this.chosen, colour, t);
    });
    this.picture.drawn = (w) => this.spots.set(this.places(w));
    this.spots = new Spots(this.picture.root, t("clusterSpots"));
    this.kinds = el("div", {class: "kinds"});
    this.crossing = el("section", {class: "crossing", "aria-live": "polite"});
    this.tables = el("div", {class: "tables"});
    this.details = el("details", {open: this.p.tables === "1", ontoggle: () => this.listed()},
      el("summary", {}, t("tableBehind")), this.tables);
    this.body = el("div", {class: "fabric", hidden: true}, this.way, this.spots.root,
      this.below(t), this.kinds, this.crossing, this.details);
    this.waiting = el("p", {class: "loading"}, t("loading"));
    this.whole = el("div", {hidden: true}, this.controls, this.title, this.sentence, this.figures, this.wrong,
      this.body);
    this.root = el("div", {class: "body"}, this.waiting, this.whole);
    context.repaint(() => this.picture.redraw());
    context.keys({Escape: () => this.up(), b: () => this.toBusiest()});
  }

  get chosen() {
    return this.p.link === "" ? -1 : Number(this.p.link);
  }

  /** @param {import("../i18n.js").Tell} t @returns {HTMLElement} */
  below(t) {
    const key = el("ul", {class: "legend"}, ...BUSY.map((busy) => {
      const {pen, picture} = svgPen(28, 14, "none");
      drawBusyness(pen, busy, this.context.palette());
      const made = new DOMParser().parseFromString(picture(""), "image/svg+xml").documentElement;
      made.setAttribute("aria-hidden", "true");
      return el("li", {}, document.adoptNode(made), t(`busy_${busy}`));
    }), el("li", {}, t("clusterKey")));
    return el("div", {class: "below"}, key,
      saveButtons(t, `roundelay-cluster-${this.p.algorithm}`, () => this.picture.svg()));
  }

  async start() {
    try {
      const known = await load("catalogue", {}, this.signal);
      this.known = known;
    } catch (error) {
      this.failed(/** @type {Error} */ (error));
      return;
    }
    this.controls.replaceChildren(...clusterFields(this.p, this.known, (changes) => this.set(changes), this.context.t));
    await this.refresh();
  }

  /** Other links: from the whole again, and no link is chosen. @param {Params} changes */
  set(changes) {
    Object.assign(this.p, {first: "", last: "", link: ""}, changes);
    this.controls.replaceChildren(...clusterFields(this.p, this.known, (changes) => this.set(changes), this.context.t));
    this.refresh();
  }

  /** @param {Params} [more] @returns {Params} */
  question(more = {first: this.p.first, last: this.p.last}) {
    const {collective, algorithm, n, params, root, size, cluster} = this.p;
    return {collective, algorithm, n, params, root, size, cluster, ...more};
  }

  /** Ask for what is to be shown, and show it. */
  async refresh() {
    this.asked += 1;
    const turn = this.asked;
    this.body.setAttribute("aria-busy", "true");
    this.keep();
    try {
      const found = await load("cluster", this.question(), this.signal);
      if (turn !== this.asked) return;
      this.show(found);
    } catch (error) {
      if (turn === this.asked) this.failed(/** @type {Error} */ (error));
    }
  }

  /** Show all at once, when there is something to show. */
  ready() {
    this.waiting.hidden = true;
    this.whole.hidden = false;
  }

  /** @param {Error} error */
  failed(error) {
    if (this.signal.aborted) return;
    const {t} = this.context;
    this.ready();
    this.body.hidden = true;
    this.sentence.textContent = "";
    this.title.textContent = "";
    this.figures.textContent = "";
    this.wrong.replaceChildren(el("div", {class: "wrong", role: "alert"},
      el("p", {}, t("failed", {error: error.message})),
      button(t("startAgain"), () => this.set({...clusterDefaults}))));
  }

  /** @param {Shown} found */
  show(found) {
    const {t} = this.context;
    this.shown = found;
    this.wrong.replaceChildren();
    this.ready();
    this.body.hidden = false;
    this.body.removeAttribute("aria-busy");
    this.title.textContent = t("clusterTitle", {title: found.title, nodes: found.nodes,
      cards: (found.nodes * found.cards).toLocaleString("en"), name: found.name, size: sizeText(found.size)});
    this.sentence.textContent = this.says(found);
    this.figures.textContent = this.rates(found);
    this.way.replaceChildren(...this.steps(found));
    this.picture.root.style.minHeight = `${fabricHeight(found)}px`;
    this.picture.redraw();
    this.kinds.replaceChildren(kindsTable(found, (link) => this.choose(link), t));
    this.listed();
    this.cross();
  }

  /** Why a link binds. @param {Shown} found @returns {string} */
  says(found) {
    const {t} = this.context;
    const {busiest} = found;
    if (!busiest) return t("clusterNothing");
    const alike = found.kinds.filter((load) => load.time >= busiest.time * (1 - 1e-9));
    const other = found.kinds.find((load) => load.time && load.time < busiest.time * (1 - 1e-9));
    const all = alike.reduce((sum, load) => sum + load.alike, 0);
    const values = {link: linkName(busiest, t), alike: all - 1,
      kinds: alike.map((load) => t("clusterOf", {kind: t(`kind_${load.kind}`), count: load.alike})).join("; "),
      bytes: sizeText(busiest.bytes), rate: rateText(busiest.rate), line: rateText(busiest.line),
      time: timeText(busiest.time), whole: timeText(found.time), protocol: found.protocol,
      share: Number((100 * busiest.time / found.time).toPrecision(2))};
    return t(all > 1 ? "clusterSaysAlike" : "clusterSays", values) + (other
      ? t("clusterNext", {link: linkName(other, t), bytes: sizeText(other.bytes),
        rate: rateText(other.rate), time: timeText(other.time)}) : "");
  }

  /** The rates to compare with nccl-tests, what NCCL would do, and what lies idle.
   * @param {Shown} found @returns {string} */
  rates(found) {
    const {t} = this.context;
    const rate = (/** @type {number} */ time, factor = 1) => rateText(found.size / time * factor);
    const {nccl, busiest, bus} = found;
    const said = [t("clusterRates", {time: timeText(found.time), algbw: rate(found.time),
      busbw: rate(found.time, bus)})];
    if (nccl) {
      said.push(t("clusterNccl", {...nccl, time: timeText(nccl.time), busbw: rate(nccl.time, bus)}));
    }
    if (busiest && busiest.used < busiest.count) {
      said.push(t("clusterSpare", {kind: t(`kind_${busiest.kind}`), used: busiest.used.toLocaleString("en"),
        count: busiest.count.toLocaleString("en")}));
    }
    return said.join(" ");
  }

  /** The way in, and what leads to the busiest link. @param {Shown} found @returns {HTMLElement[]} */
  steps(found) {
    const {t} = this.context;
    const way = wayIn(found, t);
    const made = way.map(({first, last, text}, i) => button(text, () => this.look(first, last),
      {class: "small", "aria-current": i === way.length - 1 ? "location" : null}));
    const crumbs = made.flatMap((each, i) => (i ? [el("span", {"aria-hidden": "true"}, "›"), each]
      : [each]));
    if (found.busiest && this.held(found.at[0], found.at[1])) {
      crumbs.push(button(t("clusterGo"), () => this.toBusiest(), {class: "small go"}));
    }
    return crumbs;
  }

  /** @param {number} first @param {number} last @returns {Params} */
  range(first, last) {
    const {nodes, cards} = /** @type {Shown} */ (this.shown);
    const whole = first === 0 && last === nodes * cards - 1;
    return whole ? {first: "", last: ""} : {first: String(first), last: String(last)};
  }

  /** Whether cards can be looked at: one file has some only.
   * @param {number} first @param {number} last @returns {boolean} */
  held(first, last) {
    return canLoad("cluster", this.question(this.range(first, last)));
  }

  /** Look at some cards. @param {number} first @param {number} last */
  look(first, last) {
    Object.assign(this.p, this.range(first, last));
    this.refresh();
  }

  up() {
    const way = this.shown ? wayIn(this.shown, this.context.t) : [];
    const to = way[way.length - 2];
    if (to && this.held(to.first, to.last)) this.look(to.first, to.last);
  }

  toBusiest() {
    if (!this.shown?.busiest) return;
    this.p.link = String(this.shown.busiest.link);
    if (this.held(...this.shown.at)) Object.assign(this.p, this.range(...this.shown.at));
    this.refresh();
  }

  /** Choose a link, or none. @param {number} link */
  choose(link) {
    this.p.link = link === this.chosen || link < 0 ? "" : String(link);
    this.keep();
    this.picture.redraw();
    this.cross();
  }

  /** What can be clicked in the picture. @param {number} w @returns {import("../spots.js").Spot[]} */
  places(w) {
    const {shown} = this;
    if (!shown) return [];
    const {t} = this.context;
    const {lanes, boxes} = fabricPlaces(shown, w);
    const links = lanes.filter(({load: each}) => each.link >= 0).map((lane) => ({...lane,
      label: loadText(lane.load, shown.busiest, t), pressed: lane.load.link === this.chosen,
      act: () => this.choose(lane.load.link)}));
    const open = boxes.filter(({box: {cards: [a, b]}}) => (b - a < shown.last - shown.first)
      && this.held(a, b)).map((each) => ({...each, act: () => this.look(...each.box.cards),
      label: t("clusterOpen", {what: `${t(`fabric_${each.kind}`)} ${spanText(each.box.numbers)}`})}));
    return [...links, ...open];
  }

  /** What crosses the link that is chosen. */
  async cross() {
    const {t} = this.context;
    const {link} = this.p;
    const head = (/** @type {string} */ text) => el("h2", {}, text);
    if (!link) {
      this.crossing.replaceChildren(head(t("crossingHead")), el("p", {class: "soft"},
        t("crossingNone")));
      return;
    }
    const asked = this.question({link});
    try {
      const found = await load("crossing", asked, this.signal);
      if (link === this.p.link) this.crossing.replaceChildren(...crossingTable(found, t));
    } catch (error) {
      if (this.signal.aborted || link !== this.p.link) return;
      this.crossing.replaceChildren(head(t("crossingHead")), el("p", {class: "wrong"},
        t("failed", {error: /** @type {Error} */ (error).message})));
    }
  }

  listed() {
    const open = this.details.open;
    this.tables.replaceChildren(...(open && this.shown ? [linksTable(this.shown, this.context.t)]
      : []));
    this.p.tables = open ? "1" : "";
    this.keep();
  }

  keep() {
    this.context.keep(this.p);
  }

  close() {
    this.picture.close();
  }
}
