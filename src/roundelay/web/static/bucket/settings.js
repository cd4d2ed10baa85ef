// @ts-check

/** @typedef {import("./model.js").Bucket} Bucket */

export const CARDS = [4, 8, 16, 32, 64, 128, 256, 512, 1000, 2000, 4096, 10_000];
export const STALLS = [0, 1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3,
  1e-2];
const LIMITS = /** @type {Record<string, [number, number]>} */ ({
  n: [4, 10_000], slow: [1, 10], noise: [0, 0.3], stall: [0, 0.1], pause: [0, 10_000],
  compute: [1, 10_000], exchange: [0, 10_000], update: [0, 10_000],
});
const USUAL = /** @type {Record<string, number>} */ ({n: 8, slow: 1.3, noise: 0.02, stall: 1e-4,
  pause: 200, compute: 200, exchange: 40, update: 10});

/**
 * The settings of an address; what is no number or out of range is as usual.
 * @param {Record<string, string>} params
 * @returns {Bucket}
 */
export function bucketOf(params) {
  const read = (/** @type {string} */ key) => {
    const value = Number(params[key] || NaN);
    const [low, high] = LIMITS[key];
    const fits = value >= low && value <= high && (key !== "n" || Number.isInteger(value));
    return fits || params[key] === "0" && !low ? value || 0 : USUAL[key];
  };
  return /** @type {Bucket} */ (
    Object.fromEntries(Object.keys(USUAL).map((key) => [key, read(key)])));
}

/**
 * The settings as an address has them.
 * @param {Bucket} of
 * @returns {Record<string, string>}
 */
export function bucketParams(of) {
  return Object.fromEntries(Object.entries(of).map(([key, value]) => [key, String(value)]));
}

/**
 * The place of what is nearest to a value.
 * @param {number[]} list
 * @param {number} value
 * @returns {number}
 */
export function nearest(list, value) {
  let best = 0;
  list.forEach((each, i) => {
    if (Math.abs(each - value) < Math.abs(list[best] - value)) best = i;
  });
  return best;
}
