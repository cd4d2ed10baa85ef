// @ts-check

/** @typedef {import("./state.js").Params} Params */

const insideText = document.getElementById("inside")?.textContent;

/** What a page that is one file has inside; null where a server is asked. */
export const inside = insideText ? JSON.parse(insideText) : null;

/**
 * A view's data; parameters that are empty are left out.
 * @param {string} name
 * @param {Params} given
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 * @throws {Error} with what the server says is wrong
 */
export async function load(name, given, signal) {
  const kept = keptOf(given);
  if (inside) {
    const found = inside.data[keyOf(name, kept)];
    if (!found) throw new Error("not in this file");
    return found;
  }
  const answer = await fetch(`api/${name}?${new URLSearchParams(kept)}`, {signal});
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

/**
 * Whether a view's data can be had: a server can be asked for all, one file has some inside.
 * @param {string} name
 * @param {Params} given
 * @returns {boolean}
 */
export function canLoad(name, given) {
  return !inside || keyOf(name, keptOf(given)) in inside.data;
}

/** @param {Params} given @returns {[string, string][]} */
function keptOf(given) {
  const kept = Object.entries(given).filter(([, value]) => value !== "");
  return kept.sort(([a], [b]) => (a < b ? -1 : 1));
}

/** @param {string} name @param {[string, string][]} kept @returns {string} */
function keyOf(name, kept) {
  return [name, ...kept.map((pair) => pair.join("="))].join("&");
}
