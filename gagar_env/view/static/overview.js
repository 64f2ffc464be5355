// The first page of a run: numbers, curves, settings.
import { el, show } from "./inert.js";
import { chart } from "./chart.js";
import { valueView } from "./grading.js";
import { amount, counted } from "./numbers.js";
import { offline } from "./source.js";
import { plural, REASONS } from "./words.js";

export function showOverview(place, run, runs, choose) {
  const t = run.totals;
  const share = (part, whole) => (whole ? `${amount(part / whole, "%")}` : "–");
  const tile = (title, value, note, kind = "") => el("div", { class: `tile ${kind}` }, el("span", { class: "dim" }, title), el("b", {}, value), el("small", {}, note));
  const dropped = Object.entries(t.reasons).filter(([reason]) => reason !== "kept").map(([reason, count]) => `${count} ${REASONS[reason] ?? reason}`);
  const cost = t.cost_usd > 0 ? amount(t.cost_usd, "USD") : t.grader_tokens ? amount(t.grader_tokens) : "0";
  show(place,
    el("h1", {}, run.name),
    run.read < run.groups ? el("p", { class: "banner" }, el("progress", { "aria-label": "episodes read", value: String(run.read / run.groups) }), ` Reading episodes: ${counted(run.read)} of ${counted(run.groups)} groups so far. Lengths, sizes and flags follow.`) : null,
    run.unreadable ? el("p", { class: "banner warn" }, `${plural(run.unreadable, "line")} of groups.jsonl cannot be read and ${run.unreadable === 1 ? "is" : "are"} left out.`) : null,
    el("div", { class: "tiles" },
      tile("Groups", counted(run.groups), `${counted(t.episodes)} episodes`),
      tile("Pass rate", share(t.passed, t.valid), `${counted(t.passed)} of ${counted(t.valid)} valid`),
      tile("Kept", share(t.kept, run.groups), dropped.length ? `dropped: ${dropped.join(", ")}` : "none dropped"),
      tile("Ranked", counted(t.graded), t.fallbacks ? `${plural(t.fallbacks, "fallback")} to plain advantages` : "groups, no fallback", t.fallbacks ? "warn" : ""),
      tile("No result", counted(t.invalid), "invalid or masked: not zeros", t.invalid ? "warn" : ""),
      tile("Flagged", counted(t.flagged), "groups with a flag", t.flagged ? "warn" : ""),
      tile("Grading cost", cost, t.cost_usd > 0 ? "where prices are known" : "tokens of graders")),
    run.failures.length ? el("details", { class: "banner warn" }, el("summary", {}, `${plural(run.failures.length, "group")} could not be run`), el("ul", { class: "plainlist" }, run.failures.map((f) => el("li", {}, `${f.task_id}: ${f.error}`)))) : null,
    run.groups ? null : el("p", { class: "empty" }, offline ? "No group was written." : "No group is written yet. This page looks again by itself."),
    el("h2", {}, "Over the run", run.per_point > 1 ? el("small", { class: "dim" }, `each point: ${run.per_point} groups`) : null),
    el("div", { class: "charts" }, run.curves.map((curve) => chart(curve))),
    run.metrics.length ? [el("h2", {}, "Logged", el("small", { class: "dim" }, plural(run.steps, "step"))), el("div", { class: "charts" }, run.metrics.map((curve) => chart(curve, "step")))] : null,
    Object.keys(run.settings).length ? el("details", { class: "settings" }, el("summary", {}, "Settings of the run"), valueView(run.settings)) : null,
    runs.length > 1 ? [el("h2", {}, "Runs"), el("ul", { class: "runs" }, runs.map((one, number) => el("li", {}, el("button", { type: "button", class: one.name === run.name ? "here" : "", on: { click: () => choose(number) } }, one.name))))] : null);
}
