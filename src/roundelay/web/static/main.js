// @ts-check
import {button, el} from "./dom.js";
import {inside} from "./fetch.js";
import {pickLanguage, teller} from "./i18n.js";
import {addressState, framed, goToState, readState, remember, remembered, stateText, writeState} from "./state.js";
import {bucketView} from "./views/bucket.js";
import {clusterView} from "./views/cluster.js";
import {curvesView} from "./views/curves.js";
import {jobsView} from "./views/jobs.js";
import {playerView} from "./views/player.js";
import {roadsView} from "./views/roads.js";
import {runView} from "./views/run.js";
import {stackView} from "./views/stack.js";
import {walkView} from "./views/walk.js";

/**
 * What a view is given.
 * @typedef {object} Context
 * @property {Record<string, string>} params of the address
 * @property {"en" | "zh"} lang
 * @property {import("./i18n.js").Tell} t
 * @property {() => Record<string, string>} palette colours by name
 * @property {() => boolean} still whether motion is unwelcome
 * @property {(params: Record<string, string>) => void} go to another state, drawn anew
 * @property {(params: Record<string, string>) => void} keep a state in the address
 * @property {(keys: Record<string, () => void>) => void} keys that do something in this view
 * @property {(draw: () => void) => void} repaint what draws anew in other colours
 * @property {(text: string) => void} announce to who does not see the picture
 */

/** @typedef {{name: string, alone?: boolean,
 *   mount: (root: HTMLElement, context: Context) => () => void}} View alone: needs no data */

/** @type {View[]} */
const everyView = [playerView, bucketView, roadsView, clusterView, curvesView, runView,
  walkView, jobsView, stackView];
/** One file has those whose data it holds. */
const views = everyView.filter(({name, alone}) => !inside || alone ||
  Object.keys(inside.data).some((key) => key.split("&")[0] === name));
const COLOURS = ["ground", "card", "text", "soft", "line", "empty", "part", "done", "add", "copy",
  "wrong"];
const HINTS = /** @type {Record<string, string[]>} */ ({
  player: ["hintPlay", "hintPoint", "hintCompare"],
  bucket: ["hintStep", "hintSlow", "hintMany"],
  roads: ["hintWide", "hintSheet", "hintCores"],
  run: ["hintLanes", "hintEvent", "hintLongest"],
  cluster: ["hintBusy", "hintLink", "hintBox"],
  curves: ["hintQuickest", "hintSliders", "hintDrop"],
  walk: ["hintRequest", "hintAlong", "hintNext"],
  jobs: ["hintNodes", "hintWhen", "hintStory"],
  stack: ["hintDown", "hintMarks", "hintMeans"],
});

const shell = {
  end: () => {},
  /** @type {Record<string, () => void>} */
  keys: {},
  repaint: () => {},
  /** @type {Record<string, string> | null} */
  colours: null,
};

/** Draw the page as the address says. */
function render() {
  const start = inside && !addressState() ? inside.state : addressState();
  const {view, params} = readState(start);
  const chosen = views.find(({name}) => name === view) ?? views[0];
  const lang = pickLanguage(params.lang ?? "", remembered("lang"));
  const theme = params.theme || remembered("theme");
  document.documentElement.lang = lang === "zh" ? "zh-Hans" : "en";
  document.documentElement.dataset.theme = theme === "dark" || theme === "light" ? theme : "";
  shell.colours = null;
  shell.end();
  shell.keys = {};
  shell.repaint = () => {};
  const t = teller(lang);
  document.title = `${t(`view_${chosen.name}`)} · Roundelay`;
  const text = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  text("skip").textContent = t("skip");
  text("head").replaceChildren(...header(chosen.name, lang, theme, params, t));
  const root = text("view");
  shell.end = chosen.mount(root, contextOf(chosen.name, params, lang, t));
  if (!remembered("hints") && params.hints !== "0") root.prepend(hints(chosen.name, t));
}

/**
 * @param {string} view @param {Record<string, string>} params @param {"en" | "zh"} lang
 * @param {import("./i18n.js").Tell} t
 * @returns {Context}
 */
function contextOf(view, params, lang, t) {
  const own = (/** @type {Record<string, string>} */ given) =>
    ({...given, lang: params.lang ?? "", theme: params.theme ?? "", hints: params.hints ?? ""});
  return {
    params, lang, t, palette,
    still: () => matchMedia("(prefers-reduced-motion: reduce)").matches,
    go: (given) => {
      goToState("#" + stateText(view, own(given)), true);
      render();
    },
    keep: (given) => writeState(view, own(given)),
    keys: (keys) => {
      shell.keys = keys;
    },
    repaint: (draw) => {
      shell.repaint = draw;
    },
    announce: (text) => {
      const live = document.getElementById("live");
      if (live) live.textContent = text;
    },
  };
}

/** The colours of the style sheet. @returns {Record<string, string>} */
function palette() {
  if (!shell.colours) {
    const style = getComputedStyle(document.documentElement);
    shell.colours = Object.fromEntries(COLOURS.map((name) =>
      [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return shell.colours;
}

/**
 * @param {string} view @param {"en" | "zh"} lang @param {string} theme
 * @param {Record<string, string>} params @param {import("./i18n.js").Tell} t
 * @returns {HTMLElement[]}
 */
function header(view, lang, theme, params, t) {
  const dark = theme === "dark" ||
    (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  const prefer = (/** @type {string} */ name, /** @type {string} */ value) => {
    remember(name, value);
    const now = readState(addressState() || (inside?.state ?? ""));
    writeState(view, {...now.params, [name]: value});
    render();
  };
  const other = lang === "en" ? "zh" : "en";
  const links = views.map(({name}) => el("a", {href: `#${name}`,
    "aria-current": name === view ? "page" : null, onclick: framed ? toView(name) : null}, t(`view_${name}`)));
  return [
    el("h1", {}, "Roundelay"),
    el("nav", {"aria-label": t("views")}, ...links),
    el("div", {class: "prefer"},
      button(other === "zh" ? "中文" : "English", () => prefer("lang", other),
        {lang: other === "zh" ? "zh-Hans" : "en"}),
      button(t(dark ? "light" : "dark"), () => prefer("theme", dark ? "light" : "dark"))),
  ];
}

/** What a link does where there is no address. @param {string} name */
function toView(name) {
  return (/** @type {Event} */ event) => {
    event.preventDefault();
    goToState(`#${name}`, true);
    render();
  };
}

/** Three hints, at the first visit. @param {string} view @param {import("./i18n.js").Tell} t */
function hints(view, t) {
  const list = el("ol", {}, ...HINTS[view].map((hint) => el("li", {}, t(hint))));
  const box = el("aside", {class: "hints", "aria-label": t("hints")}, list,
    button(t("gotIt"), () => {
      remember("hints", "seen");
      box.remove();
    }));
  return box;
}

addEventListener("popstate", render);
document.getElementById("skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("view")?.focus();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  shell.colours = null;
  shell.repaint();
});
addEventListener("keydown", (event) => {
  const at = /** @type {HTMLElement} */ (event.target);
  const typing = at.closest("input, select, textarea") ||
    (event.key === " " && at.closest("button, a, summary"));
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !shell.keys[event.key]) return;
  event.preventDefault();
  shell.keys[event.key]();
});
render();
