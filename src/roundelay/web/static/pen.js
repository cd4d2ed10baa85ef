// @ts-check

/**
 * What a picture is drawn with: on a canvas, or as SVG text. A path is SVG's.
 * @typedef {object} Look
 * @property {string} [fill]
 * @property {string} [stroke]
 * @property {number} [width] of the stroke
 * @property {number[]} [dash]
 * @property {number} [alpha]
 *
 * @typedef {object} Pen
 * @property {(x: number, y: number, w: number, h: number, r: number, look: Look) => void} box
 * @property {(d: string, look: Look) => void} path
 * @property {(x: number, y: number, r: number, look: Look) => void} dot
 * @property {(x: number, y: number, text: string, size: number, look: Look,
 *   align?: CanvasTextAlign, bold?: boolean) => void} text its middle is at y
 */

const FONT = '"Inter", system-ui, "Noto Sans", "Noto Sans CJK SC", sans-serif';

/**
 * @param {CanvasRenderingContext2D} on
 * @returns {Pen}
 */
export function canvasPen(on) {
  /** @param {Path2D} path @param {Look} look */
  const paint = (path, look) => {
    on.globalAlpha = look.alpha ?? 1;
    if (look.fill) {
      on.fillStyle = look.fill;
      on.fill(path);
    }
    if (look.stroke) {
      on.strokeStyle = look.stroke;
      on.lineWidth = look.width ?? 1;
      on.setLineDash(look.dash ?? []);
      on.stroke(path);
    }
    on.globalAlpha = 1;
  };
  return {
    box(x, y, w, h, r, look) {
      if (!r && look.fill && !look.stroke) {
        on.globalAlpha = look.alpha ?? 1;
        on.fillStyle = look.fill;
        on.fillRect(x, y, w, h);
        on.globalAlpha = 1;
        return;
      }
      const path = new Path2D();
      path.roundRect(x, y, w, h, r);
      paint(path, look);
    },
    path: (d, look) => paint(new Path2D(d), look),
    dot(x, y, r, look) {
      const path = new Path2D();
      path.arc(x, y, r, 0, 2 * Math.PI);
      paint(path, look);
    },
    text(x, y, text, size, look, align = "center", bold = false) {
      on.globalAlpha = look.alpha ?? 1;
      on.font = `${bold ? 600 : 400} ${size}px ${FONT}`;
      on.textAlign = align;
      on.textBaseline = "middle";
      on.fillStyle = look.fill ?? "#000";
      on.fillText(text, x, y + size * 0.04);
      on.globalAlpha = 1;
    },
  };
}

/**
 * A pen that writes SVG, and what gives the whole picture.
 * @param {number} width
 * @param {number} height
 * @param {string} ground
 * @returns {{pen: Pen, picture: (title: string) => string}}
 */
export function svgPen(width, height, ground) {
  /** @type {string[]} */
  const parts = [];
  const safe = (/** @type {string} */ text) =>
    text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const short = (/** @type {number} */ x) => Number(x.toFixed(2));
  const add = (/** @type {string} */ tag, /** @type {Record<string, any>} */ at, inside = "") => {
    const listed = Object.entries(at).filter(([, v]) => v !== undefined)
      .map(([k, v]) => ` ${k}="${typeof v === "number" ? short(v) : safe(String(v))}"`);
    parts.push(`<${tag}${listed.join("")}${inside ? `>${inside}</${tag}>` : "/>"}`);
  };
  const looks = (/** @type {Look} */ look) => ({
    fill: look.fill ?? "none", stroke: look.stroke, "stroke-width": look.width,
    "stroke-dasharray": look.dash?.join(" "), opacity: look.alpha,
  });
  const anchor = {left: "start", start: "start", right: "end", end: "end", center: "middle"};
  return {
    pen: {
      box: (x, y, w, h, r, look) => add("rect", {x, y, width: w, height: h, rx: r, ...looks(look)}),
      path: (d, look) => add("path", {d, ...looks(look)}),
      dot: (cx, cy, r, look) => add("circle", {cx, cy, r, ...looks(look)}),
      text: (x, y, text, size, look, align = "center", bold = false) =>
        add("text", {x, y: y + size * 0.36, "font-size": size, "font-family": FONT,
          "font-weight": bold ? 600 : undefined, "text-anchor": anchor[align], ...looks(look)},
        safe(text)),
    },
    picture: (title) =>
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
      `viewBox="0 0 ${width} ${height}" role="img"><title>${safe(title)}</title>` +
      `<rect width="100%" height="100%" fill="${ground}"/>${parts.join("")}</svg>\n`,
  };
}
