"""The reverse of a patch, as a patch: what undoes a bug that was put in."""

from __future__ import annotations

import re

from gagar_env.errors import TaskError

_HUNK = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@(.*)", re.DOTALL)
_INDEX = re.compile(r"index ([0-9a-f]+)\.\.([0-9a-f]+)(.*)")
_SWAPPED = {
    "new file mode ": "deleted file mode ",
    "deleted file mode ": "new file mode ",
    "old mode ": "new mode ",
    "new mode ": "old mode ",
    "rename from ": "rename to ",
    "rename to ": "rename from ",
}


def reversed_patch(patch: str, where: str) -> str:
    """A `git diff` with both sides swapped.

    Args:
        patch: A patch of text files; line endings and what is no UTF-8 stay.
        where: What to call it in messages.

    Raises:
        TaskError: If it is no `git diff`, or changes a binary file.
    """
    lines = patch.split("\n")
    if lines[-1] == "":
        lines.pop()
    result: list[str] = []
    header: list[str] = []
    position = 0
    while position < len(lines):
        line = lines[position]
        if hunk := _HUNK.fullmatch(line):
            result += _header(header)
            header = []
            position, body = _body(lines, position + 1, hunk, where)
            old, old_count, new, new_count, rest = hunk.groups()
            result.append(f"@@ -{new}{new_count or ''} +{old}{old_count or ''} @@{rest}")
            result += body
            continue
        if line.startswith(("GIT binary patch", "Binary files ")):
            raise TaskError(f"{where}: changes a binary file, which is not reversed")
        if line.startswith("diff --git "):
            result += _header(header)
            header = []
        header.append(line)
        position += 1
    result += _header(header)
    if not any(line.startswith(("diff --git ", "--- ")) for line in result):
        raise TaskError(f"{where}: is no `git diff`")
    return "\n".join(result) + "\n"


def _body(lines: list[str], position: int, hunk: re.Match[str], where: str) -> tuple[int, list[str]]:
    """The lines of a hunk with signs swapped, what goes before what comes; and where they end."""
    left = [int((hunk[group] or ",1")[1:]) for group in (2, 4)]
    body: list[str] = []
    gone: list[str] = []
    come: list[str] = []
    last = body
    while position < len(lines):
        line = lines[position]
        sign = line[:1]
        if sign == "\\":
            last.append(line)
        elif not any(left):
            break
        elif sign == "-":
            last = come
            come.append(f"+{line[1:]}")
            left[0] -= 1
        elif sign == "+":
            last = gone
            gone.append(f"-{line[1:]}")
            left[1] -= 1
        elif sign in (" ", ""):  # some tools strip the blank of an empty line
            body += gone + come
            gone, come, last = [], [], body
            body.append(line)
            left = [left[0] - 1, left[1] - 1]
        else:
            break
        position += 1
    if any(left):
        raise TaskError(f"{where}: a hunk ends before its {hunk[0].partition(' @@')[0]} @@ says")
    return position, body + gone + come


def _header(lines: list[str]) -> list[str]:
    """The header of one file with both sides swapped."""
    old = next((line[4:] for line in lines if line.startswith("--- ")), None)
    new = next((line[4:] for line in lines if line.startswith("+++ ")), None)
    source = next((line for line in lines if line.startswith("rename from ")), None)
    result = []
    for line in lines:
        if line.startswith("diff --git ") and source is not None:
            a, b = source[len("rename from ") :], _after(lines, "rename to ")
            result.append(f"diff --git a/{b} b/{a}")
        elif line.startswith("--- ") and new is not None:
            result.append(f"--- {_side(new, 'b/', 'a/')}")
        elif line.startswith("+++ ") and old is not None:
            result.append(f"+++ {_side(old, 'a/', 'b/')}")
        elif index := _INDEX.fullmatch(line):
            result.append(f"index {index[2]}..{index[1]}{index[3]}")
        else:
            start = next((start for start in _SWAPPED if line.startswith(start)), None)
            result.append(line if start is None else _SWAPPED[start] + line[len(start) :])
    order = {"old mode ": 0, "rename from ": 0, "new mode ": 1, "rename to ": 1}
    pairs = [i for i, line in enumerate(result) if line.startswith(tuple(order))]
    swapped = sorted((result[i] for i in pairs), key=lambda line: ("rename" in line, *_rank(line, order)))
    for i, line in zip(pairs, swapped, strict=True):
        result[i] = line
    return result


def _rank(line: str, order: dict[str, int]) -> tuple[int, ...]:
    return tuple(rank for start, rank in order.items() if line.startswith(start))


def _after(lines: list[str], start: str) -> str:
    return next(line[len(start) :] for line in lines if line.startswith(start))


def _side(path: str, was: str, becomes: str) -> str:
    quote = '"' if path.startswith('"') else ""
    if path.startswith(quote + was):
        return quote + becomes + path[len(quote + was) :]
    return path
