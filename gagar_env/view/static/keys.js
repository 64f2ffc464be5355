// The keyboard.
import { el, show } from "./inert.js";

const KEYS = [
  ["j", "next group"], ["k", "group before"], ["→ ←", "next candidate on the left, and back"],
  ["Shift → ←", "the same on the right"], ["x", "swap left and right"], ["1 – 6", "patch, differences, trajectory, tests, grading, record"],
  ["o", "overview of the run"], ["r", "next run"], ["/", "search groups"], ["Esc", "leave the search, close this"], ["?", "this help"],
];

export function fillHelp(dialog) {
  show(dialog, el("h2", { id: "help-title" }, "Keys"),
    el("dl", { class: "keys" }, KEYS.map(([key, what]) => el("div", {}, el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)))),
    el("p", { class: "dim" }, "A click on a row of the table chooses the left candidate, with Shift the right one."),
    el("button", { type: "button", on: { click: () => dialog.close() } }, "Close"));
}

// Calls what belongs to a key, unless somebody is typing or a dialog is open.
export function listen(actions, dialog) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || dialog.open) return;
    const typing = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const name = event.shiftKey && event.key.startsWith("Arrow") ? `Shift ${event.key}` : event.key;
    const action = actions[name];
    if (!action) return;
    event.preventDefault();
    action();
  });
}
