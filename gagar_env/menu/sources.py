"""Which files of a repository an agent would look at first: those that the problem statement speaks of."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)
_TEST = re.compile(r"(^|/)(tests?|testing)/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
_PLAIN = re.compile(r"[A-Za-z0-9_./+-]+")
_MOST_FILES = 2000
_MOST_BYTES = 200_000
_LEAST_LETTERS = 3
"""Shorter names of functions are words of any text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text file of a base tree.

    Attributes:
        path: Relative to the tree.
        text: Its content.
        is_test: Whether its name says that it holds tests.
        mentions: How strongly the problem statement points to it, 0 or more.
        named: Functions and classes of it that the statement names.
    """

    path: str
    text: str
    is_test: bool
    mentions: int
    named: frozenset[str] = frozenset()

    @property
    def is_python(self) -> bool:
        """Whether it is a module of Python."""
        return self.path.endswith(".py")


def ranked_sources(tree: Path, statement: str) -> list[Source]:
    """The text files of a base tree, those first that the statement names; then Python, tests last.

    Named by path, by module or file name, or by a function or class that they define. At most 2000 files are read, none
    over 200 kB; names with other than plain ASCII characters are left out, so that every path can stand in a patch.
    """
    words = set(_WORD.findall(statement))
    found = [source for path in _paths(tree) if (source := _read(tree, path, statement, words)) is not None]
    return sorted(found, key=lambda s: (-s.mentions, not s.is_python, s.is_test, s.path))


def _paths(tree: Path) -> list[str]:
    found: list[str] = []
    for where, folders, files in os.walk(tree):
        folders[:] = sorted(name for name in folders if name not in (".git", "__pycache__"))
        found += [os.path.relpath(os.path.join(where, name), tree) for name in sorted(files)]
        if len(found) > _MOST_FILES:
            break
    return [path for path in found[:_MOST_FILES] if _PLAIN.fullmatch(path)]


def _read(tree: Path, path: str, statement: str, words: set[str]) -> Source | None:
    place = tree / path
    try:
        if place.is_symlink() or not place.is_file() or place.stat().st_size > _MOST_BYTES:
            return None
        text = place.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if "\0" in text:
        return None
    stem = Path(path).stem
    module = path.removesuffix(".py").replace("/", ".").removeprefix("src.")
    mentions = 0
    if path in statement or ("." in module and module in statement):
        mentions += 100
    if stem in words and stem != "__init__":
        mentions += 10
    names = set(_DEFINED.findall(text)) if path.endswith(".py") else set()
    named = frozenset(name for name in names & words if len(name) >= _LEAST_LETTERS)
    is_test = bool(_TEST.search(path))
    mentions = 0 if is_test else mentions + len(named)
    return Source(path=path, text=text, is_test=is_test, mentions=mentions, named=named)
