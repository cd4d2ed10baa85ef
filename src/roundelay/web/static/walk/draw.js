// @ts-check
import {timeText} from "../i18n.js";
import {drawnAt} from "./model.js";

/** @typedef {import("./model.js").WalkToken} WalkToken */

const STAIR = 40;
const STAIRS_TOP = 8;
const BAR_HIGH = 14;
const WALK_STEPS = ["request", "instance", "ranks", "weights", "compute", "exchange", "token"];
export const WALK_PARTS = ["compute", "exchange", "wait", "rest"];

/** How high the stairs are. @param {WalkToken} token @returns {number} */
export function stairsHigh(token) {
  return STAIRS_TOP + STAIR * token.steps.length + 6;
}

/**
 * A token's steps, one below the other, each where its time is.
 * @param {import("../pen.js").Pen} pen
 * @param {number} width
 * @param {WalkToken} token
 * @param {number} chosen which step
 * @param {Record<string, string>} colour
 * @param {import("../i18n.js").Tell} t
 */
export function drawStairs(pen, width, token, chosen, colour, t) {
  const [left, right] = [34, width - 12];
  const scale = (right - left) / Math.max(1e-9, token.to - token.from);
  token.steps.forEach((step, i) => {
    const y = STAIRS_TOP + i * STAIR;
    const {from, to, wait} = drawnAt(token, i);
    const a = left + (from - token.from) * scale;
    const wide = Math.max(2, (to - from) * scale);
    const picked = i === chosen;
    if (picked) pen.box(2, y, width - 4, STAIR - 2, 6, {fill: colour.card, stroke: colour.add, width: 1.5});
    const number = WALK_STEPS.indexOf(step.name) + 1;
    pen.text(18, y + 12, String(number), 13, {fill: picked ? colour.text : colour.soft}, "center", true);
    const told = `${t(`walkStep_${step.name}`)}: ${timeText(step.duration_us / 1e6)}`;
    pen.text(left, y + 11, told, 13, {fill: colour.text}, "left", picked);
    pen.box(left, y + 21, right - left, BAR_HIGH, 3, {fill: colour.empty});
    pen.box(a, y + 21, wide, BAR_HIGH, Math.min(3, wide / 2), {fill: stepColour(step.name, colour)});
    if (wait * scale > 0.5) hatch(pen, a + wide, y + 21, wait * scale, colour);
  });
}

/** @param {string} name @param {Record<string, string>} colour @returns {string} */
function stepColour(name, colour) {
  if (name === "compute") return colour.part;
  return name === "exchange" ? colour.add : colour.copy;
}

/** @param {import("../pen.js").Pen} pen @param {number} x @param {number} y @param {number} w
 * @param {Record<string, string>} colour */
function hatch(pen, x, y, w, colour) {
  pen.box(x, y, w, BAR_HIGH, 0, {fill: colour.wrong, alpha: 0.16});
  let d = "";
  for (let at = 3; at < w; at += 5) {
    d += `M${(x + at).toFixed(1)} ${y}l-${Math.min(3, at).toFixed(1)} ${BAR_HIGH}`;
  }
  if (d) pen.path(d, {stroke: colour.wrong, width: 1});
}

const TOKENS_HIGH = 190;

/** How high the bars are. @returns {number} */
export function tokensHigh() {
  return TOKENS_HIGH;
}

/**
 * A bar for each token, of what its time went to.
 * @param {import("../pen.js").Pen} pen
 * @param {number} width
 * @param {WalkToken[]} tokens
 * @param {number} chosen
 * @param {Record<string, string>} colour
 * @param {import("../i18n.js").Tell} t
 */
export function drawTokens(pen, width, tokens, chosen, colour, t) {
  const [left, bottom, top] = [66, TOKENS_HIGH - 26, 14];
  const wholes = tokens.map(({parts}) => WALK_PARTS.reduce((sum, key) => sum + parts[key], 0));
  const most = Math.max(1e-9, ...wholes);
  const step = (width - left - 8) / tokens.length;
  const wide = Math.max(1, Math.min(64, step * 0.7));
  const scale = (bottom - top) / most;
  pen.text(left - 8, top, timeText(most / 1e6), 12, {fill: colour.soft}, "right");
  pen.text(left - 8, bottom, "0", 12, {fill: colour.soft}, "right");
  pen.path(`M${left} ${bottom}H${width - 8}`, {stroke: colour.line, width: 1});
  tokens.forEach((token, i) => {
    const x = left + i * step + (step - wide) / 2;
    let y = bottom;
    for (const key of WALK_PARTS) {
      const high = token.parts[key] * scale;
      y -= high;
      if (key === "wait") {
        pen.box(x, y, wide, high, 0, {fill: colour.wrong, alpha: 0.3});
        continue;
      }
      const fill = key === "rest" ? colour.copy : stepColour(key, colour);
      pen.box(x, y, wide, high, 0, {fill});
    }
    if (i === chosen) pen.box(x - 2, y - 2, wide + 4, bottom - y + 3, 2, {stroke: colour.text, width: 2});
    if (step > 16 || i % Math.ceil(24 / step) === 0) {
      pen.text(x + wide / 2, bottom + 13, String(i + 1), 12, {fill: colour.soft});
    }
  });
  pen.text(width - 8, TOKENS_HIGH - 4, t("walkToken"), 11, {fill: colour.soft}, "right");
}
