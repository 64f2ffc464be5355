// What the official tests said of a member.
import { el } from "./inert.js";
import { counted, seconds } from "./numbers.js";
import { textView } from "./turns.js";

const GLYPHS = { passed: "✓", failed: "✗", error: "!", missing: "?", skipped: "–", xfailed: "–", xpassed: "✓" };
const OPEN = 40;

export function testsView(member) {
  const { report } = member;
  if (!report) return el("p", { class: "nothing" }, "There is no verification: this member has no result, which is not a zero.");
  const facts = [
    ["outcome", report.outcome], ["reason", report.reason], ["evidence", report.evidence],
    ["exit code", report.timed_out ? "timed out" : report.exit_code], ["score", report.score],
    ["attempts", report.attempts > 1 ? report.attempts : null], ["time", seconds(report.seconds)],
  ].filter(([, value]) => value !== null && value !== "" && value !== undefined);
  const [first, rest] = [report.tests.slice(0, OPEN), report.tests.slice(OPEN)];
  return el("div", { class: "tests" },
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, String(value))))),
    report.tests.length ? el("table", { class: "list" },
      el("thead", { class: "unseen" }, el("tr", {}, ["status", "test", "time"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, first.map(testRow))) : el("p", { class: "nothing" }, "No single test is recorded."),
    rest.length ? el("details", {}, el("summary", {}, `${counted(rest.length)} more`), el("table", { class: "list" }, el("tbody", {}, rest.map(testRow)))) : null,
    report.tests_left ? el("p", { class: "cut" }, `${counted(report.tests_left)} more tests are not shown.`) : null,
    report.ignored.length ? el("details", {}, el("summary", {}, `Paths that the official ones replaced: ${report.ignored.length}`), el("ul", { class: "plainlist" }, report.ignored.map((path) => el("li", {}, el("code", {}, path))))) : null,
    report.output.size ? el("details", {}, el("summary", {}, "End of the output"), textView(report.output, "output", "")) : null);
}

function testRow(test) {
  const good = test.status === "passed" || test.status === "xpassed";
  return el("tr", { class: test.unmet ? "unmet" : "" },
    el("td", { class: `status ${good ? "pass" : test.unmet ? "fail" : "dim"}` }, `${GLYPHS[test.status] ?? "?"} ${test.status}`),
    el("td", {}, el("code", {}, test.id), test.unmet ? el("span", { class: "tag" }, "required") : null, test.message ? el("pre", { class: "message" }, test.message) : null),
    el("td", { class: "number dim" }, seconds(test.seconds)));
}
