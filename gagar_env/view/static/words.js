// What codes of the record are called on the page.

export const REASONS = {
  kept: "kept",
  all_passed: "all passed",
  all_failed: "all failed",
  too_few_valid: "too few valid",
  equal_returns: "equal returns",
};

export const WHY_DROPPED = {
  all_passed: "Every valid member passed its tests: there is nothing to tell apart, and nobody trains on this group.",
  all_failed: "No valid member passed its tests: there is nothing to tell apart, and nobody trains on this group.",
  too_few_valid: "Fewer than two members have a test result: there is nothing to compare, and nobody trains on this group.",
  equal_returns: "All returns are equal: there is nothing to tell apart, and nobody trains on this group.",
};

// One word, one class and one sentence for a member. Invalid is not zero: it has no reward at all.
export function resultOf(member) {
  if (member.valid)
    return member.passed
      ? { word: "passed", kind: "pass", glyph: "✓", reward: "1", why: "the official tests passed" }
      : { word: "failed", kind: "fail", glyph: "✗", reward: "0", why: member.why || "the official tests failed" };
  if (member.outcome === "masked")
    return { word: "masked", kind: "none", glyph: "∅", reward: "none",
      why: member.error || member.why || "it passed, but its flags leave it out" };
  return { word: member.status && member.status !== "submitted" ? member.status : "invalid", kind: "none", glyph: "∅",
    reward: "none", why: member.error || member.why || (member.there ? "it has no test result" : "its file is not there") };
}

export const STATUSES = {
  submitted: "submitted",
  turn_limit: "turn limit",
  time_limit: "time limit",
  policy_limit: "policy limit",
  cut: "cut from outside",
  error: "infrastructure error",
};

export function letter(member, number) {
  return member.label ?? `#${number + 1}`;
}

export function plural(number, word) {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
