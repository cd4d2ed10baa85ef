// @ts-check

/**
 * What web/data/roads.py gives; rates in bytes a second, one way.
 * @typedef {object} Road
 * @property {string} medium
 * @property {number} rate
 * @property {number} links
 * @property {"oneway" | "duplex"} printed how data sheets count directions
 * @property {boolean} bits whether data sheets print bits
 * @property {number} latency
 * @property {string} source
 *
 * @typedef {object} Machine
 * @property {string} name
 * @property {string} title
 * @property {number} cards
 * @property {Road} inside
 * @property {Road | null} between
 * @property {number} pcie
 *
 * @typedef {{name: "pcie" | "copy" | "wire", rate: number, ends: number}} Hop
 * @typedef {{unit: "bytes" | "bits" | "sheet", way: "oneway" | "both" | "sheet"}} Convention
 */

export const WAYS = ["gpudirect", "rdma", "kernel"];
export const MEDIA = /** @type {Record<string, string>} */ ({nvlink: "NVLink", xgmi: "xGMI",
  pcie: "PCIe", ib: "InfiniBand", roce: "RoCE", efa: "EFA", tcp: "TCP"});

/**
 * A rate as a convention counts it, and its unit.
 * @param {Road} road
 * @param {Convention} by
 * @returns {{value: number, unit: string, both: boolean}}
 */
export function counted(road, by) {
  const bits = by.unit === "bits" || (by.unit === "sheet" && road.bits);
  const both = by.way === "both" || (by.way === "sheet" && road.printed === "duplex");
  const value = road.rate * (bits ? 8 : 1) * (both ? 2 : 1) / 1e9;
  return {value, unit: bits ? "Gb/s" : "GB/s", both};
}

/**
 * How many times wider one road is than another, and whether both are counted the same way.
 * @param {Road} inside
 * @param {Road} between
 * @param {Convention} by
 * @returns {{ratio: number, true: boolean}}
 */
export function ratioOf(inside, between, by) {
  const [a, b] = [counted(inside, by), counted(between, by)];
  return {ratio: a.value / b.value, true: a.unit === b.unit && a.both === b.both};
}

/**
 * What data of a card pass on a way to a card of another node; as `hops` of web/data/roads.py.
 * @param {Machine} machine
 * @param {string} way
 * @param {number} core bytes a second that one core copies
 * @param {number} cores
 * @returns {Hop[]}
 */
export function hopsOf(machine, way, core, cores) {
  const wire = {name: /** @type {const} */ ("wire"), ends: 1,
    rate: /** @type {Road} */ (machine.between).rate};
  const pcie = {name: /** @type {const} */ ("pcie"), ends: way === "gpudirect" ? 2 : 4,
    rate: machine.pcie};
  const copy = {name: /** @type {const} */ ("copy"), ends: 2, rate: core * cores};
  return way === "kernel" ? [pcie, copy, wire] : [pcie, wire];
}

/**
 * The slowest of some hops.
 * @param {Hop[]} hops
 * @returns {Hop}
 */
export function slowestHop(hops) {
  return hops.reduce((least, hop) => (hop.rate < least.rate ? hop : least));
}
