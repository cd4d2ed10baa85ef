// @ts-check
import {el} from "./dom.js";

/**
 * Hand the reader a file.
 * @param {string} name
 * @param {Blob} blob
 */
export function saveBlob(name, blob) {
  const url = URL.createObjectURL(blob);
  el("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * Save an SVG picture.
 * @param {string} name without its ending
 * @param {string} svg
 */
export function saveSvg(name, svg) {
  saveBlob(`${name}.svg`, new Blob([svg], {type: "image/svg+xml"}));
}

/**
 * Save an SVG picture as PNG, twice as many pixels each way.
 * @param {string} name without its ending
 * @param {string} svg
 * @param {number} width
 * @param {number} height
 */
export async function savePng(name, svg, width, height) {
  const picture = new Image();
  picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
  await picture.decode();
  const canvas = el("canvas", {width: 2 * width, height: 2 * height});
  canvas.getContext("2d").drawImage(picture, 0, 0, 2 * width, 2 * height);
  canvas.toBlob((/** @type {Blob} */ blob) => saveBlob(`${name}.png`, blob));
}
