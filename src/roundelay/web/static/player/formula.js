// @ts-check
import {sizeText} from "../i18n.js";

/** @typedef {import("../i18n.js").Tell} Tell */

/**
 * A formula of a cost card, as it is printed.
 * @param {string} formula
 * @returns {string}
 */
export function formulaText(formula) {
  return formula.replaceAll("pow2_below(n)", "p").replaceAll("pow2_above(n)", "q")
    .replace(/\((\w+ > \w+)\)/g, "[$1]").replaceAll("'", "")
    .replace(/\bsum\((.*) for i in range\((.*)\)\)/, "Σ($1; i = 0 … $2 − 1)")
    .replace(/floor_log\(([^(),]+), (\w+)\)/g, "⌊log($1)/log($2)⌋")
    .replace(/floor_log\((\w+)\)/g, "⌊log₂ $1⌋").replace(/ceil_log\((\w+)\)/g, "⌈log₂ $1⌉")
    .replace(/ceil\(([^()]+)\)/g, "⌈$1⌉").replace(/(\([^()]+\)|\w+)\/\/(\w+(\*\*⌊[^⌋]*⌋)?)/g, "⌊$1/$2⌋")
    .replaceAll("**", "^").replaceAll("*", "·").replaceAll("-", "−");
}

/** What stands for what in formulas, where they have it: a pattern, and a text. */
const SIGNS = /** @type {[RegExp, string][]} */ ([
  [/\bp\b/, "formulaBelow"], [/\bq\b/, "formulaAbove"], [/⌊/, "formulaDown"], [/⌈/, "formulaUp"],
  [/\[\w+ > \w+\]/, "formulaHolds"], [/(reduce|gather|scatter|broadcast)\(\w+, /, "formulaPart"],
  [/nonzero_digits/, "formulaDigits"]]);

/**
 * How the formulas of a picture are read.
 * @param {Tell} t
 * @param {string[]} formulas as printed
 * @param {number} n
 * @param {number} size bytes
 * @returns {string}
 */
export function formulaKey(t, formulas, n, size) {
  const all = formulas.join(" ");
  const below = 2 ** Math.floor(Math.log2(n));
  const values = {n: n.toLocaleString("en"), size: sizeText(size), below,
    above: below < n ? 2 * below : below};
  const signs = SIGNS.filter(([sign]) => sign.test(all)).map(([, key]) => t(key, values));
  const named = /\b(pieces|group|groups|rings|levels|radix)\b/.test(all) ? [t("formulaNamed")] : [];
  return [t("formulaKey", values), ...signs, ...named].join(t("formulaNext")) + t("formulaEnd");
}
