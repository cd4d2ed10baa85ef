// @ts-check

/**
 * The bucket's model, the same as web/data/bucket.py has in Python; times in ms.
 * @typedef {object} Bucket
 * @property {number} n cards
 * @property {number} slow factor of the slow card
 * @property {number} noise standard deviation over mean of computing
 * @property {number} stall probability that a card's link stalls in a step
 * @property {number} pause ms that it stalls
 * @property {number} compute
 * @property {number} exchange
 * @property {number} update
 *
 * @typedef {object} Figures
 * @property {number} n
 * @property {number} ideal
 * @property {number} mean
 * @property {number} p50
 * @property {number} p99
 * @property {number} p999
 * @property {number} lost part of the cards' time
 * @property {number} hours card-hours of that in an hour
 * @property {number} well probability that no link stalls
 */

const SLICES = 2000;

/**
 * P(Z > z) of the standard normal distribution; the error is below 1.2e-7 of it (Numerical
 * Recipes, erfcc).
 * @param {number} z
 * @returns {number}
 */
export function beyond(z) {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + x / 2);
  const terms = [-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807,
    -1.13520398, 1.48851587, -0.82215223, 0.17087277];
  const sum = terms.reduceRight((above, term) => above * t + term, 0);
  const half = t * Math.exp(-x * x + sum) / 2;
  return z >= 0 ? half : 1 - half;
}

/**
 * Where P(Z > z) is t (Acklam's rational approximation, 1.2e-9 of z).
 * @param {number} t
 * @returns {number}
 */
export function deviation(t) {
  if (t > 0.5) return -deviation(1 - t);
  if (t < 0.02425) {
    const q = Math.sqrt(-2 * Math.log(Math.max(t, 1e-300)));
    return -(((((-7.784894002430293e-3 * q - 0.3223964580411365) * q - 2.400758277161838) * q
      - 2.549732539343734) * q + 4.374664141464968) * q + 2.938163982698783)
      / ((((7.784695709041462e-3 * q + 0.3224671290700398) * q + 2.445134137142996) * q
      + 3.754408661907416) * q + 1);
  }
  const q = 0.5 - t;
  const r = q * q;
  return (((((-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687) * r
    + 138.357751867269) * r - 30.66479806614716) * r + 2.506628277459239) * q
    / (((((-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866) * r
    + 66.80131188771972) * r - 13.28068155288572) * r + 1);
}

/**
 * P(max <= x) of the factors of n cards, of which one is slow.
 * @param {Bucket} of
 * @param {number} x
 * @returns {number}
 */
function slowestBelow({n, slow, noise}, x) {
  if (noise <= 0) return x >= Math.max(1, slow) ? 1 : 0;
  const above = beyond((x - 1) / noise);
  if (above >= 1) return 0;
  return Math.exp((n - 1) * Math.log1p(-above)) * (1 - beyond((x / slow - 1) / noise));
}

/**
 * @param {Bucket} of
 * @returns {Figures}
 */
export function bucketFigures(of) {
  const {n, slow, noise, stall, pause, compute, exchange, update} = of;
  const fixed = exchange + update;
  const well = Math.exp(n * Math.log1p(-stall));
  const most = slow * (1 + 10 * noise) + 1e-9;
  const below = (/** @type {number} */ ms) =>
    well * slowestBelow(of, (ms - fixed) / compute)
    + (1 - well) * slowestBelow(of, (ms - fixed - pause) / compute);
  const inverse = (/** @type {number} */ q) => {
    let [low, high] = [fixed, fixed + pause + compute * most];
    for (let i = 0; i < 40; i += 1) {
      const middle = (low + high) / 2;
      if (below(middle) < q) low = middle;
      else high = middle;
    }
    return high;
  };
  const mean = compute * meanSlowest(of, most) + fixed + pause * (1 - well);
  const lost = Math.max(0, 1 - (compute * (1 + (slow - 1) / n) + fixed) / mean);
  return {n, ideal: compute + fixed, mean, p50: inverse(0.5), p99: inverse(0.99),
    p999: inverse(0.999), lost, hours: n * lost, well};
}

/**
 * The mean of the greatest factor: the integral of 1 - P.
 * @param {Bucket} of
 * @param {number} most
 * @returns {number}
 */
function meanSlowest(of, most) {
  if (of.noise <= 0) return Math.max(1, of.slow);
  const low = Math.max(0, 1 - 10 * of.noise);
  const width = (most - low) / SLICES;
  let sum = 0;
  for (let k = 0; k < SLICES; k += 1) sum += 1 - slowestBelow(of, low + (k + 0.5) * width);
  return low + width * sum;
}

/**
 * One step, drawn: the slowest of each group of cards, and which group's link stalls. The same
 * number gives the same step. The slow card is in the first group.
 * @param {Bucket} of
 * @param {number} step
 * @param {number[]} groups cards of each
 * @returns {{computes: number[], stalled: number, begin: number, end: number}} ms; begin is that
 *   of exchanging, end that of the step, stalled the group or -1
 */
export function drawStep(of, step, groups) {
  const random = mulberry(step * 7919 + of.n);
  const computes = groups.map((size, i) => {
    const others = i ? size : size - 1;
    const factor = others ? greatest(others, of.noise, random()) : 0;
    const last = i ? 0 : of.slow * greatest(1, of.noise, random());
    return of.compute * Math.max(factor, last, 0);
  });
  const jam = random() < -Math.expm1(of.n * Math.log1p(-of.stall));
  const stalled = jam ? Math.floor(random() * groups.length) : -1;
  const begin = Math.max(...computes);
  return {computes, stalled, begin, end: begin + of.exchange + (jam ? of.pause : 0) + of.update};
}

/**
 * The greatest of so many factors, where a draw u falls.
 * @param {number} size
 * @param {number} noise
 * @param {number} u
 * @returns {number}
 */
function greatest(size, noise, u) {
  return 1 + noise * deviation(-Math.expm1(Math.log(Math.max(u, 1e-12)) / size));
}

/**
 * Random numbers from 0 to 1 (mulberry32).
 * @param {number} seed
 * @returns {() => number}
 */
function mulberry(seed) {
  let a = (seed * 0x9E3779B1) >>> 0;
  return () => {
    a = (a + 0x6D2B79F5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
