// @ts-check
import {load} from "../fetch.js";
import {sizeText} from "../i18n.js";
import {nearestOf} from "./model.js";

/** @typedef {import("./model.js").CurvesData} CurvesData */
/** @typedef {Record<string, string>} Params */

const USUAL_NODES = 4; // nodes

/** The data of the number of nodes that is asked for, or of that which is nearest.
 * @param {Params} p @param {AbortSignal} signal @returns {Promise<CurvesData>} */
export async function firstOf(p, signal) {
  const {collective, cluster} = p;
  try {
    return await load("curves", {collective, cluster, nodes: p.nodes}, signal);
  } catch (error) {
    const one = await load("curves", {collective, cluster, nodes: "1"}, signal).catch(() => {
      throw error;
    });
    const nodes = nearestOf(one.offered, Number(p.nodes) || USUAL_NODES);
    return nodes === 1 ? one : load("curves", {collective, cluster, nodes: String(nodes)}, signal);
  }
}

/**
 * What is said where something else is shown than was asked for.
 * @param {Params} asked @param {Params} p @param {number[]} sizes
 * @param {import("../i18n.js").Tell} t @returns {string}
 */
export function insteadText(asked, p, sizes, t) {
  const said = [];
  if (asked.nodes !== p.nodes) {
    said.push(t("curvesInstead", {what: t("clusterCount"), asked: asked.nodes, taken: p.nodes}));
  }
  if (asked.size !== p.size) {
    said.push(t("curvesInstead", {what: t("size"), asked: asked.size,
      taken: sizeText(sizes[Number(p.size)])}));
  }
  return said.join(" ");
}
