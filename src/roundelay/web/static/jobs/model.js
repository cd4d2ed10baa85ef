// @ts-check

/** @typedef {import("../i18n.js").Tell} Tell */

/**
 * @typedef {{kind: string, cards: number, block: number, submit_s: number, work_s: number,
 *   priority?: number, interval_s?: number}} Job
 * @typedef {{at_s: number, what: string, job: number, nodes: number[], exchange: number,
 *   best_fit: number, first_fit: number, part: string, link: string, index: number[],
 *   above: [number, number][][], reason: string | null, saves: number, kept_s: number,
 *   lost_s: number}} JobEvent see `Event` of place/sim/record.py
 * @typedef {{cluster: string, nodes: number, cards: number, levels: {name: string, nodes: number}[],
 *   jobs: Job[], policies: {policy: string, events: any[]}[]}} JobLog
 * @typedef {{job: number, from: number, to: number, start: JobEvent, left: JobEvent | null}} Stay a
 *   job on its nodes: after event `from`, until event `to`
 * @typedef {{log: JobLog, policy: string, events: JobEvent[], arrived: number[], stays: Stay[],
 *   colours: number[]}} JobFilm colours: [job] a number, of jobs that run together mostly others
 * @typedef {{at: number, time: number, running: Stay[], waiting: number[], ended: number,
 *   out: Set<number>, slow: Set<number>, free: number, slowdown: number,
 *   loads: Map<number, number>[]}} Moment
 */

const PLAIN_EVENT = {job: -1, nodes: [], exchange: 1, best_fit: 1, first_fit: 1, part: "", link: "",
  index: [], above: [], reason: null, saves: 0, kept_s: 0, lost_s: 0};

/** What happens under a policy, arrivals with it. @param {JobLog} log @param {string} policy
 * @returns {JobFilm} */
export function jobFilm(log, policy) {
  const told = log.policies.find((one) => one.policy === policy) ??
    log.policies[log.policies.length - 1];
  const arrivals = log.jobs.map(({submit_s}, job) =>
    ({...PLAIN_EVENT, at_s: submit_s, what: "submit", job}));
  /** @type {JobEvent[]} */
  const events = [...arrivals, ...told.events.map((event) => ({...PLAIN_EVENT, ...event}))]
    .sort((a, b) => a.at_s - b.at_s);
  const arrived = new Array(log.jobs.length).fill(0);
  /** @type {Stay[]} */
  const stays = [];
  /** @type {Map<number, Stay>} */
  const open = new Map();
  events.forEach((event, i) => {
    if (event.what === "submit") arrived[event.job] = i;
    if (event.what === "start") {
      const stay = {job: event.job, from: i, to: events.length, start: event, left: null};
      stays.push(stay);
      open.set(event.job, stay);
    }
    if (event.what === "stop" || event.what === "end") {
      Object.assign(/** @type {Stay} */ (open.get(event.job)), {to: i, left: event});
    }
  });
  return {log, policy: told.policy, events, arrived, stays, colours: coloursOf(log, stays)};
}

/** Each job has the first colour that none has which runs as it first starts. @param {JobLog} log
 * @param {Stay[]} stays @returns {number[]} */
function coloursOf(log, stays) {
  /** @type {number[]} */
  const found = new Array(log.jobs.length).fill(-1);
  /** @type {Stay[]} */
  let running = [];
  for (const stay of stays) {
    running = running.filter(({to}) => to > stay.from);
    const used = new Set(running.map(({job}) => found[job]));
    let colour = 0;
    while (used.has(colour)) colour += 1;
    if (found[stay.job] < 0) found[stay.job] = colour;
    running.push(stay);
  }
  return found;
}

/** How things stand after so many events. @param {JobFilm} film @param {number} at
 * @returns {Moment} */
export function momentOf(film, at) {
  const {log, events, arrived, stays} = film;
  const running = stays.filter(({from, to}) => from < at && at <= to);
  const gone = new Set(stays.filter(({to, left}) => to < at && left?.what === "end").map((s) => s.job));
  const busy = new Set(running.map((s) => s.job));
  const waiting = log.jobs.map((_, job) => job)
    .filter((job) => arrived[job] < at && !busy.has(job) && !gone.has(job));
  const counts = new Int32Array(log.nodes);
  const slow = new Set();
  for (const {what, nodes} of events.slice(0, at)) {
    for (const node of nodes) {
      if (what === "out") counts[node] += 1;
      if (what === "back") counts[node] -= 1;
      if (what === "slow") slow.add(node);
      if (what === "well") slow.delete(node);
    }
  }
  const held = running.reduce((sum, {job}) => sum + log.jobs[job].cards, 0);
  const wide = running.filter(({start}) => start.nodes.length > 1);
  const cards = wide.reduce((sum, {job}) => sum + log.jobs[job].cards, 0);
  const longer = wide.reduce((sum, {job, start}) => sum + log.jobs[job].cards * start.exchange, 0);
  return {at, time: at ? events[at - 1].at_s : 0, running, waiting, ended: gone.size,
    out: new Set([...counts.keys()].filter((node) => counts[node] > 0)), slow,
    free: log.nodes * log.cards - held, slowdown: cards ? longer / cards : 1,
    loads: loadsOf(log, running)};
}

/** [level] how full the links up of each domain are, over all jobs. @param {JobLog} log
 * @param {Stay[]} running */
function loadsOf(log, running) {
  const loads = log.levels.map(() => new Map());
  for (const {start} of running) {
    start.above.forEach((level, height) => level.forEach(([domain, filled]) =>
      loads[height].set(domain, (loads[height].get(domain) ?? 0) + filled)));
  }
  return loads;
}

/** The busiest links up: level, domain and how full, or null. @param {Moment} moment */
export function fullest(moment) {
  /** @type {{level: number, domain: number, filled: number} | null} */
  let most = null;
  moment.loads.forEach((loads, level) => loads.forEach((filled, domain) => {
    if (filled > (most?.filled ?? 0)) most = {level, domain, filled};
  }));
  return /** @type {{level: number, domain: number, filled: number} | null} */ (most);
}

/** What a job is called in the picture: A to Z, then AA. @param {number} job @returns {string} */
export function jobLetter(job) {
  const last = String.fromCharCode(65 + (job % 26));
  return job < 26 ? last : jobLetter(Math.floor(job / 26) - 1) + last;
}

/** A time from seconds to days. @param {number} seconds @param {Tell} t @returns {string} */
export function longTime(seconds, t) {
  const [unit, worth] = /** @type {[string, number][]} */ ([["d", 86400], ["h", 3600], ["min", 60]])
    .find(([, size]) => seconds >= 2 * size) ?? ["s", 1];
  return t(`jobsUnit_${unit}`, {x: Number((seconds / worth).toPrecision(3))});
}

/** A moment of the whole: its day and time. @param {number} seconds @param {Tell} t */
export function dayTime(seconds, t) {
  const minutes = Math.floor(seconds / 60);
  const two = (/** @type {number} */ x) => String(x).padStart(2, "0");
  return t("jobsClock", {day: Math.floor(minutes / 1440) + 1,
    time: `${two(Math.floor(minutes / 60) % 24)}:${two(minutes % 60)}`});
}

/** How much longer than the cheapest. @param {number} ratio @returns {string} */
export function longerText(ratio) {
  return `+${(100 * (ratio - 1)).toFixed(1)} %`;
}

/** Nodes as ranges: 0–3, 8. @param {number[]} nodes @returns {string} */
export function rangesText(nodes) {
  const sorted = [...new Set(nodes)].sort((a, b) => a - b);
  const parts = [];
  for (let i = 0; i < sorted.length; i += 1) {
    const first = sorted[i];
    while (sorted[i + 1] === sorted[i] + 1) i += 1;
    parts.push(sorted[i] > first ? `${first}–${sorted[i]}` : String(first));
  }
  return parts.join(", ");
}
