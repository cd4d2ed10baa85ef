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
  const kept = Object.entries(given).filter(([, value]) => value !== "");
  kept.sort(([a], [b]) => (a < b ? -1 : 1));
  if (inside) {
    const found = inside.data[[name, ...kept.map((pair) => pair.join("="))].join("&")];
    if (!found) throw new Error("not in this file");
    return found;
  }
  const answer = await fetch(`api/${name}?${new URLSearchParams(kept)}`, {signal});
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}
