// @ts-check

/** Kinds of events, as `What` numbers them. */
export const EVENT_KINDS = ["send", "copy", "reduce", "call"];
/** Parts of the longest path, as `Part` numbers them. */
export const PATH_PARTS = ["work", "message", "engine", "program"];
const CALL_KIND = 3;
/** Events before a moment among which those that last until then are looked for. */
export const NEAR = 512;
const ARRAYS = /** @type {Record<string, any>} */ ({
  begin: Float64Array, wait: Float32Array, work: Float32Array, kind: Uint8Array, peer: Int16Array,
  bytes: Float32Array, call: Int32Array, act: Int32Array, cause: Int32Array,
  call_number: Int32Array, call_kind: Int32Array, call_begin: Float64Array,
  call_end: Float64Array, call_last: Int16Array, call_behind: Float32Array,
});
const PATH_ARRAYS = /** @type {Record<string, any>} */ ({event: Int32Array, rank: Int16Array,
  source: Int16Array, part: Uint8Array, begin: Float64Array, end: Float64Array});

/**
 * Numbers out of base64.
 * @param {string} text
 * @param {any} kind of typed array
 */
function numbersOf(text, kind) {
  if ("fromBase64" in Uint8Array) {
    return new kind(/** @type {any} */ (Uint8Array).fromBase64(text).buffer);
  }
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return new kind(bytes.buffer);
}

/**
 * The last place whose number is at most `x`, or -1.
 * @param {ArrayLike<number>} sorted
 * @param {number} x
 * @param {number} [from] the first place that may be it
 * @param {number} [to] the place after the last
 * @returns {number}
 */
export function placeOf(sorted, x, from = 0, to = sorted.length) {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Stretches of time that do not overlap, and how much of them lies before a moment. */
class Stretches {
  /** @param {Float64Array} begins @param {Float64Array} ends of each, in any order */
  constructor(begins, ends) {
    const order = new Uint32Array(begins.length).map((_, i) => i);
    if (begins.some((x, i) => i && x < begins[i - 1])) order.sort((a, b) => begins[a] - begins[b]);
    this.begin = new Float64Array(order.length);
    this.end = new Float64Array(order.length);
    let k = -1;
    for (const i of order) {
      if (ends[i] <= begins[i]) continue;
      if (k >= 0 && begins[i] <= this.end[k]) {
        this.end[k] = Math.max(this.end[k], ends[i]);
      } else {
        k += 1;
        this.begin[k] = begins[i];
        this.end[k] = ends[i];
      }
    }
    this.begin = this.begin.subarray(0, k + 1);
    this.end = this.end.subarray(0, k + 1);
    this.before = new Float64Array(k + 1);
    for (let i = 1; i <= k; i += 1) {
      this.before[i] = this.before[i - 1] + this.end[i - 1] - this.begin[i - 1];
    }
  }

  /**
   * Which share of each of some equal spans they fill, 0 to 1.
   * @param {number} from ns
   * @param {number} wide ns of a span
   * @param {number} count
   * @returns {Float64Array}
   */
  shares(from, wide, count) {
    const found = new Float64Array(count);
    let i = placeOf(this.begin, from);
    let sum = this.#until(i, from);
    for (let k = 0; k < count; k += 1) {
      const to = from + (k + 1) * wide;
      if (this.begin[i + 1] <= to) {
        i += 1;
        let stride = 1;
        while (this.begin[i + stride] <= to) {
          i += stride;
          stride *= 2;
        }
        i = placeOf(this.begin, to, i, Math.min(this.begin.length, i + stride));
      }
      const now = this.#until(i, to);
      found[k] = Math.min(1, (now - sum) / wide);
      sum = now;
    }
    return found;
  }

  /** How much of them lies before a moment. @param {number} i the last that has begun by then
   * @param {number} now @returns {number} */
  #until(i, now) {
    return i < 0 ? 0 : this.before[i] + Math.min(now, this.end[i]) - this.begin[i];
  }
}

/**
 * @typedef {object} Lane
 * @property {number} first its first event
 * @property {number} last the one after its last
 * @property {Stretches} work
 * @property {Stretches} wait
 * @property {Stretches} calls
 * @property {Int32Array} callEvents which of its events are calls
 */

/** A run, with its columns as arrays. */
export class RunModel {
  /** @param {any} data as the server gives it */
  constructor(data) {
    this.data = data;
    this.name = /** @type {string} */ (data.name);
    this.names = /** @type {string[]} */ (data.names);
    this.span = Math.max(1, data.span);
    this.at = /** @type {Record<string, any>} */ ({});
    for (const [key, kind] of Object.entries(ARRAYS)) {
      this.at[key] = numbersOf(data.columns[key], kind);
    }
    this.path = /** @type {Record<string, any>} */ ({});
    for (const [key, kind] of Object.entries(PATH_ARRAYS)) {
      this.path[key] = numbersOf(data.path[key], kind);
    }
    this.lanes = this.names.map((_, rank) => this.#lane(data.first[rank], data.first[rank + 1]));
  }

  /** @param {number} first @param {number} last @returns {Lane} */
  #lane(first, last) {
    const {begin, wait, work, kind} = this.at;
    const count = last - first;
    const times = Array.from({length: 6}, () => new Float64Array(count));
    const [worked, workedTo, waited, waitedTo, called, calledTo] = times;
    const callEvents = new Int32Array(count);
    let [moves, calls] = [0, 0];
    for (let i = first; i < last; i += 1) {
      const ready = begin[i] + wait[i];
      if (kind[i] === CALL_KIND) {
        callEvents[calls] = i;
        called[calls] = begin[i];
        calledTo[calls] = ready + work[i];
        calls += 1;
      } else {
        waited[moves] = begin[i];
        waitedTo[moves] = worked[moves] = ready;
        workedTo[moves] = ready + work[i];
        moves += 1;
      }
    }
    return {first, last, callEvents: callEvents.subarray(0, calls),
      work: new Stretches(worked.subarray(0, moves), workedTo.subarray(0, moves)),
      wait: new Stretches(waited.subarray(0, moves), waitedTo.subarray(0, moves)),
      calls: new Stretches(called.subarray(0, calls), calledTo.subarray(0, calls))};
  }

  /** The name of a participant, short. @param {number} rank @returns {string} */
  nameOf(rank) {
    return this.names[rank] ?? String(rank);
  }

  /** Which stretch of the longest path covers a moment. @param {number} now @returns {number} */
  pathAt(now) {
    const i = placeOf(this.path.begin, now);
    return i >= 0 && now < this.path.end[i] ? i : -1;
  }

  /** ns of the path by rank and part. @returns {Float64Array[]} */
  pathShares() {
    const found = this.names.map(() => new Float64Array(PATH_PARTS.length));
    const {rank, part, begin, end} = this.path;
    for (let i = 0; i < rank.length; i += 1) found[rank[i]][part[i]] += end[i] - begin[i];
    return found;
  }

  /**
   * Kinds of calls: how many, and how long from the first that came to the last that left.
   * @returns {Map<string, {count: number, total: number, behind: number, last: number}>}
   */
  callKinds() {
    const {call_kind: kind, call_begin: begin, call_end: end, call_last: last,
      call_behind: behind} = this.at;
    const found = this.data.calls.map((/** @type {string} */ text) =>
      [text, {count: 0, total: 0, behind: 0, late: this.names.map(() => 0), last: 0}]);
    for (let i = 0; i < kind.length; i += 1) {
      const row = found[kind[i]][1];
      row.count += 1;
      row.total += end[i] - begin[i];
      row.behind += behind[i];
      row.late[last[i]] += 1;
    }
    for (const [, row] of found) row.last = row.late.indexOf(Math.max(...row.late));
    return new Map(found);
  }

  /** The event of a lane at a moment that lies innermost. @param {number} rank
   * @param {number} now @returns {number} its place, or -1 */
  eventAt(rank, now) {
    const {first, last, callEvents} = this.lanes[rank];
    const {begin, kind} = this.at;
    const place = placeOf(begin, now, first, last);
    for (let i = place; i >= Math.max(first, place - NEAR); i -= 1) {
      if (kind[i] !== CALL_KIND && now <= this.endOf(i)) return i;
    }
    let [low, high] = [0, callEvents.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begin[callEvents[middle]] <= now) low = middle + 1;
      else high = middle;
    }
    const call = low ? callEvents[low - 1] : -1;
    return call >= 0 && now <= this.endOf(call) ? call : -1;
  }

  /** A lane's first event from a moment on. @param {number} rank @param {number} now */
  firstAfter(rank, now) {
    const {first, last} = this.lanes[rank];
    return Math.min(last - 1, placeOf(this.at.begin, now, first, last) + 1);
  }

  /** When an event ends. @param {number} i @returns {number} */
  endOf(i) {
    return this.at.begin[i] + this.at.wait[i] + this.at.work[i];
  }
}
