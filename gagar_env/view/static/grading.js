// The verdict: tiers, reasons, the facts behind them, the votes.
import { el } from "./inert.js";
import { amount, counted, seconds } from "./numbers.js";
import { textView } from "./turns.js";

export function tiersLine(tiers) {
  return el("span", { class: "tiers" }, tiers.map((tier, number) => [
    number ? el("span", { class: "better", title: "better than" }, "›") : null,
    el("span", { class: "tier" }, tier.map((label, place) => [place ? el("span", { class: "dim", title: "as good as" }, "=") : null, el("b", {}, label)])),
  ]));
}

export function verdictView(group) {
  const { verdict } = group;
  if (!verdict) return el("p", { class: "dim" }, group.kept ? "No grader was asked: the advantages are the plain ones." : "Not graded.");
  const { usage } = verdict;
  const facts = [
    ["grader", [verdict.grader, verdict.model ? `, ${verdict.model}` : ""].join("")],
    ["outcome", verdict.cached ? `${verdict.outcome}, given before` : verdict.outcome],
    ["confidence", group.graded ? amount(verdict.confidence) : null],
    ["agreement", verdict.agreement === null ? null : amount(verdict.agreement)],
    ["calls", usage.calls ? `${usage.calls}${usage.failed_calls ? `, ${usage.failed_calls} failed` : ""}` : null],
    ["tokens", usage.calls ? `${counted(usage.prompt_tokens)} in, ${counted(usage.completion_tokens)} out` : null],
    ["cost", usage.calls ? (usage.cost_known ? amount(usage.cost_usd, "USD") : "price not known") : null],
    ["time", seconds(usage.seconds || group.seconds)],
  ].filter(([, value]) => value);
  return el("div", { class: "verdict" },
    verdict.tiers.length ? el("p", { class: "order" }, tiersLine(verdict.tiers)) : null,
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
    reasonsView(group),
    verdict.error ? el("p", { class: "warn" }, verdict.failure ? `${verdict.failure}: ${verdict.error}` : verdict.error) : null,
    verdict.warnings.map((line) => el("p", { class: "warn" }, line)));
}

// One line for each label that was ranked, in the order of ranks.
function reasonsView(group) {
  const said = new Map(group.members.filter((m) => m.grader_reason && m.rank !== null).sort((a, b) => a.rank - b.rank).map((m) => [m.label, m.grader_reason]));
  if (!said.size) return null;
  return el("dl", { class: "reasons", "aria-label": "Reasons of the grader" }, [...said].map(([label, reason]) => el("div", {}, el("dt", {}, label), el("dd", {}, reason))));
}

export function gradingOf(member) {
  const evidence = Object.entries(member.evidence);
  return el("div", { class: "grading" },
    member.grader_reason ? el("blockquote", {}, member.grader_reason) : el("p", { class: "nothing" }, member.passed ? (member.rank === null ? "Not ranked." : "The grader gave no reason.") : "Only members that passed are ranked."),
    evidence.length ? el("dl", { class: "evidence" }, evidence.map(([name, value]) => el("div", {}, el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, valueView(value))))) : null);
}

export function votesView(verdict) {
  if (!verdict?.votes.length) return null;
  return el("details", { class: "votes" }, el("summary", {}, `Votes: ${verdict.votes.length}`),
    verdict.votes.map((vote, number) => el("section", {},
      el("h4", {}, `Vote ${number + 1}`),
      vote.tiers.length ? el("p", { class: "order" }, tiersLine(vote.tiers)) : null,
      vote.failure ? el("p", { class: "warn" }, `${vote.failure}: ${vote.error}`) : null,
      vote.order.length ? el("p", { class: "dim" }, `shown in the order ${vote.order.join(", ")}`) : null,
      vote.looked_at.length ? el("details", {}, el("summary", {}, `Looked at: ${vote.looked_at.length}`), el("ul", { class: "plainlist" }, vote.looked_at.map((one) => el("li", {}, valueView(one))))) : null,
      vote.raw.size ? el("details", {}, el("summary", {}, "Raw reply"), textView(vote.raw, "reply", "")) : null)));
}

// Any JSON value as a small tree of text.
export function valueView(value) {
  if (value === null || value === undefined) return el("span", { class: "dim" }, "none");
  if (typeof value === "number") return el("span", { class: "number" }, amount(value));
  if (typeof value !== "object") return el("span", {}, String(value));
  if (Array.isArray(value)) return value.length ? el("ul", { class: "plainlist" }, value.map((item) => el("li", {}, valueView(item)))) : el("span", { class: "dim" }, "none");
  const entries = Object.entries(value);
  const numbers = entries.length > 1 && entries.every(([, item]) => typeof item === "number");
  const most = numbers ? Math.max(...entries.map(([, item]) => Math.abs(item)), 1e-9) : 0;
  return el("table", { class: "values" }, el("tbody", {}, entries.map(([name, item]) => el("tr", { class: item === 0 ? "dim" : "" },
    el("th", { scope: "row" }, name.replaceAll("_", " ")), el("td", {}, valueView(item)),
    numbers ? el("td", {}, el("meter", { class: "small", value: String(Math.abs(item) / most), "aria-label": name })) : null))));
}
