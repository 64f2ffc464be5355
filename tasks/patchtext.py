"""Which files a patch touches and how many lines it changes, read from its text alone."""

from __future__ import annotations

import re

_COUNTS = re.compile(rb"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def touched_files(patch: str) -> list[str]:
    """Paths of the files that a `git diff` adds or changes, in its order; deleted ones are left out.

    Lines of a hunk never begin with `diff --git`, so that a patch of a patch file is read right.
    """
    found: dict[str, None] = {}
    for section in re.split(r"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        path = _path_after(re.split(r"^@@ ", section, maxsplit=1, flags=re.MULTILINE)[0])
        if path is not None:
            found[path] = None
    return list(found)


def line_counts(patch: bytes) -> tuple[int, int, int]:
    """How many files a patch touches, and how many lines it adds and removes."""
    files = added = removed = old = new = 0
    for line in patch.split(b"\n"):
        if inside := (old > 0 or new > 0) and line[:1] in b"+- ":  # of a hunk, whatever it looks like
            old, new = old - (line[:1] != b"+"), new - (line[:1] != b"-")
        elif not line.startswith(b"\\"):
            head = _COUNTS.match(line)
            old, new = (0, 0) if head is None else (1 if count is None else int(count) for count in head.groups())
        files += not inside and line.startswith(b"diff --git ")
        added += line.startswith(b"+") and (inside or not line.startswith(b"+++ "))
        removed += line.startswith(b"-") and (inside or not line.startswith(b"--- "))
    return files, added, removed


def _path_after(header: str) -> str | None:
    lines = header.splitlines()
    if any(line.startswith("deleted file mode") for line in lines):
        return None
    for line in lines:
        for start in ("+++ ", "rename to ", "copy to "):
            if line.startswith(start):
                path = _unquoted(line[len(start) :].rstrip("\t"))
                return path.removeprefix("b/") if start == "+++ " else path
    # A new empty file, a new mode or a binary file: only the first line names it, twice the same.
    names = lines[0] if lines else ""
    if names.startswith('"'):
        return _unquoted(names[len(names) // 2 :].strip()).removeprefix("b/")
    return names[len(names) // 2 + 1 :].removeprefix("b/") or None


def _unquoted(path: str) -> str:
    """A path as git quotes it in C style."""
    if not (len(path) >= 2 and path[0] == path[-1] == '"'):
        return path

    def byte(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code, 8)) if code[0].isdigit() else _ESCAPES.get(code, code)

    quoted = re.sub(r"\\([0-7]{3}|.)", byte, path[1:-1])
    return quoted.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
