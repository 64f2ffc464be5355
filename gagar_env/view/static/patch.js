// A patch: files, hunks, lines with syntax colours; long ones in pieces.
import { add, el, inert } from "./inert.js";
import { counted } from "./numbers.js";

const FIRST_LINES = 250;
const MORE_LINES = 1000;

// A text cut at the borders of colour spans and of marked ranges, so that both show.
export function painted(text, spans, ranges = []) {
  const borders = new Set([0, text.length]);
  for (let i = 0; i < spans.length; i += 3) borders.add(spans[i]).add(spans[i] + spans[i + 1]);
  for (const [start, end] of ranges) borders.add(start).add(end);
  const cuts = [...borders].filter((at) => at >= 0 && at <= text.length).sort((a, b) => a - b);
  const nodes = [];
  let span = 0;
  for (let i = 0; i + 1 < cuts.length; i += 1) {
    const [start, end] = [cuts[i], cuts[i + 1]];
    while (span < spans.length && spans[span] + spans[span + 1] <= start) span += 3;
    const colour = span < spans.length && spans[span] <= start ? `t-${spans[span + 2]}` : "";
    const marked = ranges.some(([from, to]) => from <= start && end <= to) ? "word" : "";
    const part = text.slice(start, end);
    const classes = `${colour} ${marked}`.trim();
    if (classes) nodes.push(el("span", { class: classes }, part));
    else nodes.push(...inert(part));
  }
  return nodes;
}

export const SIGNS = { "+": "added", "-": "removed", " ": "same", "\\": "remark" };

export function lineView([sign, text, old, fresh, spans, left], ranges) {
  return el("div", { class: `line ${SIGNS[sign]}` },
    el("span", { class: "at" }, String(fresh ?? old ?? "")),
    el("span", { class: "sign" }, sign === " " ? "\u00a0" : sign),
    el("code", {}, painted(text, spans, ranges), left ? el("em", { class: "cut" }, ` ${counted(left)} more characters`) : null));
}

// Puts in as many lines as can be shown at once, and a button for the next ones.
export function inPieces(place, items, draw, first = FIRST_LINES) {
  const step = (from, count) => {
    add(place, items.slice(from, from + count).map(draw));
    const left = items.length - from - count;
    if (left <= 0) return;
    const button = el("button", { type: "button", class: "more" }, `Show ${counted(Math.min(left, MORE_LINES))} of ${counted(left)} more lines`);
    button.addEventListener("click", () => {
      button.remove();
      step(from + count, MORE_LINES);
    });
    place.append(button);
  };
  step(0, first);
  return place;
}

export function fileHead(file) {
  return el("summary", {}, el("span", { class: "path" }, file.path || "(no name)"),
    file.kind === "modified" ? null : el("span", { class: "tag" }, file.kind),
    el("span", { class: "plus" }, `+${counted(file.added)}`), el("span", { class: "minus" }, `\u2212${counted(file.removed)}`));
}

export function patchView(member) {
  const { patch } = member;
  if (!patch.size) return el("p", { class: "nothing" }, "No change was made.");
  const files = patch.files.map((file, number) => {
    const rows = file.hunks.flatMap((hunk) => [{ head: hunk.head }, ...hunk.lines]);
    const code = inPieces(el("div", { class: "codes" }), rows, (row) => (row.head === undefined ? lineView(row) : el("div", { class: "hunk" }, row.head)));
    if (!rows.length) add(code, [el("p", { class: "nothing" }, file.kind === "binary" ? "Binary content." : "No lines changed.")]);
    return el("details", { class: "file", open: number < 20 }, fileHead(file), code);
  });
  return el("div", { class: "patch" }, files,
    patch.left ? el("p", { class: "cut" }, `${counted(patch.left)} of ${counted(patch.size)} bytes of this patch are not shown.`) : null,
    patch.files.length ? null : el("p", { class: "nothing" }, `${counted(patch.size)} bytes that are no patch.`),
    droppedView(member));
}

function droppedView(member) {
  if (!member.dropped.length) return null;
  return el("details", { class: "file" }, el("summary", {}, `Changed paths that are not part of the patch: ${member.dropped.length + member.dropped_left}`),
    el("ul", { class: "plainlist" }, member.dropped.map((d) => el("li", {}, el("code", {}, d.path), ` ${d.reason}, ${counted(d.size_bytes)} bytes`))));
}
