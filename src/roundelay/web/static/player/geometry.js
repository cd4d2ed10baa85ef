// @ts-check

/**
 * Where everything stands in a picture of a size.
 * @typedef {object} Geometry
 * @property {number} side of a card
 * @property {[number, number][]} centre of each card and switch
 * @property {number} columns of a card's cells
 * @property {number} cell its side
 * @property {number} head height of a card's name
 */

const LARGEST = 150;
const APART = 1.42;

/**
 * Cards as large as may be without touching.
 * @param {[number, number][]} places from 0 to 1
 * @param {string} layout
 * @param {number} pieces
 * @param {number} width
 * @param {number} height
 * @returns {Geometry}
 */
export function geometryOf(places, layout, pieces, width, height) {
  const round = layout === "circle" || layout === "star" || layout === "switch";
  const square = Math.min(width, height);
  const [w, h] = round ? [square, square] : [width, height];
  const [left, top] = [(width - w) / 2, (height - h) / 2];
  const side = largest(places, w - 8, h - 8, round);
  /** @type {[number, number][]} */
  const centre = places.map(([x, y]) => round
    ? [left + 4 + side / 2 + x * (w - 8 - side), top + 4 + side / 2 + y * (h - 8 - side)]
    : [left + 4 + x * (w - 8), top + 4 + y * (h - 8)]);
  const head = side >= 36 ? Math.max(11, side * 0.16) : 0;
  const inner = side - 2 * gap(side);
  const columns = bestColumns(pieces, inner, inner - head);
  const rows = Math.ceil(pieces / columns);
  const cell = Math.min(inner / columns, (inner - head) / rows);
  return {side, centre, columns, cell, head};
}

/** @param {number} side of a card @returns {number} from its edge to its cells */
export const gap = (side) => Math.max(1, side * 0.05);

/**
 * Where a cell is.
 * @param {Geometry} g
 * @param {number} place
 * @param {number} piece
 * @param {number} pieces
 * @returns {[number, number]} its left upper corner
 */
export function cellAt(g, place, piece, pieces) {
  const [x, y] = g.centre[place];
  const rows = Math.ceil(pieces / g.columns);
  const left = x - (Math.min(g.columns, pieces) * g.cell) / 2;
  const top = y - g.side / 2 + g.head + (g.side - g.head - rows * g.cell) / 2;
  return [left + (piece % g.columns) * g.cell, top + Math.floor(piece / g.columns) * g.cell];
}

/**
 * The place and piece under a point; the piece is -1 where it is none.
 * @param {Geometry} g
 * @param {number} pieces
 * @param {number} x
 * @param {number} y
 * @returns {{place: number, piece: number} | null}
 */
export function under(g, pieces, x, y) {
  const half = g.side / 2;
  const place = g.centre.findIndex(([cx, cy]) => Math.abs(x - cx) <= half && Math.abs(y - cy) <= half);
  if (place < 0) return null;
  const [left, top] = cellAt(g, place, 0, pieces);
  const [column, row] = [Math.floor((x - left) / g.cell), Math.floor((y - top) / g.cell)];
  const piece = row * g.columns + column;
  const inside = column >= 0 && column < g.columns && row >= 0 && piece < pieces;
  return {place, piece: inside ? piece : -1};
}

/**
 * The way of a move: a curve to the right of the straight line, so that two that meet are seen.
 * @param {Geometry} g
 * @param {number} src
 * @param {number} dst
 * @returns {[[number, number], [number, number], [number, number]]} begin, bend, end
 */
export function wayOf(g, src, dst) {
  const [x0, y0] = g.centre[src];
  const [x1, y1] = g.centre[dst];
  const [dx, dy] = [x1 - x0, y1 - y0];
  const long = Math.hypot(dx, dy) || 1;
  const bend = Math.min(0.14 * long, Math.max(48, 1.3 * g.side));
  /** @type {[number, number]} */
  const middle = [(x0 + x1) / 2 - (dy / long) * bend, (y0 + y1) / 2 + (dx / long) * bend];
  return [edge(g, g.centre[src], middle), middle, edge(g, g.centre[dst], middle)];
}

/**
 * A point of a way.
 * @param {[[number, number], [number, number], [number, number]]} way
 * @param {number} f from 0 to 1
 * @returns {[number, number]}
 */
export function along([a, b, c], f) {
  const e = 1 - f;
  const on = (/** @type {0 | 1} */ i) => e * e * a[i] + 2 * e * f * b[i] + f * f * c[i];
  return [on(0), on(1)];
}

/** @param {Geometry} g @param {[number, number]} from @param {[number, number]} to
 * @returns {[number, number]} where the line leaves the card */
function edge(g, [x, y], [tx, ty]) {
  const [dx, dy] = [tx - x, ty - y];
  const reach = (g.side / 2 + 2) / Math.max(Math.abs(dx), Math.abs(dy), 1e-9);
  return [x + dx * Math.min(1, reach), y + dy * Math.min(1, reach)];
}

/** @param {number} pieces @param {number} w @param {number} h */
function bestColumns(pieces, w, h) {
  let [best, size] = [1, 0];
  for (let columns = 1; columns <= Math.min(pieces, 128); columns += 1) {
    const cell = Math.min(w / columns, h / Math.ceil(pieces / columns));
    if (cell > size + 1e-6) [best, size] = [columns, cell];
  }
  return best;
}

/** @param {[number, number][]} places @param {number} w @param {number} h @param {boolean} round */
function largest(places, w, h, round) {
  for (let side = LARGEST; side > 7; side *= 0.96) {
    const inner = round ? side : 0;
    const fits = places.every(([x, y], i) => places.every(([u, v], j) => j >= i ||
      Math.max(Math.abs(x - u) * (w - inner), Math.abs(y - v) * (h - inner)) >= side * APART ||
      Math.hypot((x - u) * (w - inner), (y - v) * (h - inner)) >= side * (APART + 0.12)));
    const within = round || places.every(([x, y]) =>
      Math.min(x, 1 - x) * w >= side * 0.52 && Math.min(y, 1 - y) * h >= side * 0.52);
    if (fits && within) return side;
  }
  return 7;
}
