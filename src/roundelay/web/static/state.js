// @ts-check

/** @typedef {Record<string, string>} Params */

/** In a notebook's frame the page has no address; its state is kept here. */
export const framed = location.protocol === "about:";
let framedState = "";

/** The state as the address has it, with its #; empty for none. @returns {string} */
export function addressState() {
  return framed ? framedState : location.hash;
}

/**
 * The view and its parameters, as the address has them after the #: player?n=8&step=3. One that is
 * empty counts as missing.
 * @param {string} text
 * @returns {{view: string, params: Params}}
 */
export function readState(text) {
  const [view, query = ""] = text.replace(/^#/, "").split(/\?(.*)/s);
  return {view, params: Object.fromEntries([...new URLSearchParams(query)].filter(([, value]) => value))};
}

/**
 * The same as text; parameters that are empty are left out.
 * @param {string} view
 * @param {Params} params
 * @returns {string}
 */
export function stateText(view, params) {
  const kept = Object.entries(params).filter(([, value]) => value !== "");
  const query = new URLSearchParams(kept).toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
  return query ? `${view}?${query}` : view;
}

/**
 * Put the state into the address, without a new entry in the history.
 * @param {string} view
 * @param {Params} params
 */
export function writeState(view, params) {
  goToState("#" + stateText(view, params), false);
}

/**
 * Put a state into the address.
 * @param {string} text with its #
 * @param {boolean} anew with a new entry in the history
 */
export function goToState(text, anew) {
  if (framed) framedState = text;
  else if (anew) history.pushState(null, "", text);
  else history.replaceState(null, "", text);
}

/**
 * A preference that is remembered where the browser allows it.
 * @param {string} name
 * @returns {string}
 */
export function remembered(name) {
  try {
    return localStorage.getItem("roundelay." + name) ?? "";
  } catch {
    return "";
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
export function remember(name, value) {
  try {
    localStorage.setItem("roundelay." + name, value);
  } catch {
    // A browser that keeps nothing still shows everything.
  }
}
