"""What the measures of the rule grader look at: the changed files of one candidate, and the base tree."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from pathlib import Path

from gagar_env.agents.graders.rule_sources import Source, kind_of, read_source
from gagar_env.changes import Changes, FileState
from gagar_env.patch import base_state

WINDOW = 4
"""Lines that a copied block has at least."""
_MAX_FILES = 400
"""So many Python files of the base tree are read for names and copied blocks, the nearest first."""
_LONG_DIFF = 3000
"""Above so many lines a line-by-line comparison takes too long; lines are counted instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a file is looked at for that may well be left as it is.

    Attributes:
        words: Its names, counted.
        blocks: Its blocks of `WINDOW` lines.
    """

    words: Counter[str]
    blocks: frozenset[str]


@lru_cache(maxsize=2 * _MAX_FILES)
def look_around(path: str, state: FileState | None) -> Surroundings:
    """Read one file. Remembered by content: the next group of the same task, or repository, has the same files."""
    source = read_source(path, state)
    return Surroundings(words=source.words, blocks=frozenset(key for _, key in windows(source.lines)))


class BaseFiles:
    """The base tree, read once for all candidates of a group.

    Args:
        tree: The base tree; only read, no link followed.
        touched: Paths that any candidate changes: files near them come first.
    """

    def __init__(self, tree: Path, touched: Iterable[str]) -> None:
        self._tree = tree
        self._touched = sorted(set(touched))
        self._states: dict[str, FileState | None] = {}
        self._sources: dict[str, Source] = {}

    def state(self, path: str) -> FileState | None:
        """A file as it was."""
        if path not in self._states:
            self._states[path] = base_state(self._tree, path)
        return self._states[path]

    def source(self, path: str) -> Source:
        """A file as it was, parsed."""
        if path not in self._sources:
            self._sources[path] = read_source(path, self.state(path))
        return self._sources[path]

    @cached_property
    def nearby(self) -> tuple[str, ...]:
        """Python files of the base tree without tests, nearest to the touched ones first."""
        folders = {folder for path in self._touched for folder in _folders_of(path)}
        found: dict[str, None] = {}
        for folder in sorted(folders, key=lambda name: (-name.count("/"), not name, name)):
            for path in self._walk(folder):
                found[path] = None
                if len(found) >= _MAX_FILES:
                    return tuple(found)
        return tuple(found)

    @cached_property
    def surroundings(self) -> dict[str, Surroundings]:
        """What the files nearby are looked at for, by path."""
        return {path: look_around(path, self.state(path)) for path in self.nearby}

    def _walk(self, start: str) -> Iterator[str]:
        for folder, folders, files in os.walk(self._tree / start):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), self._tree)
                if name.endswith(".py") and kind_of(path) == "source":
                    yield path


def _folders_of(path: str) -> Iterator[str]:
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""


@dataclass(frozen=True, slots=True)
class Amount:
    """A measured amount, and what it was found in."""

    value: float
    found: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed file."""

    path: str
    kind: str
    old: Source
    new: Source
    added: bool
    deleted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """All that the measures look at."""

    base: BaseFiles
    changes: tuple[Change, ...]
    concerns: frozenset[str]
    asked_for: frozenset[str]
    """Words of the problem statement: what it names may be new and used by nobody yet."""
    turns: int

    @property
    def sources(self) -> tuple[Change, ...]:
        """Changed files that are neither tests nor documentation."""
        return tuple(c for c in self.changes if c.kind == "source")


def read_work(
    base: BaseFiles, changes: Changes, *, concerns: Iterable[str], asked_for: Iterable[str], turns: int
) -> Work:
    """Parse the changed files."""
    read = []
    for path, state in sorted(changes.items()):
        old = base.state(path)
        change = Change(
            path=path,
            kind=kind_of(path),
            old=base.source(path),
            new=read_source(path, state),
            added=old is None,
            deleted=state is None,
        )
        read.append(change)
    return Work(
        base=base, changes=tuple(read), concerns=frozenset(concerns), asked_for=frozenset(asked_for), turns=turns
    )


def windows(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Start and text of each run of `WINDOW` lines that says something."""
    plain = [" ".join(line.split()) for line in lines]
    for start in range(len(plain) - WINDOW + 1):
        block = plain[start : start + WINDOW]
        if sum(map(len, block)) >= 12 * WINDOW and not all(s.startswith(("import ", "from ")) for s in block):
            yield start, "\n".join(block)


def differing(old: Sequence[str], new: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Both without what they have in common at their beginning and at their end."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return old[start : len(old) - end], new[start : len(new) - end]


def changed_lines(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Number of lines added and removed."""
    a, b = differing(old, new)
    if len(a) + len(b) > _LONG_DIFF:
        return (Counter(b) - Counter(a)).total(), (Counter(a) - Counter(b)).total()
    same = sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())
    return len(b) - same, len(a) - same


Measure = Callable[[Work], Amount]
