// Advantages as bars: of each member before and after, and of all that passed, whose sum stays.
import { el } from "./inert.js";
import { signed } from "./numbers.js";
import { drawing, svg } from "./svg.js";
import { letter } from "./words.js";

const BAR = 180;

// Before above, outlined; after below, filled; zero where it is for all members of the group.
export function memberBar(member, members) {
  const values = members.filter((m) => m.valid).flatMap((m) => [m.before, m.after]);
  const low = Math.min(0, ...values);
  const high = Math.max(0, ...values);
  const span = high - low || 1;
  const x = (value) => 2 + ((value - low) / span) * (BAR - 4);
  if (!member.valid)
    return drawing(BAR, 26, "no advantage: it is left out",
      svg("rect", { class: "hatched", x: 1, y: 5, width: BAR - 2, height: 16, rx: 2 }),
      svg("text", { class: "inside", x: BAR / 2, y: 17, "text-anchor": "middle" }, "left out"));
  const bar = (value, y, kind) => svg("rect", { class: kind, x: Math.min(x(0), x(value)), y, width: Math.max(1, Math.abs(x(value) - x(0))), height: 8, rx: 1.5 });
  const sign = member.passed ? "up" : "down";
  return drawing(BAR, 26, `advantage before ${signed(member.before)}, after ${signed(member.after)}`,
    bar(member.before, 4, `before ${sign}`), bar(member.after, 14, `after ${sign}`),
    svg("line", { class: "zero", x1: x(0), x2: x(0), y1: 1, y2: 25 }));
}

// Two strips of one length: what each passing member has of the sum, before and after, and where it went.
export function sumStrips(group) {
  const won = group.members.map((member, number) => ({ member, number })).filter(({ member }) => member.passed);
  const ordered = won.sort((a, b) => (a.member.rank ?? 99) - (b.member.rank ?? 99) || a.number - b.number);
  const total = group.sum_before;
  if (!ordered.length || !(total > 0) || ordered.some(({ member }) => member.part_before < 0 || member.part_after < 0)) return null;
  const width = 1000;
  const scale = width / Math.max(total, group.sum_after);
  let before = 0;
  let after = 0;
  const shapes = ordered.map(({ member, number }) => {
    const [b, a] = [member.part_before * scale, member.part_after * scale];
    const name = letter(member, number);
    const colour = `tone${number % 8}`;
    const part = [
      svg("polygon", { class: `flow ${colour}`, points: [[before, 24], [before + b, 24], [after + a, 56], [after, 56]].map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" ") }),
      svg("rect", { class: `part ${colour}`, x: before, y: 2, width: b, height: 22 }),
      svg("rect", { class: `part ${colour}`, x: after, y: 56, width: a, height: 22 }),
      b > 22 ? svg("text", { class: "name", x: before + b / 2, y: 17.5, "text-anchor": "middle" }, name) : null,
      a > 22 ? svg("text", { class: "name", x: after + a / 2, y: 71.5, "text-anchor": "middle" }, name) : null,
      svg("title", {}, `${name}: ${signed(member.part_before)} before, ${signed(member.part_after)} after`),
    ];
    before += b;
    after += a;
    return svg("g", {}, ...part);
  });
  const what = group.preserve === "token" ? "advantage times tokens, over passing members" : "advantages of passing members";
  const kept = Math.abs(group.sum_before - group.sum_after) <= 1e-6 * Math.max(1, Math.abs(group.sum_before));
  const words = `Sum of ${what}: ${signed(group.sum_before, 4)} before, ${signed(group.sum_after, 4)} after`;
  return el("figure", { class: "sums" },
    el("figcaption", {}, el("b", {}, "The sum stays"), el("span", { class: "dim" }, what)),
    el("div", { class: "strip" },
      el("div", { class: "ends" }, el("span", {}, "before ", el("b", { class: "number" }, `Σ ${signed(group.sum_before, 4)}`)),
        el("span", {}, "after ", el("b", { class: "number" }, `Σ ${signed(group.sum_after, 4)}`))),
      drawing(width, 80, words, ...shapes),
      el("span", { class: kept ? "equal" : "unequal" }, kept ? "equal" : "differ")));
}
