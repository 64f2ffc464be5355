// Elements of drawings, under the same rule as those of text.
import { add, spelled } from "./inert.js";

const SPACE = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes))
    if (value !== undefined && value !== null) node.setAttribute(name, typeof value === "number" ? round(value) : spelled(value));
  return add(node, children);
}

function round(value) {
  return String(Math.round(value * 100) / 100);
}

// A drawing that says in words what it shows.
export function drawing(width, height, words, ...children) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words, class: "drawing" },
    svg("title", {}, words), ...children);
}
