"""Problem statements of fixes between releases: from the notes of the release where they speak of it, and the tests.

Nothing of the patch is quoted: names of what is touched, names of failing tests and why they fail.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from gagar_env.making.candidate import Findings
from gagar_env.making.statement import quoted_line

_FILES = ("changes", "changelog", "history", "news", "release", "releases", "release_notes", "whatsnew", "changelogs")
_LONGEST = 2_000_000
_SHOWN = 8
_MESSAGE = 300
_HEADING = re.compile(r"^(?:#{1,4}\s*|[=*]*\s*)?(?:version|release|v)?\s*\[?v?(\d+(?:\.\d+)+(?:[a-z.]+\d+)?)\b", re.I)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"[`.~]([A-Za-z_][A-Za-z0-9_]*)(?=[`(])")
_COMMON = frozenset(
    {"self", "none", "true", "false", "init", "__init__", "call", "repr", "test", "tests", "type", "value", "name"}
)


def release_notes(tree: Path, version: str) -> list[str]:
    """The entries that the change log in `tree` has for a version; empty where none is found."""
    for path in sorted(_change_logs(tree), key=lambda p: (len(p.parts), p.name)):
        if entries := _entries(path.read_text("utf-8", "replace"), version):
            return entries
    return []


def _change_logs(tree: Path) -> list[Path]:
    found = []
    for folder in (tree, tree / "docs", tree / "doc", tree / "docs/source", tree / "doc/source"):
        for path in folder.glob("*") if folder.is_dir() else ():
            plain = path.name.partition(".")[0].lower().replace("-", "_")
            if plain in _FILES and path.is_file() and not path.is_symlink() and path.stat().st_size < _LONGEST:
                found.append(path)
    return found


def _entries(text: str, version: str) -> list[str]:
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if _is_heading(lines, n) == version), None)
    if start is None:
        return []
    end = next((n for n in range(start + 1, len(lines)) if _is_heading(lines, n)), len(lines))
    entries: list[list[str]] = []
    for line in lines[start + 1 : end]:
        bullet = re.match(r"^(\s{0,3})[-*+•]\s+(.*)", line)
        if bullet:
            entries.append([bullet[2].strip()])
        elif entries and line.strip() and line.startswith(" "):
            entries[-1].append(line.strip())
        elif entries and not line.strip():
            continue
        elif line.strip() and not re.fullmatch(r"[-=~^*#\s]+", line):
            entries.append([])  # a heading or a sentence between
    return [" ".join(entry) for entry in entries if entry]


def _is_heading(lines: Sequence[str], number: int) -> str:
    """The version that a heading names; empty where the line is none."""
    line = lines[number]
    found = _HEADING.match(line)
    if not found or line.startswith(" ") or re.match(r"^\s*[-*+]\s", line):
        return ""
    under = lines[number + 1] if number + 1 < len(lines) else ""
    marked = line.startswith("#") or re.fullmatch(r"\s*([-=~^*_])\1{2,}\s*", under) or len(line) < 40
    return found[1] if marked else ""


def fitting(entries: Sequence[str], names: Collection[str]) -> list[str]:
    """The entries that speak of one of these names."""
    wanted = {name for name in names if name and name.lower().strip("_") not in _COMMON}
    plain = {name for name in wanted if len(name) > 3}  # a short one may be a word of English
    return [e for e in entries if plain & set(_NAME.findall(e)) or wanted & set(_QUOTED.findall(e))]


def statement(findings: Findings, *, library: str, version: str, touched: Sequence[str], entries: Sequence[str]) -> str:
    """A problem statement.

    Args:
        findings: What the runs showed.
        library: The project.
        version: What the tree is.
        touched: Modules that the fix touches.
        entries: What the notes of the next release say of it.
    """
    entries = [entry for entry in entries if not quoted_line(_plain(entry), findings.candidate)]
    where = ", ".join(f"`{path}`" for path in touched[:5])
    parts = [f"# {library} {version}: " + ("behaviour to correct" if findings.pass_to_pass else "behaviour to add")]
    if entries:
        parts += ["The notes of the next release say:", "\n".join(f"- {_plain(entry)}" for entry in entries[:5])]
    parts.append(f"This version does not behave so yet. What is concerned is in {where}.")
    failing = findings.fail_to_pass
    listed = [f"- `{test}`" + _why(findings.messages.get(test, "")) for test in failing[:_SHOWN]]
    if len(failing) > _SHOWN:
        listed.append(f"- and {len(failing) - _SHOWN} more")
    if missing := findings.messages.get("", ""):
        parts.append(f"The tests cannot even be imported now: `{_plain(missing.rpartition(': ')[2])[:_MESSAGE]}`.")
    parts += ["Tests that fail now, and shall pass:", "\n".join(listed)]
    if findings.pass_to_pass:
        parts.append("What works now shall go on working.")
    return "\n\n".join(parts) + "\n"


def _why(message: str) -> str:
    lines = [line.removeprefix("E ").strip() for line in message.splitlines() if line.strip()]
    said = [line.removeprefix("E ").strip() for line in message.splitlines() if line.startswith("E ")]
    line = (said or lines or [""])[0].replace("`", "'")[:_MESSAGE]
    return f": `{line}`" if line else ""


def _plain(entry: str) -> str:
    """An entry without the roles of reStructuredText and the links of issues."""
    entry = re.sub(r"\s*\(?`?#\d+`?_?\)?|\s*\[#?\d+\]\([^)]*\)|\s*:(?:issue|pr|ghissue):`[^`]*`", "", entry)
    entry = re.sub(r":[a-z:]+:`~?([^`<]+?)(?:\s*<[^>]*>)?`", r"`\1`", entry)
    return re.sub(r"``([^`]*)``", r"`\1`", entry).strip()
