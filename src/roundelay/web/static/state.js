// @ts-check

/** @typedef {Record<string, string>} Params */

/**
 * The view and its parameters, as the address has them after the #: player?n=8&step=3.
 * @param {string} text
 * @returns {{view: string, params: Params}}
 */
export function readState(text) {
  const [view, query = ""] = text.replace(/^#/, "").split(/\?(.*)/s);
  return {view, params: Object.fromEntries(new URLSearchParams(query))};
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
  history.replaceState(null, "", "#" + stateText(view, params));
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
