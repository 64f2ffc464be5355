// The groups of a run: filters, and a page of rows at a time.
import { el, show } from "./inert.js";
import { counted } from "./numbers.js";
import { drawing, svg } from "./svg.js";
import { plural, REASONS } from "./words.js";

const PAGE = 100;

export class GroupList {
  constructor(places, choose) {
    this.places = places;
    this.choose = choose;
    this.rows = [];
    this.found = [];
    this.chosen = null;
    this.page = 0;
    this.known = "";
    this.wanted = { text: "", state: "", task: "", flag: "" };
    this.search = el("input", { type: "search", placeholder: "Search task or group   /", "aria-label": "Search task or group", autocomplete: "off" });
    this.selects = { state: this.#select("state", "Kept or dropped"), task: this.#select("task", "Task"), flag: this.#select("flag", "Flags") };
    places.filters.append(this.search, ...Object.values(this.selects));
    places.filters.addEventListener("submit", (event) => event.preventDefault());
    this.search.addEventListener("input", () => this.#filter("text", this.search.value.toLowerCase()));
  }

  #select(name, label) {
    const select = el("select", { "aria-label": label });
    select.addEventListener("change", () => this.#filter(name, select.value));
    return select;
  }

  #filter(name, value) {
    this.wanted[name] = value;
    this.page = 0;
    this.draw();
  }

  // Takes rows as the answer has them: names once, then values.
  take(answer) {
    this.rows = answer.rows.map((values, number) => ({ number, ...Object.fromEntries(answer.names.map((name, at) => [name, values[at]])) }));
    this.#options();
    this.draw();
  }

  reset() {
    this.wanted = { text: "", state: "", task: "", flag: "" };
    this.search.value = "";
    this.page = 0;
    this.chosen = null;
    this.known = "";
  }

  #options() {
    const tally = (values) => [...values.reduce((all, value) => all.set(value, (all.get(value) ?? 0) + 1), new Map())].sort();
    const { rows } = this;
    const reasons = tally(rows.map((row) => row.reason).filter((reason) => reason !== "kept"));
    const flags = tally(rows.flatMap((row) => row.flags ?? []));
    const choices = {
      state: [["", "All groups", rows.length], ["kept", "Kept", rows.filter((row) => row.kept).length], ["dropped", "Dropped", rows.filter((row) => !row.kept).length],
        ...reasons.map(([reason, count]) => [`=${reason}`, `Dropped: ${REASONS[reason] ?? reason}`, count]),
        ["invalid", "With members without result", rows.filter((row) => row.valid < row.size).length], ["fallback", "Ranking not used", rows.filter((row) => row.fallback).length]],
      task: [["", "All tasks", null], ...tally(rows.map((row) => row.task))],
      flag: [["", "Flagged or not", null], ["any", "Any flag", rows.filter((row) => row.flags?.length).length], ["none", "No flag", rows.filter((row) => row.flags && !row.flags.length).length], ...flags.map(([flag, count]) => [`=${flag}`, flag, count])],
    };
    const known = JSON.stringify(choices);
    if (known === this.known) return;
    this.known = known;
    for (const [name, select] of Object.entries(this.selects)) {
      show(select, choices[name].map((choice) => {
        const [value, word, count] = choice.length === 2 ? [choice[0], choice[0], choice[1]] : choice;
        return el("option", { value, selected: value === this.wanted[name] }, count === null ? word : `${word} (${counted(count)})`);
      }));
    }
  }

  #fits(row) {
    const { text, state, task, flag } = this.wanted;
    return (!text || row.task.toLowerCase().includes(text) || row.group.toLowerCase().includes(text) || `#${row.number}` === text)
      && (!task || row.task === task)
      && (!state || (state === "kept" && row.kept) || (state === "dropped" && !row.kept) || state === `=${row.reason}` || (state === "invalid" && row.valid < row.size) || (state === "fallback" && row.fallback))
      && (!flag || (flag === "any" && row.flags?.length > 0) || (flag === "none" && row.flags?.length === 0) || Boolean(row.flags?.includes(flag.slice(1)) && flag[0] === "="));
  }

  draw() {
    this.found = this.rows.filter((row) => this.#fits(row));
    const pages = Math.max(1, Math.ceil(this.found.length / PAGE));
    this.page = Math.min(this.page, pages - 1);
    show(this.places.count, this.found.length === this.rows.length ? plural(this.rows.length, "group") : `${counted(this.found.length)} of ${plural(this.rows.length, "group")}`);
    show(this.places.groups, this.found.slice(this.page * PAGE, (this.page + 1) * PAGE).map((row) => this.#row(row)));
    const turn = (by) => () => {
      this.page += by;
      this.draw();
    };
    show(this.places.pager, pages < 2 ? null : [
      el("button", { type: "button", disabled: this.page === 0, on: { click: turn(-1) } }, "Earlier"),
      el("span", {}, `page ${this.page + 1} of ${pages}`),
      el("button", { type: "button", disabled: this.page + 1 >= pages, on: { click: turn(1) } }, "Later")]);
  }

  #row(row) {
    const here = row.number === this.chosen;
    const word = row.kept ? (row.fallback ? "plain" : row.tiers > 1 ? `${row.tiers} tiers` : row.tiers === 1 ? "tied" : "kept") : REASONS[row.reason] ?? row.reason;
    const button = el("button", { type: "button", class: `row ${row.kept ? "kept" : "dropped"}${here ? " here" : ""}`, "aria-current": here ? "true" : null, "data-group": String(row.number), on: { click: () => this.choose(row.number) } },
      el("span", { class: "at" }, `#${row.number}`),
      el("span", { class: "name" }, row.task),
      el("span", { class: "state" }, row.flags?.length ? el("span", { class: "flag", title: `flags: ${row.flags.join(", ")}` }, "⚑") : null, el("span", { class: row.fallback ? "tag warn" : "tag" }, word)),
      composition(row));
    return el("li", {}, button);
  }

  // The group that comes after the chosen one among those shown, or before it.
  step(by) {
    if (!this.found.length) return;
    const at = this.found.findIndex((row) => row.number === this.chosen);
    const to = at < 0 ? (by > 0 ? 0 : this.found.length - 1) : Math.min(this.found.length - 1, Math.max(0, at + by));
    this.choose(this.found[to].number);
  }

  // Marks a group as chosen and brings its row into view.
  mark(number) {
    this.chosen = number;
    const at = this.found.findIndex((row) => row.number === number);
    if (at >= 0) this.page = Math.floor(at / PAGE);
    this.draw();
    this.places.groups.querySelector(".here")?.scrollIntoView({ block: "nearest" });
  }
}

// A cell for each member: passed, failed, without a result.
function composition(row) {
  const count = Math.min(row.size, 64);
  const words = `${row.passed} passed, ${row.valid - row.passed} failed, ${row.size - row.valid} without result`;
  const kinds = [...Array(row.size).keys()].map((at) => (at < row.passed ? "pass" : at < row.valid ? "fail" : "none"));
  return drawing(count * 9, 8, words, kinds.slice(0, count).map((kind, at) => svg("rect", { class: `cell ${kind}`, x: at * 9, y: 0, width: 7.5, height: 8, rx: 1.5 })));
}
