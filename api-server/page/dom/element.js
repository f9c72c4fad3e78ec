// Elements are made here, and texts only ever become text nodes: nothing of a mail is parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** An HTML element: attributes by name, listeners in `on`, then its children. */
export const element = (name, properties = {}, ...children) => fill(document.createElement(name), properties, children);

/** An SVG element. */
export const svg = (name, properties = {}, ...children) =>
  fill(document.createElementNS(SVG, name), properties, children);

let ids = 0;

/** An id that no other element has, for labels and descriptions. */
export const uniqueId = (prefix) => `${prefix}-${(ids += 1)}`;

/** A button that does not submit. */
export const button = (properties, ...children) => element("button", { type: "button", ...properties }, ...children);

/** Text for screen readers only. */
export const hiddenText = (text) => element("span", { class: "visually-hidden" }, text);
