// A trajectory, a page of turns at a time; long texts piece by piece.
import { el, show } from "./inert.js";
import { counted, seconds, signed } from "./numbers.js";
import { load, MISSING } from "./source.js";

// Fills a place with a page of turns of a member.
export async function showTurns(place, address, page, name) {
  const found = await load(`${address}/turns/${page}`);
  if (!found) {
    show(place, el("p", { class: "nothing" }, MISSING));
    return;
  }
  const go = (to) => async () => {
    await showTurns(place, address, to, name);
    place.querySelector("button, .turn")?.focus();
  };
  const pager = () => (found.pages < 2 ? null : el("div", { class: "pager" },
    el("button", { type: "button", disabled: page === 0, on: { click: go(page - 1) } }, "Earlier"),
    el("span", {}, `turns ${found.list[0]?.turn ?? 0}\u2013${found.list[found.list.length - 1]?.turn ?? 0} of ${counted(found.turns)}`),
    el("button", { type: "button", disabled: page + 1 >= found.pages, on: { click: go(page + 1) } }, "Later")));
  show(place, pager(),
    found.first && found.first.size ? el("details", { class: "turn first" }, el("summary", {}, "What it was shown first"), textView(found.first, "first observation", `${address}/turn/0/observation`)) : null,
    found.list.map((turn) => turnView(turn, address)),
    found.list.length ? null : el("p", { class: "nothing" }, "No turn was taken."), pager());
}

function turnView(turn, address) {
  const facts = [seconds(turn.seconds), turn.completion_tokens ? `${counted(turn.completion_tokens)} tokens` : ""].filter(Boolean).join(", ");
  const bad = turn.timed_out || (turn.exit_code !== null && turn.exit_code !== 0);
  return el("section", { class: `turn ${turn.mark}`, "aria-label": `Turn ${turn.turn}` },
    el("header", {}, el("b", {}, `Turn ${turn.turn}`),
      turn.mark ? el("span", { class: `tag mark-${turn.mark}` }, turn.mark) : null,
      turn.advantage === null ? null : el("span", { class: "number dim", title: "advantage of this turn" }, signed(turn.advantage)),
      el("span", { class: "dim" }, facts),
      turn.exit_code === null && !turn.timed_out ? null : el("span", { class: bad ? "tag fail" : "tag" }, turn.timed_out ? "timed out" : `exit ${turn.exit_code}`)),
    textView(turn.action, "action", `${address}/turn/${turn.turn}/action`),
    textView(turn.observation, "observation", `${address}/turn/${turn.turn}/observation`));
}

// A text with its middle left out, and a button that brings it in pieces.
export function textView(text, kind, address) {
  const box = el("div", { class: `text ${kind.split(" ").pop()}` });
  const pre = (...content) => el("pre", { tabindex: "0", "aria-label": kind }, ...content);
  if (!text.size) {
    box.append(el("p", { class: "nothing" }, `no ${kind}`));
    return box;
  }
  if (!text.left) {
    box.append(pre(text.head));
    return box;
  }
  const rest = el("button", { type: "button", class: "more" }, `${counted(text.left)} of ${counted(text.size)} characters are left out: show`);
  const open = async (piece) => {
    const found = address ? await load(`${address}/${piece}`) : null;
    if (!found) {
      rest.replaceWith(el("p", { class: "cut" }, `${counted(text.left)} of ${counted(text.size)} characters are left out.`));
      return;
    }
    const to = (number, word) => el("button", { type: "button", disabled: number < 0 || number >= found.pieces, on: { click: () => open(number) } }, word);
    show(box, found.pieces > 1 ? el("div", { class: "pager" }, to(piece - 1, "Before"), el("span", {}, `piece ${piece + 1} of ${found.pieces}, ${counted(found.size)} characters`), to(piece + 1, "After")) : null, pre(found.text));
  };
  rest.addEventListener("click", () => open(0));
  box.append(pre(text.head), rest, pre(text.tail));
  return box;
}
