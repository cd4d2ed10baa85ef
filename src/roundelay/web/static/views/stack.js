// @ts-check
import {el} from "../dom.js";
import {load} from "../fetch.js";
import {saveButtons} from "../picture.js";
import {svgPen} from "../pen.js";
import {tableOf} from "../table.js";

/** @typedef {import("../main.js").Context} Context */
/** @typedef {{area: string, name: Record<string, string>, state: "present" | "absent" | "wrong",
 *   value: string, meaning: Record<string, string>}} Found */
/** @typedef {{name: string, title: Record<string, string>, does: Record<string, string>,
 *   asks: Record<string, string>, beside: boolean, checks: Found[]}} Layer */

const STATE_MARKS = {present: "✓", absent: "–", wrong: "!"};

/** The stack: from a program down to the links, and what of it is here. */
export const stackView = {
  name: "stack",

  /**
   * @param {HTMLElement} root
   * @param {Context} context
   * @returns {() => void} what ends it
   */
  mount(root, context) {
    const {t} = context;
    const stop = new AbortController();
    const box = el("div", {class: "body"}, el("p", {class: "loading"}, t("loading")));
    root.replaceChildren(box);
    load("stack", {}, stop.signal).then((data) => {
      box.replaceWith(stackOf(data.layers, context));
    }).catch((error) => {
      if (!stop.signal.aborted) box.replaceChildren(el("p", {class: "wrong", role: "alert"},
        t("failed", {error: error.message})));
    });
    return () => stop.abort();
  },
};

/** @param {Layer[]} layers @param {Context} context @returns {HTMLElement} */
function stackOf(layers, context) {
  const {t, lang, params} = context;
  const open = new Set((params.open ?? "").split(".").filter(Boolean));
  const keep = () => context.keep({open: [...open].join("."), tables: details.open ? "1" : ""});
  const all = layers.flatMap((layer) => layer.checks);
  const wrong = all.filter(({state}) => state === "wrong").length;
  const drawn = layers.map((layer) => layerOf(layer, lang, t, open, keep));
  const tables = el("div", {class: "tables"});
  const details = el("details", {open: params.tables === "1", ontoggle: () => {
    tables.replaceChildren(...(details.open ? [stackTable(layers, lang, t)] : []));
    keep();
  }}, el("summary", {}, t("tableBehind")), tables);
  const main = drawn.filter((_, i) => !layers[i].beside);
  const beside = drawn.filter((_, i) => layers[i].beside);
  return el("div", {class: "body"},
    el("p", {class: "sentence"}, t(wrong ? "stackWrong" : "stackRight", {k: wrong})),
    el("div", {class: "stack"}, el("ol", {class: "layers"}, ...main),
      el("ol", {class: "layers beside", "aria-label": t("stackBeside")}, ...beside)),
    saveButtons(t, "roundelay-stack", () => stackSvg(layers, context)), details);
}

/** @param {Layer} layer @param {"en" | "zh"} lang @param {import("../i18n.js").Tell} t
 * @param {Set<string>} open @param {() => void} keep @returns {HTMLElement} */
function layerOf(layer, lang, t, open, keep) {
  const list = el("dl", {class: "checks"}, ...layer.checks.map((found) => el("div",
    {class: found.state},
    el("dt", {}, el("span", {class: "mark", "aria-hidden": "true"}, STATE_MARKS[found.state]),
      found.name[lang], " ", el("span", {class: "value"}, found.value || t(`state_${found.state}`)),
      el("span", {class: "unseen"}, found.value ? ` (${t(`state_${found.state}`)})` : "")),
    el("dd", {}, found.meaning[lang]))));
  const chips = layer.checks.map((found) => el("li", {class: found.state},
    el("span", {class: "mark", "aria-hidden": "true"}, STATE_MARKS[found.state]),
    el("span", {class: "unseen"}, `${t(`state_${found.state}`)}: `), found.name[lang],
    found.value ? " " : "", el("span", {class: "value"}, found.value)));
  const more = el("details", {open: open.has(layer.name), ontoggle: () => {
    if (more.open) open.add(layer.name);
    else open.delete(layer.name);
    keep();
  }}, el("summary", {}, t("stackHere")), list);
  return el("li", {class: "layer"}, el("h2", {}, layer.title[lang]), el("p", {}, layer.does[lang]),
    el("ul", {class: "chips"}, ...chips), more,
    layer.beside ? "" : el("p", {class: "asks"}, el("span", {class: "unseen"},
      t("stackAsks")), el("q", {}, layer.asks[lang])));
}

/** @param {Layer[]} layers @param {"en" | "zh"} lang @param {import("../i18n.js").Tell} t */
function stackTable(layers, lang, t) {
  const head = ["stackName", "stackLayer", "stackState", "stackValue", "stackMeaning"];
  const rows = layers.flatMap((layer) => layer.checks.map((found) => [found.name[lang],
    layer.title[lang], t(`state_${found.state}`), found.value, found.meaning[lang]]));
  return tableOf(t("stackTable"), head.map((key) => t(key)), rows);
}

/** The layers with what is here of each, as a picture.
 * @param {Layer[]} layers @param {Context} context
 * @returns {{svg: string, width: number, height: number}} */
function stackSvg(layers, context) {
  const {lang, t} = context;
  const colour = context.palette();
  const highs = layers.map((layer) => 44 + 20 * layer.checks.length);
  const [width, height] = [900, 16 + highs.reduce((sum, high) => sum + high + 12, 0)];
  const {pen, picture} = svgPen(width, height, colour.ground);
  let y = 12;
  layers.forEach((layer, i) => {
    pen.box(12, y, width - 24, highs[i], 8, {fill: colour.card, stroke: colour.line, width: 1});
    pen.text(28, y + 20, layer.title[lang], 16, {fill: colour.text}, "left", true);
    layer.checks.forEach((found, k) => {
      const at = y + 46 + 20 * k;
      const ink = {fill: found.state === "wrong" ? colour.wrong : colour.text};
      pen.text(36, at, STATE_MARKS[found.state], 13, ink, "center", true);
      pen.text(52, at, found.name[lang], 13, ink, "left");
      pen.text(340, at, found.value || t(`state_${found.state}`), 13, ink, "left");
    });
    y += highs[i] + 12;
  });
  return {svg: picture(t("view_stack")), width, height};
}
