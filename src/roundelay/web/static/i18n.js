// @ts-check
import {en} from "./words/en.js";
import {zh} from "./words/zh.js";

/** @typedef {(key: string, values?: Record<string, any>) => string} Tell */

const tables = {en, zh};

/**
 * The language asked for, else the one remembered, else the browser's.
 * @param {string} asked
 * @param {string} kept
 * @returns {"en" | "zh"}
 */
export function pickLanguage(asked, kept) {
  const wanted = asked || kept || navigator.language;
  return wanted.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/**
 * The function that says a key's text in a language, with values put in.
 * @param {"en" | "zh"} lang
 * @returns {Tell}
 */
export function teller(lang) {
  return (key, values = {}) => {
    const text = /** @type {Record<string, string>} */ (tables[lang])[key] ?? key;
    return text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
  };
}

/**
 * Bytes in the largest binary unit.
 * @param {number} bytes
 * @returns {string}
 */
export function sizeText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let at = 0;
  while (bytes >= 1024 && at < units.length - 1) {
    bytes /= 1024;
    at += 1;
  }
  return `${Number(bytes.toPrecision(4))} ${units[at]}`;
}

/**
 * Seconds in a unit that suits.
 * @param {number} seconds
 * @returns {string}
 */
export function timeText(seconds) {
  const units = /** @type {[string, number][]} */ ([["s", 1], ["ms", 1e-3], ["us", 1e-6]]);
  const [name, unit] = units.find(([, size]) => seconds >= size) ?? ["us", 1e-6];
  return `${Number((seconds / unit).toPrecision(3))} ${name}`;
}
