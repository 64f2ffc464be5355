// One group: what became of it, its members, and two of them side by side.
import { add, el, show } from "./inert.js";
import { sumStrips } from "./bars.js";
import { candidatesTable, ordered } from "./candidates.js";
import { differencesView } from "./differences.js";
import { gradingOf, valueView, verdictView, votesView } from "./grading.js";
import { signed } from "./numbers.js";
import { patchView } from "./patch.js";
import { load, MISSING } from "./source.js";
import { testsView } from "./tests.js";
import { showTurns, textView } from "./turns.js";
import { letter, REASONS, resultOf, WHY_DROPPED } from "./words.js";

export const TABS = ["patch", "differences", "trajectory", "tests", "grading", "record"];

export class GroupPage {
  constructor(place, moved) {
    this.place = place;
    this.moved = moved;
    this.turn = 0;
    this.tab = "patch";
    this.chosen = [0, 1];
  }

  // Shows a group; `chosen` and `tab` are kept from an address, or the best two and the tab that was open.
  async open(run, number, chosen, tab) {
    const turn = (this.turn += 1);
    const group = await load(`run/${run}/group/${number}`);
    if (turn !== this.turn) return;
    this.group = group;
    this.address = `run/${run}/group/${number}`;
    if (!group) {
      show(this.place, el("p", { class: "empty" }, `Group ${number}: ${MISSING}`));
      return;
    }
    const order = ordered(group);
    const last = group.members.length - 1;
    this.chosen = chosen?.every((one) => one >= 0 && one <= last) ? chosen : [order[0], order[Math.min(1, last)]];
    if (TABS.includes(tab)) this.tab = tab;
    this.draw();
  }

  draw() {
    const { group } = this;
    this.table = el("div", {});
    this.tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "What is shown of the two" });
    this.panel = el("div", { class: "panel", role: "tabpanel", id: "panel" });
    show(this.place, head(group), el("section", { class: "card", "aria-label": "Members" }, this.table, sumStrips(group) ?? noSum(group)),
      el("section", { class: "card", "aria-label": "Grading" }, el("h2", {}, "Grading"), verdictView(group), votesView(group.verdict)),
      el("section", { class: "card side-by-side", "aria-label": "Side by side" }, this.tabs, this.panel));
    this.drawChoice();
  }

  drawChoice() {
    const { group } = this;
    show(this.table, candidatesTable(group, this.chosen, (number, side) => this.choose(number, side)));
    show(this.tabs, TABS.map((name, at) => el("button", { type: "button", role: "tab", "aria-selected": name === this.tab ? "true" : "false", "aria-controls": "panel", "data-tab": name, on: { click: () => this.open_tab(name) } }, name[0].toUpperCase() + name.slice(1), " ", el("kbd", {}, String(at + 1)))));
    this.moved();
    return this.fill();
  }

  choose(number, side = 0) {
    const other = 1 - side;
    const next = [...this.chosen];
    if (next[other] === number && this.group.members.length > 1) next[other] = next[side];
    next[side] = number;
    this.chosen = next;
    return this.drawChoice();
  }

  step(by, side) {
    if (!this.group) return;
    const order = ordered(this.group);
    const at = order.indexOf(this.chosen[side]);
    let to = at + by;
    if (order[to] === this.chosen[1 - side]) to += by;
    if (order[to] !== undefined) this.choose(order[to], side);
  }

  open_tab(name) {
    if (!this.group) return;
    this.tab = name;
    this.drawChoice();
  }

  // Fills the panel with what is open, for the two that are chosen.
  async fill() {
    const turn = (this.turn += 1);
    const { group, tab } = this;
    const [one, two] = this.chosen;
    const pair = one === two ? [one] : [one, two];
    this.panel.setAttribute("aria-busy", "true");
    const needs = tab === "trajectory" || tab === "grading" ? pair.map(() => null) : await Promise.all(pair.map((number) => load(`${this.address}/member/${number}`)));
    if (turn !== this.turn) return;
    const names = pair.map((number) => letter(group.members[number], number));
    if (tab === "differences") {
      show(this.panel, pair.length < 2 ? el("p", { class: "nothing" }, "There is no other member to compare with.") : needs.every(Boolean) ? differencesView(...needs, names) : el("p", { class: "nothing" }, MISSING));
    } else {
      const panes = pair.map((number, at) => this.pane(number, needs[at], tab));
      show(this.panel, el("div", { class: `panes ${panes.length > 1 ? "two" : ""}` }, panes.map((pane) => pane.node)));
      await Promise.all(panes.map((pane) => pane.ready));
    }
    this.panel.removeAttribute("aria-busy");
  }

  pane(number, found, tab) {
    const member = this.group.members[number];
    const result = resultOf(member);
    const name = letter(member, number);
    const body = el("div", {});
    const node = el("article", { class: "pane", "aria-label": `Candidate ${name}` },
      el("h3", {}, el("span", { class: `pick tone${number % 8}` }, name), el("span", { class: `result ${result.kind}` }, `${result.glyph} ${result.word}`),
        member.rank === null ? null : el("span", { class: "tag" }, `rank ${member.rank + 1}`),
        member.valid ? el("span", { class: "number dim" }, `${signed(member.before)} → ${signed(member.after)}`) : null),
      member.passed || !result.why ? null : el("p", { class: result.kind === "none" ? "warn" : "dim" }, result.why), body);
    let ready = null;
    if (!member.there || (!found && tab !== "trajectory" && tab !== "grading")) show(body, el("p", { class: "nothing" }, member.there ? MISSING : "The file of this episode is not there."));
    else if (tab === "patch") show(body, flagsOf(member), patchView(found));
    else if (tab === "tests") show(body, testsView(found));
    else if (tab === "grading") show(body, gradingOf(member));
    else if (tab === "record") show(body, valueView(found.made_with));
    else ready = showTurns(body, `${this.address}/member/${number}`, 0, name);
    return { node, ready };
  }
}

function flagsOf(member) {
  if (!member.flags?.length) return null;
  return el("ul", { class: "flaglist" }, member.flags.map((flag) => el("li", {}, el("span", { class: "tag warn" }, `⚑ ${flag.kind}`), " ", flag.path ? el("code", {}, flag.path) : null, " ", flag.detail)));
}

function head(group) {
  const facts = [["group", group.group], ["seed", group.seed], ["attempt", group.attempt], ["ended", group.ended_at?.replace("T", " ").replace(/\+00:00$/, " UTC")], ["base", group.base],
    ["scheme", `${group.scheme}, strength ${group.strength}`], ["keeps the sum by", group.preserve]].filter(([, value]) => value !== null && value !== undefined);
  const node = el("header", { class: "group-head" },
    el("h1", {}, el("span", { class: "dim" }, `#${group.number}`), " ", group.task, " ", el("span", { class: `badge ${group.kept ? "kept" : "dropped"}` }, group.kept ? "kept" : `dropped: ${REASONS[group.reason] ?? group.reason}`)),
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))));
  if (!group.kept) add(node, [el("p", { class: "banner" }, WHY_DROPPED[group.reason] ?? "Nobody trains on this group.")]);
  if (group.fallback) add(node, [el("p", { class: "banner warn" }, "The ranking was not used, the advantages are the plain ones: ", group.fallback)]);
  if (group.statement.size) add(node, [el("details", { class: "statement" }, el("summary", {}, "Problem statement"), textView(group.statement, "statement", ""))]);
  return node;
}

function noSum(group) {
  return el("p", { class: "dim sums" }, group.comparable ? `Sum over passing members: ${signed(group.sum_before, 4)} before, ${signed(group.sum_after, 4)} after.` : "Nothing to add up.");
}
