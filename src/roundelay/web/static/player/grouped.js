// @ts-check
import {button, el, field} from "../dom.js";
import {formulaText, sizeText} from "../i18n.js";
import {savePng, saveSvg} from "../export.js";
import {load} from "../fetch.js";
import {canvasPen, svgPen} from "../pen.js";
import {tableOf} from "../table.js";
import {geometryOf, wayOf} from "./geometry.js";

/**
 * @typedef {import("../main.js").Context} Context
 * @typedef {Record<string, string>} Params
 * @typedef {import("../pen.js").Pen} Pen
 */

/**
 * A schedule over many ranks, step by step, in groups.
 * @param {HTMLElement} body @param {Params} p @param {Context} context
 * @param {(changes: Params) => void} change @param {AbortSignal} signal
 * @returns {Promise<() => void>} what ends it
 */
export async function groupedPart(body, p, context, change, signal) {
  const {t} = context;
  let step = Number(p.at) || 0;
  let rank = p.rank || "0";
  const ask = () => {
    const {collective, algorithm, n, params, root, size} = p;
    return load("grouped", {collective, algorithm, n, params, root, size, step: String(step), rank},
      signal);
  };
  let data = await ask();
  const canvas = el("canvas", {role: "img"});
  const stage = el("div", {class: "stage"}, canvas);
  const sentence = el("p", {class: "sentence"});
  const counters = el("dl", {class: "counters"});
  const tables = el("div", {class: "tables"});
  const slider = el("input", {type: "range", min: 0, max: data.steps, step: 1, value: step,
    class: "scrub", "aria-label": t("position"), oninput: () => goTo(Number(slider.value))});
  const clock = el("output", {class: "clock"});
  const showAll = () => {
    draw(canvas, stage, data, context);
    tell(sentence, counters, canvas, data, context);
    clock.textContent = `${data.step.toLocaleString()} / ${data.steps.toLocaleString()}`;
    slider.value = String(data.step);
    slider.setAttribute("aria-valuetext", t("of", {now: data.step, all: data.steps}));
    tables.replaceChildren(partTable(data, context), flowTable(data, context));
    context.keep({...p, at: String(data.step), rank});
  };
  let asking = false;
  /** @param {number} to */
  const goTo = async (to) => {
    step = Math.max(0, Math.min(to, data.steps));
    if (asking) return;
    asking = true;
    try {
      do data = await ask(); while (data.step !== step || String(data.rank) !== rank);
      showAll();
      context.announce(sentence.textContent ?? "");
    } catch (error) {
      if (!signal.aborted) sentence.textContent = t("failed", {error: /** @type {Error} */ (error).message});
    } finally {
      asking = false;
    }
  };
  const move = (/** @type {number} */ by) => () => goTo(step + by);
  const transport = el("div", {class: "transport", role: "group", "aria-label": t("transport")},
    button("⇤", () => goTo(0), {"aria-label": t("toStart")}),
    button("◁", move(-1), {"aria-label": t("back")}),
    button("▷", move(1), {"aria-label": t("forward")}),
    button("⇥", () => goTo(data.steps), {"aria-label": t("toEnd")}),
    el("div", {class: "track"}, slider), clock,
    field(t("rank"), {type: "number", min: 0, max: data.ranks - 1, value: rank}, (value) => {
      rank = String(Number(value));
      goTo(step);
    }));
  const picture = () => {
    const [width, height] = [stage.clientWidth, stage.clientHeight];
    const {pen, picture: whole} = svgPen(width, height, context.palette().ground);
    drawGroups(pen, data, width, height, context);
    return {svg: whole(data.name), width, height};
  };
  const name = `roundelay-${p.collective}-${p.algorithm}-${p.n}`;
  const exports = el("div", {class: "actions"},
    button("SVG", () => saveSvg(name, picture().svg), {"aria-label": t("saveAs", {kind: "SVG"})}),
    button("PNG", () => {
      const {svg, width, height} = picture();
      savePng(name, svg, width, height);
    }, {"aria-label": t("saveAs", {kind: "PNG"})}));
  body.replaceChildren(transport,
    el("section", {class: "panel", "aria-label": data.name}, el("h2", {}, data.name),
      el("p", {class: "soft"}, `${data.purpose[context.lang]} ${t("grouped", {n: data.ranks.toLocaleString()})}`),
      stage, sentence, counters), el("div", {class: "below"}, el("span"), exports), tables);
  context.keys({ArrowRight: move(1), ArrowLeft: move(-1), Home: () => goTo(0),
    End: () => goTo(data.steps)});
  context.repaint(() => draw(canvas, stage, data, context));
  const sizes = new ResizeObserver(() => draw(canvas, stage, data, context));
  sizes.observe(stage);
  showAll();
  return () => sizes.disconnect();
}

/** @param {any} canvas @param {HTMLElement} stage @param {any} data @param {Context} context */
function draw(canvas, stage, data, context) {
  const [width, height, scale] = [stage.clientWidth, stage.clientHeight, devicePixelRatio || 1];
  if (!width || !height) return;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const on = canvas.getContext("2d");
  on.scale(scale, scale);
  drawGroups(canvasPen(on), data, width, height, context);
}

/** @param {Pen} pen @param {any} data @param {number} width @param {number} height
 * @param {Context} context */
function drawGroups(pen, data, width, height, {palette, t}) {
  const colour = palette();
  const count = data.groups.length - (data.helpers ? 1 : 0);
  /** @type {[number, number][]} */
  const places = Array.from({length: count}, (_, i) => {
    const turn = (2 * Math.PI * i) / count;
    return [0.5 + 0.5 * Math.sin(turn), 0.5 - 0.5 * Math.cos(turn)];
  });
  if (data.helpers) places.push([0.5, 0.5]);
  const g = geometryOf(places, "circle", 1, width, height);
  const most = Math.max(1, ...data.flows.map((/** @type {any} */ f) => f.bytes));
  for (const {src, dst, bytes, added} of data.flows) {
    if (src === dst) continue;
    const [a, b, c] = wayOf(g, src, dst);
    pen.path(`M${a[0]} ${a[1]}Q${b[0]} ${b[1]} ${c[0]} ${c[1]}`, {
      stroke: added ? colour.add : colour.copy, dash: added ? undefined : [5, 4],
      width: 0.8 + 4 * (bytes / most), alpha: 0.55});
    pen.dot(c[0], c[1], 2.5, {fill: added ? colour.add : colour.copy});
  }
  data.groups.forEach((/** @type {[number, number]} */ [first, last], /** @type {number} */ i) => {
    const [x, y] = g.centre[i];
    const inner = data.flows.find((/** @type {any} */ f) => f.src === i && f.dst === i);
    const mine = data.rank >= first && data.rank <= last;
    pen.box(x - g.side / 2, y - g.side / 2, g.side, g.side, 5, {fill: colour.card,
      stroke: mine ? colour.text : colour.line, width: mine ? 2 : 1});
    const size = Math.min(12, g.side * 0.22);
    const name = first >= data.ranks ? t("switches") : String(first);
    if (size > 5) pen.text(x, inner ? y - size * 0.7 : y, name, size, {fill: colour.text}, "center", true);
    if (size > 5 && inner) {
      const amount = sizeText(inner.bytes).replace(/(\d)\.\d+/, "$1").replace("iB", "");
      pen.text(x, y + size * 0.75, amount, size * 0.85, {fill: inner.added ? colour.add : colour.copy});
    }
  });
}

/** @param {HTMLElement} sentence @param {HTMLElement} counters @param {HTMLElement} canvas
 * @param {any} data @param {Context} context */
function tell(sentence, counters, canvas, data, {t, lang}) {
  const messages = data.flows.reduce((/** @type {number} */ sum, /** @type {any} */ f) =>
    sum + f.messages, 0);
  const said = data.said[lang] ?? t("manyMoves", {messages});
  sentence.textContent = data.step ? t("step", {step: data.step}) + said : t("start");
  canvas.setAttribute("aria-label", `${data.name}. ${sentence.textContent}`);
  const rows = [
    [t("steps"), t("of", {now: data.step.toLocaleString(), all: data.steps.toLocaleString()}), data.card.steps[0]],
    [t("sentNow"), sizeText(data.busiest_sent), ""],
    [t("receivedNow"), sizeText(data.busiest_received), ""],
    [t("sentBy", {rank: data.rank}),
      t("of", {now: sizeText(data.part_sent), all: sizeText(data.card.bytes_sent[1])}),
      data.card.bytes_sent[0]],
  ];
  counters.replaceChildren(...rows.map(([name, value, formula]) => el("div", {}, el("dt", {}, name),
    el("dd", {}, value), el("dd", {class: "formula"}, formulaText(formula)))));
}

/** @param {any} data @param {Context} context */
function partTable(data, {t}) {
  const name = (/** @type {number} */ place) => place < data.ranks ? t("card", {rank: place})
    : t("switch", {number: place - data.ranks});
  const rows = data.part.map((/** @type {any[]} */ [src, dst, first, count, add]) => [name(src),
    name(dst), count > 1 ? t("piecesFrom", {first, count}) : String(first),
    t(add ? "isAdded" : "isCopied")]);
  return tableOf(t("partOf", {rank: data.rank, step: data.step, moves: data.part_moves}),
    [t("from"), t("to"), t("piece"), t("fate")], rows);
}

/** @param {any} data @param {Context} context */
function flowTable(data, {t}) {
  const name = (/** @type {number} */ group) => {
    const [first, last] = data.groups[group];
    return first >= data.ranks ? t("switches") : `${first}–${last}`;
  };
  const flows = [...data.flows].sort((a, b) => b.bytes - a.bytes).slice(0, 200);
  return tableOf(t("flows", {step: data.step}), [t("from"), t("to"), t("messageCount"), t("bytes")],
    flows.map((f) => [name(f.src), name(f.dst), String(f.messages), sizeText(f.bytes)]));
}
