// @ts-check

/**
 * An element with attributes and children. Keys that begin with "on" are listeners; true sets an
 * empty attribute, and false, null or undefined none.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      if (value) made.addEventListener(name.slice(2), value);
    } else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, String(value));
  }
  made.append(...children);
  return made;
}

/**
 * A select with a label around it.
 * @param {string} label
 * @param {[string, string][]} options value and text of each
 * @param {string} chosen
 * @param {(value: string) => void} changed
 * @returns {HTMLLabelElement}
 */
export function choice(label, options, chosen, changed) {
  const listed = options.map(([value, text]) =>
    el("option", {value, selected: value === chosen}, text));
  const select = el("select", {onchange: () => changed(select.value)}, ...listed);
  return el("label", {class: "field"}, el("span", {}, label), select);
}

/**
 * An input with a label around it, which answers when it is left or Enter is pressed.
 * @param {string} label
 * @param {Record<string, any>} attributes
 * @param {(value: string) => void} changed
 * @returns {HTMLLabelElement}
 */
export function field(label, attributes, changed) {
  const input = el("input", {...attributes, onchange: () => changed(input.value)});
  return el("label", {class: "field"}, el("span", {}, label), input);
}

/**
 * A button.
 * @param {string} text
 * @param {() => void} pressed
 * @param {Record<string, any>} [attributes]
 * @returns {HTMLButtonElement}
 */
export function button(text, pressed, attributes = {}) {
  return el("button", {type: "button", onclick: pressed, ...attributes}, text);
}
