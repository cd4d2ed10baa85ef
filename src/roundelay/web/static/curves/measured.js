// @ts-check

/**
 * @typedef {{size: number, time: number, busbw: number}} Point bytes, microseconds, GB/s
 * @typedef {{name: string, points: Point[]}} Measured what one file says
 */

const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const UNITS = [1, 1e3, 1e6];
const MOST_TEXT = 20e6;
const MOST_LINE = 2000; // characters of a line that may be a row of a table
const MOST_SIZE = 2 ** 50;
const TIMES = [1e-3, 1e12]; // microseconds
const MOST_RATE = 1e6; // GB/s
/** Points, and series of them, up to which charts answer at once. */
export const MOST_POINTS = 20_000;
export const MOST_SERIES = 24;

/**
 * What a file measured: the JSON of `roundelay bench`, or the table of nccl-tests.
 * @param {string} text
 * @param {string} file its name
 * @param {string} collective rows of others are left out, where the file tells
 * @returns {Measured[]}
 * @throws {Error} with what is wrong, the key of a text
 */
export function readMeasured(text, file, collective) {
  if (text.length > MOST_TEXT) throw new Error("measuredLarge");
  const rows = text.trimStart().startsWith("{") ? ofBench(text) : ofTable(text);
  if (!rows.length) throw new Error("measuredNone");
  const mine = rows.filter((/** @type {any} */ row) => !row.collective || row.collective === collective);
  if (!mine.length) throw new Error("measuredOther");
  if (mine.length > MOST_POINTS) throw new Error("measuredMany");
  if (!mine.every(isLikely)) throw new Error("measuredFar");
  /** @type {Map<string, Point[]>} */
  const found = new Map();
  for (const {name, size, time, busbw} of mine) {
    const key = name ? `${file}: ${name}` : file;
    const points = found.get(key);
    if (points) points.push({size, time, busbw});
    else found.set(key, [{size, time, busbw}]);
  }
  if (found.size > MOST_SERIES) throw new Error("measuredSeries");
  return [...found].map(([name, points]) => ({name,
    points: points.sort((a, b) => a.size - b.size)}));
}

/** Whether a collective may take so long. @param {Point} point */
function isLikely({size, time, busbw}) {
  return size >= 1 && size <= MOST_SIZE && time >= TIMES[0] && time <= TIMES[1] && busbw >= 0 &&
    busbw <= MOST_RATE;
}

/** @param {string} text */
function ofBench(text) {
  let read;
  try {
    read = JSON.parse(text);
  } catch {
    return [];
  }
  const rows = Array.isArray(read?.rows) ? read.rows : [];
  const isNumber = (/** @type {any} */ value) => typeof value === "number" && value > 0;
  return rows.filter((/** @type {any} */ row) => row && isNumber(row.bytes) && isNumber(row.time_us))
    .map((/** @type {any} */ row) => ({collective: String(row.collective ?? ""),
      name: [row.algorithm, row.ranks && `n = ${row.ranks}`].filter(Boolean).join(", ").slice(0, 80),
      size: row.bytes, time: row.time_us, busbw: isNumber(row.busbw_GBps) ? row.busbw_GBps : 0}));
}

/**
 * Rows of a table: a size, a count, a type, and figures of which one is size over another.
 * @param {string} text
 */
function ofTable(text) {
  /** @type {{collective: string, name: string, size: number, time: number, busbw: number}[]} */
  const found = [];
  let [collective, ranks] = ["", ""];
  for (const line of text.split(/\r?\n/)) {
    if (line.length > MOST_LINE) continue;
    const program = /\b(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|reduce|gather|scatter|sendrecv)_perf\b/.exec(line);
    if (program) collective = collectiveOf(program[1]);
    const title = /#\s*(\w+), n = (\d+)\s*$/.exec(line);
    if (title) [collective, ranks] = [title[1], title[2]];
    const row = /(?:^|[\s:|>\]])(\d{1,15})\s+(\d+)\s+([a-z]\w*)\s+(.*)$/.exec(line);
    const figures = row?.[4].split(/\s+/).filter((word) => NUMBER.test(word)).map(Number) ?? [];
    const timing = row && timingOf(Number(row[1]), figures);
    if (row && timing) {
      found.push({collective, name: ranks && `n = ${ranks}`, size: Number(row[1]), ...timing});
    }
  }
  return found;
}

/** nccl-tests' program by our names. @param {string} name @returns {string} */
function collectiveOf(name) {
  const known = /** @type {Record<string, string>} */ ({allreduce: "all_reduce",
    allgather: "all_gather", reducescatter: "reduce_scatter", alltoall: "all_to_all",
    sendrecv: "send_recv"});
  return known[name.replaceAll("_", "")] ?? name;
}

/**
 * Time and busbw among a row's figures: the first two of which one is size over the other. A root
 * may stand before them.
 * @param {number} size
 * @param {number[]} figures
 * @returns {{time: number, busbw: number} | null}
 */
function timingOf(size, figures) {
  for (let i = 0; i < 2 && i + 2 < figures.length; i += 1) {
    const [time, algbw, busbw] = figures.slice(i, i + 3);
    for (const unit of UNITS) {
      const rate = size / (time * unit * 1e3);
      if (time > 0 && algbw >= 0 && Math.abs(rate - algbw) <= 0.006 + 0.02 * rate) {
        return {time: time * unit, busbw};
      }
    }
  }
  return null;
}
