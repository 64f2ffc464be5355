"""The patch of plain edits, byte for byte as git makes it, without starting git.

A process of git costs some milliseconds, and a patch takes two. What most episodes leave is a few edited places in a
few text files, of which there is one shortest description only: that is written here. Everything else is git's: an edit
that could as well be described in another way, or some lines further up or down; large ones, renames, modes, links,
binary content, a last line without its end, names that git would quote, and a heading that is not plain ASCII.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from gagar_env.changes import FileState

_CONTEXT = 3
_MAX_BYTES = 512 * 1024
_MAX_LINES = 200
"""From the first difference to the last: git takes short cuts in longer ones."""
_BINARY_LOOK = 8000
"""Bytes that git looks at for a NUL."""
_PLAIN_NAME = re.compile(rb"[A-Za-z0-9_./@%+=:,~#-]+")
_HEADING_CHARS = 80
_HEADING = re.compile(rb"[A-Za-z_$]")
_PLAIN_TEXT = re.compile(rb"[\t -~]*")
_NONE = "0" * 40


def plain_patch(old: Mapping[str, FileState | None], new: Mapping[str, FileState | None]) -> bytes | None:
    """The patch from one to the other, which have the same paths; None where it takes git to say."""
    gone = any(state is None for state in new.values())
    if gone and any(state is None for state in old.values()):
        return None  # perhaps a rename
    parts = []
    for path in sorted(new, key=lambda path: path.encode("utf-8", "surrogateescape")):
        part = _of_file(path, old[path], new[path])
        if part is None:
            return None
        parts.append(part)
    return b"".join(parts)


def _of_file(path: str, old: FileState | None, new: FileState | None) -> bytes | None:
    name = path.encode("utf-8", "surrogateescape")
    if not _PLAIN_NAME.fullmatch(name) or not all(_is_plain(state) for state in (old, new)):
        return None
    if old is not None and new is not None and old.mode != new.mode:
        return None
    before, after = old.data if old else b"", new.data if new else b""
    if not _ends(before, after):
        return None
    hunks = _hunks(before.splitlines(keepends=True), after.splitlines(keepends=True))
    if hunks is None:
        return None
    mode = ""
    index = f"{_blob(before) if old else _NONE}..{_blob(after) if new else _NONE}"
    if old is None or new is None:
        kind, state = ("new", new) if old is None else ("deleted", old)
        mode = f"{kind} file mode {state.mode if state else ''}\n"
    else:
        index += f" {old.mode}"
    head = b"diff --git a/%s b/%s\n%sindex %s\n" % (name, name, mode.encode(), index.encode())
    head += b"--- %s\n+++ %s\n" % (b"a/" + name if old else b"/dev/null", b"b/" + name if new else b"/dev/null")
    return head + hunks


def _is_plain(state: FileState | None) -> bool:
    if state is None:
        return True
    data = state.data
    return state.mode in ("100644", "100755") and 0 < len(data) <= _MAX_BYTES and b"\0" not in data[:_BINARY_LOOK]


def _ends(*texts: bytes) -> bool:
    """Whether every text's last line has its end, and no other character is taken for one."""
    return all(not text or text.endswith(b"\n") for text in texts) and not any(b"\r" in text for text in texts)


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _hunks(old: list[bytes], new: list[bytes]) -> bytes | None:
    """The places where they differ; None where there is more than one shortest way to say so."""
    groups = _groups(old, new)
    if groups is None:
        return None
    parts = []
    while groups:
        near = [groups.pop(0)]
        while groups and groups[0].old - near[-1].old_end <= 2 * _CONTEXT:
            near.append(groups.pop(0))
        first, last = near[0], near[-1]
        start, end = max(0, first.old - _CONTEXT), min(len(old), last.old_end + _CONTEXT)
        start_new, end_new = first.new - (first.old - start), last.new_end + (end - last.old_end)
        ranges = _range(start, end - start), _range(start_new, end_new - start_new)
        heading = _heading(old[:start])
        if heading is None:
            return None
        parts.append(b"@@ -%s +%s @@%s\n" % (*ranges, heading))
        at = start
        for group in near:
            parts += [b" " + line for line in old[at : group.old]]
            parts += [b"-" + line for line in old[group.old : group.old_end]]
            parts += [b"+" + line for line in new[group.new : group.new_end]]
            at = group.old_end
        parts += [b" " + line for line in old[at:end]]
    return b"".join(parts)


class _Group(NamedTuple):
    """Lines of both sides that take each other's place."""

    old: int
    old_end: int
    new: int
    new_end: int


def _groups(old: list[bytes], new: list[bytes]) -> list[_Group] | None:
    """All of them; None where it takes git to choose.

    Between the first and the last difference, lines that both sides have must be there once on each side and in the
    same order. Every shortest description then keeps just these. None of what is left may be shown a line further up or
    down instead.
    """
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    end, end_new = len(old) - tail, len(new) - tail
    common = set(old[head:end]).intersection(new[head:end_new])
    if common and max(end, end_new) - head > _MAX_LINES:
        return None
    kept = [at for at in range(head, end) if old[at] in common]
    kept_new = [at for at in range(head, end_new) if new[at] in common]
    if len(kept) != len(common) or [old[at] for at in kept] != [new[at] for at in kept_new]:
        return None
    groups = []
    before, before_new = head, head
    for at, at_new in (*zip(kept, kept_new, strict=True), (end, end_new)):
        if at > before or at_new > before_new:
            groups.append(_Group(before, at, before_new, at_new))
        before, before_new = at + 1, at_new + 1
    slides = any(_slides(old, g.old, g.old_end) or _slides(new, g.new, g.new_end) for g in groups)
    return None if slides or not groups else groups


def _slides(lines: list[bytes], start: int, end: int) -> bool:
    """Whether the lines can be taken one further up or down to the same effect."""
    if start == end:
        return False
    return (start > 0 and lines[end - 1] == lines[start - 1]) or (end < len(lines) and lines[start] == lines[end])


def _range(start: int, count: int) -> bytes:
    first = start + 1 if count else start
    return b"%d" % first if count == 1 else b"%d,%d" % (first, count)


def _heading(above: list[bytes]) -> bytes | None:
    """What git shows behind a place: the last line above it that begins with a letter.

    None for one that git may cut at another byte: characters of several bytes, text in another encoding.
    """
    for line in reversed(above):
        if _HEADING.match(line):
            shown = line[:_HEADING_CHARS].rstrip(b" \t\n")
            return b" " + shown if _PLAIN_TEXT.fullmatch(shown) else None
    return b""
