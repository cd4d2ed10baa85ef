// @ts-check

/**
 * @typedef {[number, number, number[], boolean]} Move source, destination, pieces, whether added
 * @typedef {{en: string, zh: string}} Said
 * @typedef {object} Played what the server says of a schedule; see data/player.py
 * @property {string} name
 * @property {Said} purpose
 * @property {Said} outcome
 * @property {string} collective
 * @property {string} algorithm
 * @property {number} ranks
 * @property {number} helpers
 * @property {number} size
 * @property {string[]} pieces
 * @property {number[]} wanted
 * @property {boolean} sums
 * @property {number} piece_bytes
 * @property {string} layout
 * @property {[number, number][]} places
 * @property {{moves: Move[], changes: [number, number, number, number][], said: Said}[]} states
 * @property {[number, number, string][]} parts
 * @property {Record<string, [string, number]>} card
 * @property {boolean} right
 * @property {number[][]} needs
 * @property {number[]} [seconds]
 * @property {string} [cluster]
 * @property {{time: number, protocol: string, slices: number, binding_link: string}} [timing]
 * @property {[number, number, number, number]} [dropped] step, source, destination, piece
 * @property {Partial<Said>} [broken]
 *
 * @typedef {object} Tally what a card has sent and received up to a step
 * @property {number} steps
 * @property {number} messages of the card that has sent most of them
 * @property {number} sent bytes, of the card that has sent most
 * @property {number} busiest which card that is
 * @property {number} arrivals most messages that one place gets in this step
 */

const COMPLETE = 1;
const TWICE = 2;

/** A schedule's states, one after the other. */
export class Model {
  /** @param {Played} data */
  constructor(data) {
    this.data = data;
    this.steps = data.states.length - 1;
    this.places = data.ranks + data.helpers;
    this.counts = new Uint8Array(this.places * data.pieces.length);
    this.marks = new Uint8Array(this.counts.length);
    this.need = data.needs.map((pieces) => new Set(pieces));
    /** @type {Map<number, number>} place and piece to the step of its last change */
    this.changed = new Map();
    this.step = -1;
    this.tallies = this.#tally();
    this.widest = Math.max(1, ...data.states.flatMap(({moves}) => moves.map((m) => m[2].length)));
    this.goTo(0);
  }

  /** @param {number} step from 0, the start */
  goTo(step) {
    if (step < this.step) {
      this.counts.fill(0);
      this.marks.fill(0);
      this.changed.clear();
      this.step = -1;
    }
    const pieces = this.data.pieces.length;
    while (this.step < step) {
      this.step += 1;
      for (const [place, piece, count, mark] of this.data.states[this.step].changes) {
        const at = place * pieces + piece;
        this.counts[at] = count;
        this.marks[at] = mark;
        this.changed.set(at, this.step);
      }
    }
  }

  /**
   * Whether a place is done: a total of a sum, or a piece where it is wanted.
   * @param {number} place
   * @param {number} piece
   */
  isDone(place, piece) {
    const complete = this.marks[place * this.data.pieces.length + piece] === COMPLETE;
    return complete && (this.data.sums || (this.need[place]?.has(piece) ?? false));
  }

  /**
   * Whether a place holds something twice, or at the end not what it must.
   * @param {number} place
   * @param {number} piece
   */
  isWrong(place, piece) {
    const mark = this.marks[place * this.data.pieces.length + piece];
    const ended = this.step === this.steps && !this.data.right;
    return mark === TWICE || (ended && mark !== COMPLETE && (this.need[place]?.has(piece) ?? false));
  }

  /**
   * The way by which what a place holds came to it: moves with their steps, the latest last.
   * @param {number} place
   * @param {number} piece
   * @returns {{step: number, src: number, dst: number}[]}
   */
  history(place, piece) {
    const found = [];
    for (let step = this.step, at = place; step > 0; step -= 1) {
      for (const [src, dst, pieces] of this.data.states[step].moves) {
        if (dst === at && src !== dst && pieces.includes(piece)) {
          found.unshift({step, src, dst});
          at = src;
          break;
        }
      }
    }
    return found;
  }

  /** @returns {Tally[]} one for each state */
  #tally() {
    const sent = new Float64Array(this.places);
    const messages = new Float64Array(this.places);
    return this.data.states.map(({moves}, steps) => {
      const arrivals = new Map();
      const pairs = new Set();
      for (const [src, dst, pieces] of moves) {
        if (src === dst) continue;
        sent[src] += pieces.length * this.data.piece_bytes;
        if (pairs.has(src * this.places + dst)) continue;
        pairs.add(src * this.places + dst);
        messages[src] += 1;
        arrivals.set(dst, (arrivals.get(dst) ?? 0) + 1);
      }
      const cards = sent.subarray(0, this.data.ranks);
      const most = Math.max(...cards);
      return {
        steps, sent: most, busiest: cards.indexOf(most), arrivals: Math.max(0, ...arrivals.values()),
        messages: Math.max(...messages.subarray(0, this.data.ranks)),
      };
    });
  }
}
