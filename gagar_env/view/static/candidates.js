// All members of a group in one table: result, rank, work, weight, advantage before and after, flags.
import { el } from "./inert.js";
import { memberBar } from "./bars.js";
import { amount, counted, signed } from "./numbers.js";
import { letter, resultOf, STATUSES } from "./words.js";

// Best first: by rank, then what passed unranked, what failed, what has no result.
export function ordered(group) {
  const place = (member) => (member.rank !== null ? member.rank : member.passed ? 500 : member.valid ? 1000 : 2000);
  return group.members.map((_, number) => number).sort((a, b) => place(group.members[a]) - place(group.members[b]) || a - b);
}

export function candidatesTable(group, chosen, choose) {
  const heads = ["candidate", "result", "reward", "rank", "tests", "patch", "turns", "weight", "advantage before and after", "flags"];
  return el("div", { class: "wide" }, el("table", { class: "candidates" },
    el("caption", { class: "unseen" }, "Members of the group, best first. Click chooses one, with Shift the one it is compared with."),
    el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, ordered(group).map((number) => row(group, number, chosen, choose)))));
}

function row(group, number, chosen, choose) {
  const member = group.members[number];
  const result = resultOf(member);
  const side = number === chosen[0] ? "first" : number === chosen[1] ? "second" : "";
  const pick = el("button", { type: "button", class: `pick tone${number % 8}`, "aria-pressed": side ? "true" : "false", "data-member": String(number) }, letter(member, number));
  const node = el("tr", { class: `${result.kind} ${side}` },
    el("th", { scope: "row" }, pick, member.twin ? el("span", { class: "dim", title: "the same patch as another member: one candidate for the grader" }, "same patch") : null,
      side ? el("span", { class: "side-mark" }, side === "first" ? "left" : "right") : null),
    el("td", {}, el("span", { class: `result ${result.kind}`, title: result.why }, `${result.glyph} ${result.word}`),
      member.status && member.status !== "submitted" && member.status !== result.word ? el("span", { class: "tag" }, STATUSES[member.status] ?? member.status) : null),
    el("td", { class: "number" }, result.reward),
    el("td", { class: "number" }, member.rank === null ? el("span", { class: "dim" }, "–") : String(member.rank + 1)),
    el("td", { class: "number" }, member.tests ? `${counted(member.tests_passed)}/${counted(member.tests)}` : "–"),
    el("td", { class: "number" }, member.there ? [el("span", { class: "plus" }, `+${counted(member.added)}`), " ", el("span", { class: "minus" }, `\u2212${counted(member.removed)}`)] : "–"),
    el("td", { class: "number" }, member.there ? counted(member.turns) : "–"),
    el("td", { class: "number" }, member.rank === null ? el("span", { class: "dim" }, "–") : amount(member.weight)),
    el("td", { class: "bars" }, memberBar(member, group.members),
      member.valid ? el("span", { class: "number" }, el("span", { class: "dim" }, signed(member.before)), " → ", el("b", {}, signed(member.after))) : null),
    el("td", { class: "flags" }, member.flags?.map((flag) => el("span", { class: "tag warn", title: [flag.path, flag.detail].filter(Boolean).join(": ") }, `⚑ ${flag.kind}`)), member.flags_left ? `and ${member.flags_left} more` : null));
  node.addEventListener("click", (event) => choose(number, event.shiftKey ? 1 : 0));
  return node;
}
