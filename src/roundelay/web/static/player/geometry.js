// @ts-check

/**
 * Where everything stands in a picture of a size.
 * @typedef {object} Geometry
 * @property {number} side of a card
 * @property {[number, number][]} centre of each card and switch
 * @property {number} columns of a card's cells
 * @property {number} wide width of a cell
 * @property {number} high its height
 * @property {number} cell the smaller of both
 * @property {number} head height of a card's name
 * @property {"full" | "name" | ""} label what a cell has room for: its piece's name and the
 *   contributions in it, the name alone, or nothing
 * @property {[number, number]} size of the picture
 * @property {Map<number, Way>} ways that have been found, by source and destination
 *
 * @typedef {[[number, number], [number, number], [number, number]]} Way begin, bend, end
 */

const LARGEST = 150;
const ENOUGH = 125; // a card's side up to which a circle is stretched to make it larger
const APART = 1.42;
const STRETCHES = [1, 1.3, 1.6, 1.9];
const LINE = 14; // pixels that a line of text in a cell needs
const LETTER = 6.4; // and a letter of it, in width

/**
 * Cards as large as may be without touching.
 * @param {[number, number][]} places from 0 to 1
 * @param {string} layout
 * @param {number} pieces
 * @param {number} width
 * @param {number} height
 * @param {[number, number]} [letters] of the longest name of a piece, and of what it holds
 * @returns {Geometry}
 */
export function geometryOf(places, layout, pieces, width, height, letters = [1, 1]) {
  const round = layout === "circle" || layout === "star" || layout === "switch";
  const {side, centre} = round ? rounded(places, width, height)
    : layout === "trees" ? filling(places, width, height) : spread(places, width, height);
  const head = side >= 36 ? Math.max(11, side * 0.16) : side >= 24 ? 10 : 0;
  const inner = side - 2 * gap(side);
  const room = inner - head;
  const need = LETTER * (letters[0] + letters[1]) + 8;
  let columns = labelled(pieces, inner, room, need);
  const full = columns > 0;
  if (!full) columns = squares(pieces, inner, room);
  const [w, h] = [inner / columns, room / Math.ceil(pieces / columns)];
  const [wide, high] = full ? [Math.min(w, 3 * h), Math.min(w, h)] : [Math.min(w, h), Math.min(w, h)];
  const named = high >= 11 && letters[0] * Math.min(13, high * 0.7) * 0.6 < wide - 2;
  return {side, centre, columns, wide, high, cell: Math.min(wide, high), head,
    label: full ? "full" : named ? "name" : "", size: [width, height], ways: new Map()};
}

/**
 * Cards round a circle, which is drawn out where there is room beside it and they would be small.
 * @param {[number, number][]} places @param {number} width @param {number} height
 */
function rounded(places, width, height) {
  let best = {side: 0, centre: /** @type {[number, number][]} */ ([])};
  for (const stretch of STRETCHES) {
    const h = Math.min(height, width / stretch) - 8;
    const w = h * stretch;
    if (stretch > 1 && (height * stretch > width || best.side >= ENOUGH)) break;
    const found = filling(stretched(places, stretch), w + 8, h + 8, width, height);
    if (found.side > best.side) best = found;
  }
  return best;
}

/**
 * Cards up to the edges, in the middle of the whole picture.
 * @param {[number, number][]} places @param {number} w @param {number} h
 * @param {number} width @param {number} height of the whole
 */
function filling(places, w, h, width = w, height = h) {
  const side = largest(places, w - 8, h - 8, true);
  const [left, top] = [(width - w + side) / 2 + 4, (height - h + side) / 2 + 4];
  return {side, centre: places.map(([x, y]) =>
    /** @type {[number, number]} */ ([left + x * (w - 8 - side), top + y * (h - 8 - side)]))};
}

/** @param {[number, number][]} places @param {number} width @param {number} height */
function spread(places, width, height) {
  const [w, h] = [width - 8, height - 8];
  return {side: largest(places, w, h, false), centre: places.map(([x, y]) =>
    /** @type {[number, number]} */ ([4 + x * w, 4 + y * h]))};
}

/**
 * Points round a circle, so that they stand equally far apart when it is drawn out in width.
 * @param {[number, number][]} places @param {number} stretch @returns {[number, number][]}
 */
function stretched(places, stretch) {
  if (stretch === 1) return places;
  const steps = 720;
  const far = [0];
  for (let i = 0; i < steps; i += 1) {
    const turn = (2 * Math.PI * (i + 0.5)) / steps;
    far.push(far[i] + Math.hypot(stretch * Math.cos(turn), Math.sin(turn)));
  }
  return places.map(([x, y]) => {
    const turn = Math.atan2(x - 0.5, 0.5 - y) / (2 * Math.PI);
    const at = far.findIndex((sum) => sum >= (turn - Math.floor(turn)) * far[steps]);
    const [angle, r] = [(2 * Math.PI * at) / steps, Math.hypot(x - 0.5, y - 0.5)];
    return [0.5 + r * Math.sin(angle), 0.5 - r * Math.cos(angle)];
  });
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
  const left = x - (Math.min(g.columns, pieces) * g.wide) / 2;
  const top = y - g.side / 2 + g.head + (g.side - g.head - rows * g.high) / 2;
  return [left + (piece % g.columns) * g.wide, top + Math.floor(piece / g.columns) * g.high];
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
  const [column, row] = [Math.floor((x - left) / g.wide), Math.floor((y - top) / g.high)];
  const piece = row * g.columns + column;
  const inside = column >= 0 && column < g.columns && row >= 0 && piece < pieces;
  return {place, piece: inside ? piece : -1};
}

const BENDS = [1, 2.2, -1.6, 3.6, -2.9, -0.4]; // to the right; no two ways that meet have one

/**
 * The way of a move: a curve to the right of the straight line, so that two that meet are seen, or
 * another that runs over no card, or over fewer.
 * @param {Geometry} g
 * @param {number} src
 * @param {number} dst
 * @param {boolean} [clear] whether to look for a free one, which takes a while where there are many
 * @returns {Way}
 */
export function wayOf(g, src, dst, clear = true) {
  const key = src * g.centre.length + dst;
  const known = g.ways.get(key);
  if (known) return known;
  let [best, found] = [Infinity, curve(g, src, dst, 1)];
  for (const bend of clear ? BENDS : []) {
    const way = curve(g, src, dst, bend);
    const met = meets(g, way, src, dst);
    if (met < best) [best, found] = [met, way];
    if (!met) break;
  }
  g.ways.set(key, found);
  return found;
}

/** @param {Geometry} g @param {number} src @param {number} dst @param {number} much
 * @returns {Way} */
function curve(g, src, dst, much) {
  const [x0, y0] = g.centre[src];
  const [x1, y1] = g.centre[dst];
  const [dx, dy] = [x1 - x0, y1 - y0];
  const long = Math.hypot(dx, dy) || 1;
  const bend = much * Math.min(0.14 * long, Math.max(48, 1.3 * g.side));
  /** @type {[number, number]} */
  const middle = [(x0 + x1) / 2 - (dy / long) * bend, (y0 + y1) / 2 + (dx / long) * bend];
  return [edge(g, g.centre[src], middle), middle, edge(g, g.centre[dst], middle)];
}

/** How much of a way is outside the picture or over another card. @param {Geometry} g
 * @param {Way} way @param {number} src @param {number} dst */
function meets(g, way, src, dst) {
  let found = 0;
  const half = g.side / 2 + 1;
  for (let i = 1; i < 12; i += 1) {
    const [x, y] = along(way, i / 12);
    const out = x < 1 || y < 1 || x > g.size[0] - 1 || y > g.size[1] - 1;
    const met = g.centre.some(([u, v], at) => at !== src && at !== dst &&
      Math.abs(x - u) < half && Math.abs(y - v) < half);
    found += out ? 3 : Number(met);
  }
  return found;
}

/**
 * A point of a way.
 * @param {Way} way
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

/** Columns of cells with room for text; 0 where there is none.
 * @param {number} pieces @param {number} w @param {number} h @param {number} need in width */
function labelled(pieces, w, h, need) {
  let [best, size] = [0, 0];
  for (let columns = 1; columns <= Math.min(pieces, 8); columns += 1) {
    const [wide, high] = [w / columns, h / Math.ceil(pieces / columns)];
    if (wide >= need && high >= LINE && Math.min(wide, 2 * high) > size) {
      [best, size] = [columns, Math.min(wide, 2 * high)];
    }
  }
  return best;
}

/** Columns with which cells are the largest squares.
 * @param {number} pieces @param {number} w @param {number} h */
function squares(pieces, w, h) {
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
