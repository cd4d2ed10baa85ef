// @ts-check
import {el} from "../dom.js";
import {inside} from "../fetch.js";
import {sizeText, timeText} from "../i18n.js";

/**
 * @typedef {import("./model.js").Line} Line
 * @typedef {import("./model.js").Crossing} Crossing
 * @typedef {import("./measured.js").Measured} Measured
 */

/** Dashes and markers tell lines apart as colours do; the colours are Okabe and Ito's, darker on
 * a light ground and lighter on a dark one. */
const LIGHT = ["#0072b2", "#b34700", "#00795a", "#a14a80", "#8a6d00", "#2a7fb0", "#555555",
  "#7a3e9d", "#1b6b2f", "#b3261e", "#444488", "#6b4e1f"];
const DARK = ["#56b4e9", "#f2a868", "#2fd0a5", "#e39ac4", "#e8d44a", "#9ad0f5", "#bbbbbb",
  "#c9a0e8", "#8fdc9b", "#ff8a80", "#aab0ff", "#d9b98c"];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const DASH_OF = /** @type {Record<string, number[]>} */ ({solid: [], dash: [7, 4], dot: [2, 3],
  dashdot: [7, 3, 2, 3], longdash: [11, 4], longdashdot: [11, 3, 2, 3]});
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down",
  "pentagon", "star", "hexagon", "circle-open", "square-open"];

/** Ticks of a time axis, in us. */
const TIME_TICKS = Array.from({length: 14}, (_, k) => 10 ** (k - 1));

/** How a line looks; no two of 72 are alike. @param {number} i @param {boolean} dark */
export function lookOf(i, dark) {
  const [at, again] = [i % LIGHT.length, Math.floor(i / LIGHT.length)];
  const dash = DASHES[(at + again) % DASHES.length];
  return {colour: (dark ? DARK : LIGHT)[at], dash, dashes: DASH_OF[dash],
    symbol: SYMBOLS[(at + 5 * again) % SYMBOLS.length]};
}

/** Markers of measured points, in three inks. */
const MARKS = ["circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "hexagon",
  "star"];

/** How measured points look; no two of 24 are alike.
 * @param {number} i @param {Record<string, string>} colour */
export function markOf(i, colour) {
  const inks = [colour.text, colour.add, colour.copy];
  return {symbol: MARKS[i % MARKS.length], colour: inks[Math.floor(i / MARKS.length) % 3]};
}

/**
 * The script that draws charts; it is inside, or is loaded once.
 * @param {{there: boolean, marks: string[]}} charts as web/charts.py says
 * @returns {Promise<any>}
 * @throws {Error} "noCharts" where the package is missing
 */
export async function loadCharts(charts) {
  const there = () => /** @type {any} */ (window).Plotly;
  if (there()) return there();
  if (!charts.there || inside) throw new Error("noCharts");
  for (const id of charts.marks) {
    if (!document.getElementById(id)) document.head.append(el("meta", {id, class: "no-inline-styles"}));
  }
  await new Promise((done, failed) => {
    document.head.append(el("script", {src: "plotly.min.js", onload: done,
      onerror: () => failed(new Error("noCharts"))}));
  });
  return there();
}

/**
 * Lines, measured points and crossovers as plotly takes them.
 * @param {object} of
 * @param {Line[]} of.lines
 * @param {string[]} of.names all, in the order that gives them their looks
 * @param {number[]} of.xs
 * @param {"time" | "busbw"} of.what
 * @param {boolean} of.sized whether x are sizes
 * @param {Measured[]} of.measured
 * @param {Crossing[]} of.crossed
 * @param {(x: number) => number} of.busbwOf busbw of a time at an x, for crossovers
 * @param {boolean} of.dark
 * @param {Record<string, string>} of.colour
 * @param {import("../i18n.js").Tell} of.t
 */
export function tracesOf({lines, names, xs, what, sized, measured, crossed, busbwOf, dark,
  colour, t}) {
  const unit = what === "time" ? "us" : "GB/s";
  const x = (/** @type {number} */ v) => (sized ? sizeText(v) : String(v));
  /** @type {any[]} */
  const traces = lines.map((line) => {
    const look = lookOf(names.indexOf(line.algorithm), dark);
    return {x: xs, y: line.at.map((at) => at?.[what] ?? null), name: line.algorithm,
      mode: "lines+markers", line: {color: look.colour, dash: look.dash, width: 2},
      marker: {symbol: look.symbol, size: 7, color: look.colour},
      text: line.at.map((at, i) => (at ? `${line.algorithm} (${at.how}), ${x(xs[i])}: `
        + `${Number(at[what].toPrecision(4))} ${unit}` : "")), hoverinfo: "text"};
  });
  measured.forEach(({name, points}, i) => {
    const {symbol, colour: color} = markOf(i, colour);
    traces.push({x: points.map((p) => p.size), y: points.map((p) => p[what]), name, mode: "markers",
      hoverinfo: "text", marker: {symbol: `${symbol}-open-dot`, size: 11, color, line: {width: 2}},
      text: points.map((p) => `${name}, ${x(p.size)}: ${p[what]} ${unit}`)});
  });
  if (crossed.length) {
    traces.push({x: crossed.map((c) => c.x), name: t("curvesCrossing"), mode: "markers",
      y: crossed.map((c, i) => (what === "time" ? c.y : busbwOf(i))), hoverinfo: "text",
      marker: {symbol: "diamond-tall-open", size: 15, color: colour.text, line: {width: 2}},
      text: crossed.map((c) => t("curvesOvertakes", {to: c.to, from: c.from, x: x(c.x)}))});
  }
  return traces;
}

/**
 * @param {string} title of the y axis
 * @param {boolean} logarithmic whether y is
 * @param {boolean} sized
 * @param {number[]} xs
 * @param {Crossing[]} crossed
 * @param {Record<string, string>} colour
 * @param {{width: number, x: string}} of
 */
export function layoutOf(title, logarithmic, sized, xs, crossed, colour, {width, x}) {
  const every = Math.max(1, Math.ceil(xs.length / Math.max(3, Math.floor(width / 80))));
  const ticks = xs.filter((_, i) => i % every === 0);
  const axis = {gridcolor: colour.empty, linecolor: colour.line, zeroline: false,
    fixedrange: true, automargin: true};
  return {
    paper_bgcolor: colour.ground, plot_bgcolor: colour.ground, showlegend: false, hovermode: "closest",
    font: {family: '"Inter", system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif', size: 13,
      color: colour.text},
    margin: {l: 66, r: 14, t: 34, b: 46}, height: 400, width,
    title: {text: title, font: {size: 14}, x: 0, xref: "paper", y: 0.985, yanchor: "top"},
    xaxis: {...axis, type: "log", title: {text: x, font: {size: 13}}, tickvals: ticks,
      ticktext: ticks.map((v) => (sized ? sizeText(v) : String(v))), tickangle: 0},
    yaxis: logarithmic ? {...axis, type: "log", tickvals: TIME_TICKS,
      ticktext: TIME_TICKS.map((us) => timeText(us / 1e6))}
      : {...axis, type: "linear", exponentformat: "none", rangemode: "tozero"},
    shapes: crossed.map((c) => ({type: "line", x0: c.x, x1: c.x, y0: 0, y1: 1, yref: "paper",
      line: {color: colour.soft, width: 1, dash: "dot"}})),
    annotations: crossed.map((c, i) => ({x: Math.log10(c.x), y: 1 - 0.07 * (i % 3), yref: "paper",
      text: c.to, showarrow: false, yanchor: "top", font: {size: 12, color: colour.text},
      bgcolor: colour.ground, xanchor: c.x > xs[0] ** 0.3 * xs[xs.length - 1] ** 0.7 ? "right" : "left",
      xshift: 0})),
    hoverlabel: {bgcolor: colour.text, bordercolor: colour.text, font: {color: colour.ground}},
  };
}

/** A piece of a line with its marker, for the legend.
 * @param {import("../pen.js").Pen} pen @param {ReturnType<typeof lookOf>} look */
export function drawLook(pen, {colour, dashes, symbol}) {
  pen.path("M1 8H39", {stroke: colour, width: 2, dash: dashes.length ? dashes : undefined});
  const open = symbol.endsWith("open");
  drawShape(pen, symbol, open ? {stroke: colour, width: 2} : {fill: colour});
}

/** The marker of measured points, for the legend.
 * @param {import("../pen.js").Pen} pen @param {ReturnType<typeof markOf>} mark */
export function drawMeasured(pen, {symbol, colour}) {
  drawShape(pen, symbol, {stroke: colour, width: 2});
  pen.dot(20, 8, 1, {fill: colour});
}

/** @param {import("../pen.js").Pen} pen @param {string} symbol @param {import("../pen.js").Look} look */
function drawShape(pen, symbol, look) {
  const shape = /** @type {Record<string, string>} */ ({square: "M15 3h10v10h-10z",
    "square-open": "M15 3h10v10h-10z", diamond: "M20 2l6 6l-6 6l-6 -6z", star:
    "M20 2l2 4l4 1l-3 3l1 4l-4 -2l-4 2l1 -4l-3 -3l4 -1z", "triangle-up": "M20 2l6 11h-12z",
    "triangle-down": "M20 14l6 -11h-12z", pentagon: "M20 2l6 4.5l-2.5 7h-7l-2.5 -7z",
    hexagon: "M20 2l5 3v6l-5 3l-5 -3v-6z", cross: "M18 2h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    x: "M16 3l4 3l4 -3l2 2l-3 3l3 3l-2 2l-4 -3l-4 3l-2 -2l3 -3l-3 -3z"})[symbol];
  if (shape) pen.path(shape, look);
  else pen.dot(20, 8, 5, look);
}
