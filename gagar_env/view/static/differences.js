// Where the patches of two candidates differ, word by word.
import { el } from "./inert.js";
import { counted } from "./numbers.js";
import { fileHead, inPieces, painted, SIGNS } from "./patch.js";
import { sideBySide } from "./compare.js";

const AROUND = 3;
const MOST_LINES = 4000;

export function differencesView(left, right, names) {
  const paths = [...new Set([...left.patch.files, ...right.patch.files].map((file) => file.path))];
  const one = (member, path) => member.patch.files.find((file) => file.path === path);
  const views = paths.map((path) => fileView(path, one(left, path), one(right, path), names));
  if (!paths.length) return el("p", { class: "nothing" }, "Neither made a change.");
  const equal = views.every((view) => view.equal);
  return el("div", { class: "differences" },
    el("p", { class: "dim" }, equal ? `The patches of ${names[0]} and ${names[1]} are the same.` : "Against each other, line by line: what the two patches do differently is marked word by word; what is the same is pale."),
    el("div", { class: "pairhead", "aria-hidden": "true" }, el("b", {}, names[0]), el("b", {}, names[1])),
    views.map((view) => view.node));
}

function fileView(path, left, right, names) {
  const lines = (file) => (file ? file.hunks.flatMap((hunk) => hunk.lines) : []);
  const [a, b] = [lines(left).slice(0, MOST_LINES), lines(right).slice(0, MOST_LINES)];
  const rows = sideBySide(a, b);
  const equal = rows.every((row) => row.same) && (left?.kind ?? "") === (right?.kind ?? "");
  const word = !left ? `only ${names[1]}` : !right ? `only ${names[0]}` : equal ? "the same in both" : "differs";
  const file = left && right ? { path, kind: word, added: Math.max(left.added, right.added), removed: Math.max(left.removed, right.removed) } : { ...(left ?? right), kind: word };
  const body = inPieces(el("div", { class: "codes pairs" }), folded(rows), rowView);
  return { equal, node: el("details", { class: "file", open: !equal }, fileHead(file), body) };
}

// Long stretches that are the same become one row.
function folded(rows) {
  const found = [];
  for (let i = 0; i < rows.length; ) {
    let end = i;
    while (end < rows.length && rows[end].same) end += 1;
    const [head, tail] = [i === 0 ? 0 : AROUND, end === rows.length ? 0 : AROUND];
    if (end - i > head + tail + 2) {
      found.push(...rows.slice(i, i + head), { gap: end - i - head - tail }, ...rows.slice(end - tail, end));
    } else found.push(...rows.slice(i, end));
    if (end < rows.length) found.push(rows[end]);
    i = end + 1;
  }
  return found;
}

function rowView(row) {
  if (row.gap) return el("div", { class: "gap" }, `${counted(row.gap)} lines the same`);
  return el("div", { class: row.same ? "pair equal" : "pair" }, cell(row.left, row.ranges?.[0]), cell(row.right, row.ranges?.[1]));
}

function cell(line, ranges) {
  if (!line) return el("div", { class: "line void" });
  return el("div", { class: `line ${SIGNS[line[0]]}` }, el("span", { class: "sign" }, line[0] === " " ? "\u00a0" : line[0]),
    el("code", {}, painted(line[1], line[4], ranges ?? [])));
}
