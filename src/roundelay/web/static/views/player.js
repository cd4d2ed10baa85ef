// @ts-check
import {button, choice, el, field} from "../dom.js";
import {inside, load} from "../fetch.js";
import {legendOf, savesOf, tablesOf} from "../player/details.js";
import {groupedPart} from "../player/grouped.js";
import {Panel} from "../player/panel.js";
import {Transport} from "../player/transport.js";

/**
 * @typedef {import("../main.js").Context} Context
 * @typedef {Record<string, string>} Params
 */

const CARD_BY_CARD = 64;

/** @type {Params} */
const playerDefaults = {
  collective: "all_reduce", algorithm: "ring", against: "", n: "4", params: "", root: "",
  size: "1M", cluster: "", clock: "steps", drop: "", at: "0", speed: "1", rank: "0", tables: "",
};

/**
 * What to ask for one of the two pictures.
 * @param {Params} p
 * @param {string} algorithm
 * @param {boolean} first
 * @returns {Params}
 */
function question(p, algorithm, first) {
  const {collective, n, size, cluster} = p;
  const [params, drop] = first ? [p.params, p.drop] : ["", ""];
  return {collective, algorithm, n, size, cluster, root: p.root, params, drop};
}

/** The player: any algorithm, card by card. */
export const playerView = {
  name: "player",

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const p = {...playerDefaults, ...context.params};
    const {t} = context;
    const stop = new AbortController();
    /** @type {Panel[]} */
    let panels = [];
    /** @param {Params} changes */
    const change = (changes) => context.go({...p, drop: "", at: "0", ...changes});
    const controls = el("form", {class: "controls", onsubmit: (/** @type {Event} */ e) =>
      e.preventDefault()});
    const body = el("div", {class: "body"}, el("p", {class: "loading"}, t("loading")));
    root.replaceChildren(controls, body);
    /** @type {(() => void)} */
    let ended = () => {};

    const start = async () => {
      const known = await load("catalogue", {}, stop.signal);
      controls.append(...controlsOf(p, known, context, change));
      if (Number(p.n) > CARD_BY_CARD) {
        const {transport, close} = await groupedPart(body, p, context, stop.signal);
        context.keys(keysOf(transport));
        ended = close;
        return;
      }
      const asked = [p.algorithm, ...(p.against ? [p.against] : [])];
      const found = await Promise.all(asked.map((algorithm, i) =>
        load("player", question(p, algorithm, !i), stop.signal)));
      const alike = found.length > 1 && found[0].name === found[1].name;
      panels = found.map((data, i) =>
        new Panel(data, context, alike ? `${data.name} (${i + 1})` : data.name));
      ended = playing(body, p, panels, context, change, stop.signal);
    };
    start().catch((error) => {
      if (!stop.signal.aborted) body.replaceChildren(failed(error, context, change));
    });
    return () => {
      stop.abort();
      ended();
      for (const panel of panels) panel.close();
    };
  },
};

/** @param {Error} error @param {Context} context @param {(changes: Params) => void} change */
function failed(error, {t}, change) {
  return el("div", {class: "wrong", role: "alert"}, el("p", {}, t("failed", {error: error.message})),
    button(t("startAgain"), () => change(playerDefaults)));
}

/**
 * @param {Params} p @param {any} known @param {Context} context
 * @param {(changes: Params) => void} change
 * @returns {HTMLElement[]}
 */
function controlsOf(p, known, {t}, change) {
  const algorithms = Object.hasOwn(known.collectives, p.collective)
    ? known.collectives[p.collective] : [];
  const names = algorithms.map((/** @type {any} */ a) => [a.name, a.name]);
  const first = (/** @type {string} */ c) =>
    known.collectives[c].find((/** @type {any} */ a) => a.name === "ring") ?? known.collectives[c][0];
  const clusters = known.clusters.map((/** @type {string} */ c) => [c, c]);
  const chosen = algorithms.find((/** @type {any} */ a) => a.name === p.algorithm);
  const [machine, nodes] = p.cluster.split(":");
  const least = (/** @type {string} */ cluster, n = p.n) =>
    Math.ceil(Number(n) / (known.cards[cluster] ?? 1));
  const off = (/** @type {HTMLElement} */ label) => {
    if (inside) label.querySelector("select, input")?.setAttribute("disabled", "");
    return label;
  };
  const made = [
    choice(t("collective"), Object.keys(known.collectives).map((c) => [c, c]), p.collective,
      (c) => change({collective: c, algorithm: first(c).name, against: "", params: "", root: ""})),
    choice(t("algorithm"), names, p.algorithm, (algorithm) => change({algorithm, params: ""})),
    choice(t("against"), [["", t("nothing")], ...names], p.against, (against) => change({against})),
    field(t("ranks"), {type: "number", min: 2, max: 16384, value: p.n, required: true},
      (n) => change({n, cluster: machine && `${machine}:${least(machine, n)}`})),
    field(t("size"), {type: "text", value: p.size, size: 7}, (size) => change({size})),
  ];
  const each = Number(p.n) <= CARD_BY_CARD;
  if (each) {
    made.push(choice(t("cluster"), [["", t("nowhere")], ...clusters], machine, (cluster) =>
      change({cluster: cluster && `${cluster}:${least(cluster)}`,
        clock: cluster ? "seconds" : "steps"})));
  }
  if (each && p.cluster) {
    made.push(field(t("nodes"), {type: "number", min: least(machine), max: 16384,
      value: nodes || least(machine)}, (k) => change({cluster: `${machine}:${k}`})));
    made.push(choice(t("clock"), [["steps", t("inSteps")], ["seconds", t("inSeconds")]], p.clock,
      (clock) => change({clock})));
  }
  if (chosen?.parameters.length) {
    made.push(field(t("params"), {type: "text", value: p.params, size: 12,
      placeholder: `${chosen.parameters[0]}=`}, (params) => change({params})));
  }
  if (chosen?.rooted) {
    made.push(field(t("root"), {type: "number", min: 0, max: Number(p.n) - 1,
      value: p.root || "0"}, (root) => change({root})));
  }
  if (!each && p.cluster) made.push(el("p", {class: "soft note"}, t("groupedSteps")));
  made.forEach(off);
  if (inside) made.push(el("p", {class: "soft note"}, t("oneFile")));
  return made;
}

/**
 * The panels on one clock, with what belongs to them.
 * @param {HTMLElement} body @param {Params} p @param {Panel[]} panels @param {Context} context
 * @param {(changes: Params) => void} change @param {AbortSignal} signal
 * @returns {() => void}
 */
function playing(body, p, panels, context, change, signal) {
  const {t} = context;
  const tables = el("div", {class: "tables"});
  const details = el("details", {open: p.tables === "1", ontoggle: () => rested()},
    el("summary", {}, t("tables")), tables);
  let due = 0;
  const rested = () => {
    if (signal.aborted) return;
    const open = details.open;
    context.keep({...p, at: String(transport?.stop ?? 0), speed: String(transport?.speed ?? 1),
      tables: open ? "1" : ""});
    cancelAnimationFrame(due);
    due = requestAnimationFrame(() => tables.replaceChildren(...(open ? panels.flatMap(
      (panel, i) => tablesOf(panel, t, inside || i ? null : (drop) => change({...p, drop,
        at: String(transport.stop)}))) : [])));
  };
  /** @type {Transport} */
  let transport;
  const seconds = p.clock === "seconds" && panels.every((panel) => panel.model.data.seconds?.length);
  transport = new Transport(context, panels, seconds,
    {speed: Number(p.speed), at: Number(p.at) || 0}, () => rested());
  const exports = savesOf(t, `roundelay-${p.collective}-${p.algorithm}-${p.n}`, panels);
  if (p.drop) exports.prepend(button(t("mend"), () => change({...p, drop: ""})));
  else if (!inside) exports.prepend(button(t("breakIt"), () => breakOne(panels[0], transport, p, change)));
  body.replaceChildren(
    transport.root, el("div", {class: panels.length > 1 ? "panels two" : "panels"},
      ...panels.map((x) => x.root)),
    el("div", {class: "below"}, legendOf(t, panels[0].model.data),
      exports), el("p", {class: "soft note keys"}, t("keysPlay"), " ", t("keysPieces")), details);
  for (const panel of panels) panel.resize();
  transport.goTo(transport.time);
  context.keys(keysOf(transport));
  const repaint = () => panels.forEach((panel) => panel.redraw());
  context.repaint(repaint);
  return () => transport.pause();
}

/** Leave out the first move of the step that is shown, or of the first step.
 * @param {Panel} panel @param {Transport} transport @param {Params} p
 * @param {(changes: Params) => void} change */
function breakOne(panel, transport, p, change) {
  const step = Math.max(1, Math.ceil(panel.at - 1e-9));
  const [src, dst, pieces] = panel.model.data.states[step].moves[0];
  change({...p, drop: `${step}.${src}.${dst}.${pieces[0]}`, at: String(transport.stop)});
}

/** @param {Transport} transport @returns {Record<string, () => void>} */
function keysOf(transport) {
  return {
    " ": () => transport.toggle(),
    ArrowRight: () => transport.step(1),
    ArrowLeft: () => transport.step(-1),
    Home: () => transport.goTo(0),
    End: () => transport.goTo(transport.last),
    "+": () => transport.faster(1),
    "=": () => transport.faster(1),
    "-": () => transport.faster(-1),
    ".": () => transport.step(1),
    ",": () => transport.step(-1),
  };
}
