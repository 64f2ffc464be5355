"""What the rule grader measures on the text of a change. Amounts are >= 0, and 0 is best.

Everything is counted against the base tree: what was there before is nobody's fault here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from gagar_env.agents.graders.rule_sources import WORD, global_names, is_code, is_scratch
from gagar_env.agents.graders.rule_work import WINDOW, Amount, Change, Work, changed_lines, windows

_MARKER = re.compile(r"\b(TODO|FIXME|XXX|HACK|DEBUG)\b|\b(remove|delete) (this|before|me|later)\b")
_PRINT = re.compile(r"(?<![\w.])(pprint|pp|print|ic)\s*\(")
_BREAK = re.compile(r"\b(breakpoint\s*\(|i?pdb\b|set_trace\s*\()")
_DEBUG_LOG = re.compile(r"\b_?log(ger|ging)?\.debug\s*\(", re.IGNORECASE)


def scope(work: Work) -> Amount:
    """Files changed that the task does not concern.

    Added tests and added documentation are in scope. A changed line of other documentation or of an
    existing test is half a file. A file that only supports the change (new, or with new names, all
    of which another changed file took into use) is a quarter.
    """
    total, found = 0.0, []
    for change in work.changes:
        if change.path in work.concerns or _is_leftover(change, work):
            continue
        if change.kind == "source":
            weight = 0.25 if _supports(change, work) else 1.0
        else:
            before, after = Counter(change.old.text.split("\n")), Counter(change.new.text.split("\n"))
            weight = 0.5 if before - after else 0.0
        if weight:
            total += weight
            found.append(change.path)
    return Amount(total, tuple(found))


def _supports(change: Change, work: Work) -> bool:
    taken = Counter[str]()
    for other in work.sources:
        if other is not change:
            added = Counter(other.new.lines) - Counter(other.old.lines)
            taken.update(word for line in added for word in WORD.findall(line))
    if change.added:
        return taken[change.path.rpartition("/")[2].partition(".")[0]] > 0
    new = set(global_names(change.new)) - set(global_names(change.old))
    return bool(new) and all(taken[name] for name in new)


def size(work: Work) -> Amount:
    """Lines of code added and removed, without tests and documentation."""
    counts = [(sum(changed_lines(c.old.lines, c.new.lines)), c.path) for c in work.sources]
    return Amount(sum(n for n, _ in counts), tuple(path for n, path in sorted(counts, reverse=True) if n))


def leftovers(work: Work) -> Amount:
    """Debug prints, breakpoints, reminders, code that was commented out, scratch files and notes to oneself."""
    found: list[str] = []
    total = 0.0
    for change in work.changes:
        if _is_leftover(change, work):
            total += 1.0
            found.append(f"scratch file {change.path}")
        elif change.kind != "doc":
            for what, weight in _left_in(change):
                total += weight
                found.append(what)
    return Amount(total, tuple(found))


def _is_leftover(change: Change, work: Work) -> bool:
    """A new scratch file, unless the task concerns it or, for text, another changed file took it into use."""
    if not change.added or not is_scratch(change.path) or change.path in work.concerns:
        return False
    return change.kind != "doc" or not _supports(change, work)


def _left_in(change: Change) -> Iterator[tuple[str, float]]:
    prints_anyway = change.kind == "test" or any(_PRINT.search(line) for line in change.old.lines)
    logs_anyway = any(_DEBUG_LOG.search(line) for line in change.old.lines)
    for line in (Counter(change.new.lines) - Counter(change.old.lines)).elements():
        if _BREAK.search(line):
            yield f"breakpoint in {change.path}", 1.0
        elif _PRINT.match(line) and "file=" not in line and (not prints_anyway or "debug" in line.lower()):
            yield f"print in {change.path}", 1.0
        elif _DEBUG_LOG.search(line) and not logs_anyway:
            yield f"debug log in {change.path}", 0.5
    for comment in (Counter(change.new.comments) - Counter(change.old.comments)).elements():
        if _MARKER.search(comment):
            yield f"reminder in {change.path}", 1.0
        elif is_code(comment):
            yield f"commented-out code in {change.path}", 1.0


def duplication(work: Work) -> Amount:
    """Lines in blocks of at least `WINDOW` lines that stand elsewhere in the changed files or beside them."""
    code = [c for c in work.sources if c.path.endswith(".py")]
    changed = {c.path for c in code}
    beside = {key for path, file in work.base.surroundings.items() if path not in changed for key in file.blocks}
    new, where = _copied([(c.path, c.new.lines) for c in code], beside)
    old, _ = _copied([(c.path, c.old.lines) for c in code], beside)
    return Amount(max(0, new - old), where)


def _copied(files: Sequence[tuple[str, Sequence[str]]], known: set[str]) -> tuple[int, tuple[str, ...]]:
    seen, count, where = set(known), 0, []
    for path, lines in files:
        covered: set[int] = set()
        for start, key in windows(lines):
            if key in seen:
                covered.update(range(start, start + WINDOW))
            seen.add(key)
        if covered:
            where.append(path)
        count += len(covered)
    return count, tuple(where)


def rewrite(work: Work) -> Amount:
    """Share of a file's code lines that were replaced, above a third, summed over files of 15 lines and more."""
    total, found = 0.0, []
    for change in work.sources:
        if not change.added and len(change.old.lines) >= 15:
            share = changed_lines(change.old.lines, change.new.lines)[1] / len(change.old.lines)
            if share > 1 / 3:
                total += share - 1 / 3
                found.append(f"{change.path} {share:.0%}")
    return Amount(total, tuple(found))


def turns(work: Work) -> Amount:
    """Turns taken."""
    return Amount(work.turns)
