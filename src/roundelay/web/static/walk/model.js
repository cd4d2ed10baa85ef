// @ts-check

/**
 * @typedef {{name: string, token: number, start_us: number, duration_us: number,
 *   exchanges?: number, wait_us?: number, bytes_by_rank?: number[]}} WalkStep
 * @typedef {{token: number, from: number, to: number, steps: WalkStep[], parts: Record<string,
 *   number>}} WalkToken times in us; parts are how long computing, exchanging, waiting and all
 *   the rest took
 */

/**
 * The steps of each token.
 * @param {WalkStep[]} steps
 * @returns {WalkToken[]}
 */
export function tokensOf(steps) {
  /** @type {Map<number, WalkStep[]>} */
  const byToken = new Map();
  for (const step of steps) {
    const list = byToken.get(step.token) ?? [];
    list.push(step);
    byToken.set(step.token, list);
  }
  return [...byToken].map(([token, list]) => {
    const from = Math.min(...list.map((s) => s.start_us));
    const to = Math.max(...list.map((s) => s.start_us + s.duration_us + (s.wait_us ?? 0)));
    const sum = (/** @type {string} */ name) => list.filter((s) => s.name === name)
      .reduce((total, s) => total + s.duration_us, 0);
    const wait = list.reduce((total, s) => total + (s.wait_us ?? 0), 0);
    const [compute, exchange] = [sum("compute"), sum("exchange")];
    const rest = list.filter((s) => s.name !== "compute" && s.name !== "exchange")
      .reduce((total, s) => total + s.duration_us, 0);
    return {token, from, to, steps: list, parts: {compute, exchange, wait, rest}};
  });
}

/**
 * Where a step is drawn. Computing and exchanging alternate, layer by layer; each is drawn in one
 * piece, one after the other.
 * @param {WalkToken} token
 * @param {number} i
 * @returns {{from: number, to: number, wait: number}} us, and from `to` on the waiting
 */
export function drawnAt(token, i) {
  const step = token.steps[i];
  let from = step.start_us;
  const before = token.steps[i - 1];
  if (step.name === "exchange" && before?.name === "compute") {
    from = before.start_us + before.duration_us;
  }
  return {from, to: from + step.duration_us, wait: step.wait_us ?? 0};
}
