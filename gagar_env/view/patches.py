"""A patch as files, hunks and lines, with syntax colours; bounded, whatever it holds."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gagar_env.view.colours import Colours
from gagar_env.view.plain import text_of

MAX_BYTES = 1_000_000
MAX_LINE = 2_000
MAX_LINES = 20_000
_COLOUR_S = 1.0
"""Seconds for the colours of one patch; what comes later stays plain."""

_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)$")
_KINDS = {
    "new file mode": "added",
    "deleted file mode": "deleted",
    "rename from": "renamed",
    "Binary files": "binary",
    "GIT binary patch": "binary",
}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", '"': '"', "\\": "\\"}


@dataclass
class _File:
    path: str
    kind: str = "modified"
    hunks: list[dict[str, Any]] = field(default_factory=list)
    added: int = 0
    removed: int = 0


def patch_view(patch: bytes) -> dict[str, Any]:
    """What a page shows of a patch.

    Returns:
        `files`, each with `path`, `kind`, `added`, `removed` and `hunks`; a hunk has its `head` and `lines`, a line is
        `[sign, text, old number, new number, spans, characters left out]` with spans as flat triples of start, length
        and class. `left` is the number of bytes that are left out at the end.
    """
    shown = patch[:MAX_BYTES]
    if len(shown) < len(patch):
        shown = shown[: shown.rfind(b"\n") + 1]
    lines = text_of(shown).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    kept = lines[:MAX_LINES]
    left = len(patch) - len(shown) + sum(len(line.encode("utf-8", "replace")) + 1 for line in lines[MAX_LINES:])
    colours = Colours(deadline=time.monotonic() + _COLOUR_S)
    files = [_shown(file, colours) for file in _files(kept)]
    return {"files": files, "left": left, "size": len(patch)}


def _shown(file: _File, colours: Colours) -> dict[str, Any]:
    for hunk in file.hunks:
        colours.paint(file.path, hunk["lines"])
        for line in hunk["lines"]:
            line[5] = max(0, len(line[1]) - MAX_LINE)
            line[1] = line[1][:MAX_LINE]
    return {
        "path": file.path,
        "kind": file.kind,
        "added": file.added,
        "removed": file.removed,
        "hunks": file.hunks,
    }


def _files(lines: Sequence[str]) -> Iterator[_File]:
    file: _File | None = None
    position = 0
    while position < len(lines):
        line = lines[position]
        position += 1
        if line.startswith("diff --git "):
            if file is not None:
                yield file
            file = _File(path=_name_of_both(line[11:]))
        elif (match := _HUNK.match(line)) is not None:
            file = file or _File(path="")
            position = _read_hunk(file, match, lines, position)
        elif file is not None:
            _read_header(file, line)
    if file is not None:
        yield file


def _read_header(file: _File, line: str) -> None:
    for start, kind in _KINDS.items():
        if line.startswith(start):
            file.kind = kind
    for start in ("+++ ", "rename to ", "--- "):
        if line.startswith(start):
            name = _unquoted(line[len(start) :].rstrip("\t"))
            if name != "/dev/null" and not (start == "--- " and file.path):
                file.path = name if start == "rename to " else name[2:] if name[:2] in ("a/", "b/") else name


def _read_hunk(file: _File, match: re.Match[str], lines: Sequence[str], position: int) -> int:
    """The lines that the hunk's head counts, whatever they look like."""
    old, new = int(match[1]), int(match[3])
    old_left = 1 if match[2] is None else int(match[2])
    new_left = 1 if match[4] is None else int(match[4])
    found: list[list[Any]] = []
    while position < len(lines) and (old_left > 0 or new_left > 0 or lines[position].startswith("\\")):
        line = lines[position]
        sign, text = line[:1] or " ", line[1:]
        if sign == "\\":
            found.append(["\\", text, None, None, [], 0])
        elif sign == "+":
            found.append(["+", text, None, new, [], 0])
        elif sign == "-":
            found.append(["-", text, old, None, [], 0])
        elif sign == " ":
            found.append([" ", text, old, new, [], 0])
        else:
            break  # a damaged patch
        position += 1
        goes, comes = sign in "- ", sign in "+ "
        old, old_left = old + goes, old_left - goes
        new, new_left = new + comes, new_left - comes
        file.removed += sign == "-"
        file.added += sign == "+"
    file.hunks.append({"head": match[0], "lines": found})
    return position


def _name_of_both(names: str) -> str:
    """The new name of `a/x b/x`, as far as it can be told; `+++` says it for sure."""
    if names.startswith('"'):
        return _unquoted(names.partition('" ')[2] or names)[2:]
    half = (len(names) - 1) // 2
    return names[half + 3 :] if names[:half][2:] == names[half + 3 :] else names.rpartition(" b/")[2]


def _unquoted(name: str) -> str:
    """A name as git writes odd ones: in quotes, with the escapes of C."""
    if len(name) < 2 or name[0] != '"' or name[-1] != '"':
        return name

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8) & 0xFF) if code[0] in "01234567" else _ESCAPES.get(code, code)

    body = re.sub(r"\\([0-7]{3}|.)", byte, name[1:-1])
    try:
        return text_of(body.encode("latin-1"))
    except UnicodeEncodeError:  # it was not all bytes
        return body
