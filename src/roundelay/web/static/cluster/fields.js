// @ts-check
import {choice, el, field} from "../dom.js";
import {inside} from "../fetch.js";

/** @typedef {Record<string, string>} Params */

/**
 * What is chosen: cluster, collective, algorithm, cards and size.
 * @param {Params} p
 * @param {any} known the catalogue
 * @param {(changes: Params) => void} set
 * @param {import("../i18n.js").Tell} t
 * @returns {HTMLElement[]}
 */
export function clusterFields(p, known, set, t) {
  const all = Object.hasOwn(known.collectives, p.collective)
    ? known.collectives[p.collective] : [];
  const [machine, nodes = ""] = p.cluster.split(":");
  const pairs = (/** @type {string[]} */ list) =>
    /** @type {[string, string][]} */ (list.map((name) => [name, name]));
  const names = (/** @type {any[]} */ list) => list.map((a) => a.name);
  const chosen = all.find((/** @type {any} */ a) => a.name === p.algorithm);
  const usual = (/** @type {string} */ collective) => {
    const listed = names(known.collectives[collective]);
    return listed.includes("ring") ? "ring" : listed[0];
  };
  const made = [
    choice(t("cluster"), pairs(known.clusters), machine,
      (name) => set({cluster: nodes ? `${name}:${nodes}` : name})),
    field(t("clusterCount"), {type: "number", min: 1, max: 16384, value: nodes, placeholder: "–"},
      (k) => set({cluster: k ? `${machine}:${k}` : machine, n: ""})),
    choice(t("collective"), pairs(Object.keys(known.collectives)), p.collective, (collective) =>
      set({collective, params: "", root: "", algorithm: usual(collective)})),
    choice(t("algorithm"), pairs(names(all)), p.algorithm,
      (algorithm) => set({algorithm, params: ""})),
    field(t("ranks"), {type: "number", min: 2, max: 16384, value: p.n,
      placeholder: t("clusterAll")}, (n) => set({n})),
    field(t("size"), {type: "text", value: p.size, size: 7}, (size) => set({size})),
  ];
  if (chosen?.parameters.length) {
    made.push(field(t("params"), {type: "text", value: p.params, size: 12,
      placeholder: `${chosen.parameters[0]}=`}, (params) => set({params})));
  }
  if (inside) {
    for (const label of made) label.querySelector("select, input")?.setAttribute("disabled", "");
    made.push(el("p", {class: "soft note"}, t("oneFile")));
  }
  return made;
}
