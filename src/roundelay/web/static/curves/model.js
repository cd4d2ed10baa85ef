// @ts-check

/**
 * What web/data/curves.py gives; microseconds.
 * @typedef {object} Way
 * @property {string} name
 * @property {string} protocol
 * @property {([number, number, number] | null)[]} parts
 *
 * @typedef {{algorithm: string, ways: Way[]}} CurveData
 *
 * @typedef {object} CurvesData
 * @property {string} collective
 * @property {string} title
 * @property {number} nodes
 * @property {number[]} offered
 * @property {number} ranks
 * @property {number[]} sizes
 * @property {number} launch
 * @property {number} bus
 * @property {CurveData[]} curves
 *
 * @typedef {{latency: number, bandwidth: number}} Factors on every step, and on every link
 * @typedef {{time: number, busbw: number, how: string}} At microseconds, GB/s, by what
 * @typedef {{algorithm: string, at: (At | null)[]}} Line
 * @typedef {{x: number, y: number, from: string, to: string}} Crossing
 */

/**
 * An algorithm's time of a size: that of its quickest way.
 * @param {CurveData} curve
 * @param {number} size its number
 * @param {CurvesData} data
 * @param {Factors} factors
 * @returns {At | null}
 */
export function timeAt(curve, size, data, {latency, bandwidth}) {
  let [best, how] = [Infinity, ""];
  for (const {name, protocol, parts} of curve.ways) {
    const part = parts[size];
    if (!part) continue;
    const time = Math.max(data.launch, part[0] * latency + part[1] / bandwidth + part[2]);
    if (time < best) [best, how] = [time, name ? `${protocol}, ${name}` : protocol];
  }
  if (best === Infinity || !best) return null;
  return {time: best, busbw: data.sizes[size] / best / 1e3 * data.bus, how};
}

/**
 * Lines against size, on so many nodes.
 * @param {CurvesData} data
 * @param {Factors} factors
 * @returns {Line[]}
 */
export function bySize(data, factors) {
  return data.curves.map((curve) => ({algorithm: curve.algorithm,
    at: data.sizes.map((_, i) => timeAt(curve, i, data, factors))}));
}

/**
 * Lines against nodes, for one size.
 * @param {CurvesData[]} each of every number of nodes
 * @param {number} size its number
 * @param {Factors} factors
 * @returns {Line[]}
 */
export function byNodes(each, size, factors) {
  const names = [...new Set(each.flatMap((data) => data.curves.map((c) => c.algorithm)))];
  return names.map((algorithm) => ({algorithm, at: each.map((data) => {
    const curve = data.curves.find((c) => c.algorithm === algorithm);
    return curve ? timeAt(curve, size, data, factors) : null;
  })}));
}

/**
 * Where another algorithm becomes the quickest, on straight lines between points whose axes are
 * logarithmic.
 * @param {Line[]} lines
 * @param {number[]} xs
 * @returns {Crossing[]}
 */
export function crossings(lines, xs) {
  const time = (/** @type {Line} */ line, /** @type {number} */ i) => line.at[i]?.time ?? Infinity;
  const log = (/** @type {Line} */ line, /** @type {number} */ i) => Math.log(time(line, i));
  const best = xs.map((_, i) => lines.reduce((least, line) =>
    (time(line, i) < time(least, i) * (1 - 1e-9) ? line : least), lines[0]));
  /** @type {Crossing[]} */
  const found = [];
  for (let i = 0; i + 1 < xs.length; i += 1) {
    const [a, b] = [best[i], best[i + 1]];
    if (a === b) continue;
    const [before, after] = [log(b, i) - log(a, i), log(b, i + 1) - log(a, i + 1)];
    const part = Number.isFinite(before) && Number.isFinite(after) && before > after
      ? before / (before - after) : before > 0 ? 1 : 0;
    const between = (/** @type {number} */ u, /** @type {number} */ v) =>
      Math.exp(Math.log(u) + part * (Math.log(v) - Math.log(u)));
    found.push({x: between(xs[i], xs[i + 1]), from: a.algorithm, to: b.algorithm,
      y: between(time(a, i), Number.isFinite(time(a, i + 1)) ? time(a, i + 1) : time(b, i + 1))});
  }
  return found;
}

/** The quickest at every x, from the first on. @param {Line[]} lines @returns {string} */
export function firstBest(lines) {
  const at = (/** @type {Line} */ line) => line.at[0]?.time ?? Infinity;
  return lines.reduce((least, line) => (at(line) < at(least) * (1 - 1e-9) ? line : least),
    lines[0]).algorithm;
}

/** The nearest of some numbers. @param {number[]} listed @param {number} x @returns {number} */
export function nearestOf(listed, x) {
  return listed.reduce((best, one) => (Math.abs(one - x) < Math.abs(best - x) ? one : best));
}

/** The data of the number of nodes that is nearest. @param {CurvesData[]} each @param {number} x */
export function near(each, x) {
  return each.reduce((best, one) =>
    (Math.abs(one.nodes - x) < Math.abs(best.nodes - x) ? one : best));
}
