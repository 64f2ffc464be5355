// What agents and models wrote is only ever text. All elements of the page are made here, and all text passes here.

// Sequences for terminals are one mark each; controls, direction marks and other invisible characters one each.
const ODD =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]{0,400}(?:\u0007|\u001b\\))|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udc7f]/g;

const NAMES = {
  0x00ad: "soft hyphen", 0x061c: "Arabic letter mark", 0x200b: "zero width space", 0x200c: "zero width non-joiner",
  0x200d: "zero width joiner", 0x200e: "left-to-right mark", 0x200f: "right-to-left mark", 0x2028: "line separator",
  0x2029: "paragraph separator", 0x202a: "left-to-right embedding", 0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting", 0x202d: "left-to-right override", 0x202e: "right-to-left override",
  0x2060: "word joiner", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate",
  0x2068: "first strong isolate", 0x2069: "pop directional isolate", 0xfeff: "byte order mark",
};

function shownAs(odd) {
  const code = odd.codePointAt(0);
  if (odd.length > 1 && code === 0x1b) return `ESC${[...odd.slice(1)].map((c) => (c < " " ? "·" : c)).join("")}`;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function nameOf(odd) {
  const code = odd.codePointAt(0);
  if (odd.length > 1 && code === 0x1b) return "a sequence for terminals";
  return NAMES[code] ?? `control or invisible character U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

// For attributes: the same text with what cannot be seen spelled out.
export function spelled(text) {
  return String(text).replace(ODD, (odd) => `[${shownAs(odd)}]`);
}

// Text nodes, with a visible mark in the place of each character that is not to be seen.
export function inert(text) {
  const whole = String(text);
  const nodes = [];
  let last = 0;
  for (const match of whole.matchAll(ODD)) {
    if (match.index > last) nodes.push(document.createTextNode(whole.slice(last, match.index)));
    const mark = document.createElement("span");
    mark.className = "odd";
    mark.title = nameOf(match[0]);
    mark.textContent = shownAs(match[0]);
    nodes.push(mark);
    last = match.index + match[0].length;
  }
  if (last < whole.length || !nodes.length) nodes.push(document.createTextNode(whole.slice(last)));
  return nodes;
}

const ATTRIBUTES = new Set(["class", "title", "type", "value", "for", "id", "name", "role", "scope", "colspan",
  "placeholder", "tabindex", "hidden", "disabled", "selected", "open", "autocomplete"]);

// An element. Strings among the children are text; `on` holds listeners; only known attributes are set.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    else if (ATTRIBUTES.has(name) || name.startsWith("aria-") || name.startsWith("data-"))
      node.setAttribute(name, value === true ? "" : spelled(value));
    else throw new Error(`attribute ${name} is not set by this page`);
  }
  add(node, children);
  return node;
}

export function add(node, children) {
  for (const child of children.flat(3)) {
    if (child === undefined || child === null || child === false) continue;
    if (child instanceof Node) node.append(child);
    else node.append(...inert(child));
  }
  return node;
}

export function show(node, ...children) {
  node.replaceChildren();
  return add(node, children);
}
