"""Reads what a tool shows: files of a candidate, its patch by file, its turns, its test evidence. Plain text, not cut.

Files come from the patch and the base tree without following a link. No path of the host is in any of it but what the
candidate's own commands printed.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from gagar_env.changes import FileState, check_path
from gagar_env.episode import TestStatus, Turn
from gagar_env.errors import PatchError
from gagar_env.patch import base_state
from gagar_env.sandbox._files import DIRECTORY, plain_names, read_plain
from gagar_env.tasks import patchtext
from gagar_env.workspace import Candidate

_MAX_FILE = 1_000_000
_MAX_LINES_COMPARED = 4_000
_MAX_SEARCHED = 5_000
_ENTRY = re.compile(rb"^diff --git ", re.M)
_MAX_FAULTS = 20


class LookError(ValueError):
    """What was asked for is not there; one line for the model."""


def file_state(base: Path, candidate: Candidate | None, path: str) -> FileState | None:
    """A file of a candidate, or of the base tree for None."""
    try:
        check_path(path)
    except PatchError:
        raise LookError("a path is relative to the repository, without '..'") from None
    changes = changes_of(candidate)
    return changes[path] if path in changes else base_state(base, path)


def changes_of(candidate: Candidate | None) -> dict[str, FileState | None]:
    """What a candidate changed; nothing for the base tree."""
    if candidate is None:
        return {}
    try:
        return dict(candidate.changes)
    except PatchError:
        raise LookError("the patch of this candidate does not apply; `diff` shows it") from None


def text_of(state: FileState | None) -> str:
    """A file as text; what is none is said in a line."""
    if state is None:
        raise LookError("there is no such file")
    if state.mode == "120000":
        return f"(a symbolic link to {os.fsdecode(state.data)!r})"
    if b"\0" in state.data[:8_000]:
        return f"(a binary file of {len(state.data)} bytes)"
    if len(state.data) > _MAX_FILE:
        return f"(a file of {len(state.data)} bytes, too large to show)"
    return state.data.decode("utf-8", "replace")


def numbered(text: str, first: int, last: int) -> str:
    """Lines with their numbers, `first` to `last`, both included; 0 is the end."""
    lines = text.splitlines()
    last = min(last or len(lines), len(lines))
    return "\n".join(f"{number:5} {lines[number - 1]}" for number in range(max(1, first), last + 1))


def file_diffs(patch: bytes) -> list[str]:
    """A patch by file, as text."""
    starts = [match.start() for match in _ENTRY.finditer(patch)] or [0]
    ends = [*starts[1:], len(patch)]
    return [patch[start:end].decode("utf-8", "replace") for start, end in zip(starts, ends, strict=True) if end > start]


def line_counts(patch: bytes) -> tuple[int, int]:
    """Lines added and removed by a patch."""
    return patchtext.line_counts(patch)[1:]


def compare(base: Path, one: Candidate, two: Candidate) -> str:
    """A unified diff from one candidate's files to another's."""
    found: list[str] = []
    for path in sorted(changes_of(one).keys() | changes_of(two).keys()):
        left, right = (file_state(base, candidate, path) for candidate in (one, two))
        if left == right:
            continue
        old, new = ("" if state is None else text_of(state) for state in (left, right))
        a, b = old.splitlines(), new.splitlines()
        if len(a) + len(b) > _MAX_LINES_COMPARED:
            found.append(f"{path}: differs, too long to compare ({len(a)} and {len(b)} lines)")
            continue
        found.extend(difflib.unified_diff(a, b, f"first/{path}", f"second/{path}", lineterm=""))
    return "\n".join(found) or "(no difference)"


def search(base: Path, candidate: Candidate | None, text: str, under: str) -> Iterator[str]:
    """`path:line: text` of each line that holds `text`: changed files first, then the rest of the tree."""
    changes = changes_of(candidate)
    root = os.open(base, DIRECTORY & ~os.O_NOFOLLOW)
    try:
        unchanged = (path for path in plain_names(root) if path not in changes)
        for number, path in enumerate([*sorted(changes), *unchanged]):
            if number >= _MAX_SEARCHED:
                yield f"(stopped after {_MAX_SEARCHED} files)"
                return
            if under and not (path == under or path.startswith(under.rstrip("/") + "/")):
                continue
            state = changes.get(path)
            data = (state.data if state else None) if path in changes else read_plain(root, path, _MAX_FILE)
            if not data or b"\0" in data[:8_000] or text.encode("utf-8", "replace") not in data:
                continue
            for line_number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
                if text in line:
                    yield f"{path}:{line_number}: {line.strip()[:200]}"
    finally:
        os.close(root)


def turn_text(number: int, turn: Turn) -> str:
    """One turn."""
    code = "" if turn.exit_code is None else f" (exit code {turn.exit_code}{', timed out' if turn.timed_out else ''})"
    return f"turn {number}, action:\n{turn.action}\nturn {number}, result{code}:\n{turn.observation}"


def test_text(candidate: Candidate) -> str:
    """What the official tests said."""
    report = candidate.report
    counts = {status.value: sum(t.status is status for t in report.tests.values()) for status in TestStatus}
    lines = [
        f"outcome: {report.outcome.value}{f' ({report.reason})' if report.reason else ''}",
        "tests: " + (", ".join(f"{n} {name}" for name, n in counts.items() if n) or "none ran"),
    ]
    lines += [f"required but not passed: {name}" for name in report.unmet[:_MAX_FAULTS]]
    bad = [(name, t) for name, t in report.tests.items() if t.status in (TestStatus.FAILED, TestStatus.ERROR)]
    lines += [f"{name}: {record.status.value}: {record.message}" for name, record in bad[:_MAX_FAULTS]]
    lines += [f"flag: {flag.kind} {flag.path} {flag.detail}" for flag in report.flags[:_MAX_FAULTS]]
    lines += [f"changed, but replaced by the official file: {path}" for path in report.ignored[:_MAX_FAULTS]]
    if report.output_tail:
        lines += ["end of the output:", report.output_tail]
    return "\n".join(lines)


def paths_of(candidate: Candidate) -> list[str]:
    """Names of the files that the patch names, cheaply: for the index."""
    found = re.findall(rb'^diff --git (?:"?a/)(.*?)"? "?b/', candidate.patch, re.M)
    return [path.decode("utf-8", "replace") for path in found]


def written_by(candidate: Candidate, *, most: int = 500_000) -> Iterator[tuple[str, str]]:
    """All that a candidate wrote or made its commands print, by place, up to so many characters."""
    added = b"\n".join(
        line[1:] if line.startswith(b"+") else line
        for line in candidate.patch[:most].split(b"\n")
        if line.startswith((b"+", b"diff --git "))
    )
    yield "patch", added.decode("utf-8", "replace")
    yield "test ids", "\n".join(candidate.report.tests)[:most]
    yield "test output", candidate.report.output_tail[:most]
    left = most
    for number, turn in enumerate(candidate.turns, 1):
        yield f"turn {number}, action", turn.action[:left]
        yield f"turn {number}, result", turn.observation[:left]
        left -= len(turn.action) + len(turn.observation)
        if left <= 0:
            return
