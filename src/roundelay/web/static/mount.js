// @ts-check
import {el} from "./dom.js";

/**
 * A view whose data come first: what is loading, what it shows, or what went wrong.
 * @param {HTMLElement} root
 * @param {import("./i18n.js").Tell} t
 * @param {(box: HTMLElement, signal: AbortSignal) => Promise<{close: () => void}>} made fills the
 *   box
 * @returns {() => void} what ends it
 */
export function mountLoaded(root, t, made) {
  const stop = new AbortController();
  /** @type {{close: () => void} | null} */
  let shown = null;
  const box = el("div", {class: "body"}, el("p", {class: "loading"}, t("loading")));
  root.replaceChildren(box);
  made(box, stop.signal).then((part) => {
    if (stop.signal.aborted) part.close();
    else shown = part;
  }).catch((error) => {
    if (stop.signal.aborted) return;
    box.querySelector(".loading")?.remove();
    box.append(el("p", {class: "wrong", role: "alert"}, t("failed", {error: error.message})));
  });
  return () => {
    stop.abort();
    shown?.close();
  };
}
