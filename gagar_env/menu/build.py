"""The menu of a task: what can be looked at, run, changed, taken back and submitted, in a fixed order."""

from __future__ import annotations

import hashlib
import random
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gagar_env.actions.applying import apply_command
from gagar_env.errors import TaskError
from gagar_env.menu.entries import REMOVE_NEW, UNDO_ALL, Entry, EntryKind, Menu
from gagar_env.menu.mutants import mutants
from gagar_env.menu.pieces import Piece, PieceSize, solution_pieces, unique_pieces
from gagar_env.menu.sources import Source, ranked_sources
from gagar_env.tasks.task import Task

EditSource = Literal["auto", "solutions", "mutations"]
FIXED = 2
"""Entries before the views: `submit`, and the run of the tests."""
_TEST = "$(command -v python || command -v python3) -m pytest -q --no-header -p no:cacheprovider"
_WORDS = frozenset({"auto", "solutions", "mutations"})
_PAD = Entry(kind=EntryKind.PAD, label="nothing")


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuRules:
    """What goes into a menu. Two menus of one task by the same rules are equal.

    Attributes:
        size: Entries, padding included.
        edits: Where edits come from: pieces of the task's known `solutions` (its reference among them), `mutations` of
            single lines, or `auto`: solutions where the task has some.
        pieces: Known solutions are taken apart by `hunk` or by `file`.
        views: Places for views: one for what was changed so far, the others for files.
        cleanups: Places for clean-ups: undo everything, remove files that git does not know, undo one file.
        test_runs: Whether there is an entry that runs the tests of the repository.
        files: Most files that are mutated.
        seed: Of the choice between edits, where there are more than places.

    Raises:
        ValueError: If a number is out of range, or a word is none of the above.
    """

    size: int = 64
    edits: EditSource = "auto"
    pieces: PieceSize = "hunk"
    views: int = 5
    cleanups: int = 5
    test_runs: bool = True
    files: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.views < 0 or self.cleanups < 0 or self.files < 1:
            raise ValueError("views and cleanups must be 0 or more, and files 1 or more")
        least = FIXED + self.views + self.cleanups + 1
        if self.size < least:
            raise ValueError(f"a menu with {self.views} views and {self.cleanups} clean-ups needs a size of {least}")
        if self.edits not in _WORDS or self.pieces not in ("hunk", "file"):
            raise ValueError(
                "edits must be 'auto', 'solutions' or 'mutations' and pieces 'hunk' or 'file', "
                f"got {self.edits!r} and {self.pieces!r}"
            )


def build_menu(task: Task, tree: Path, rules: MenuRules) -> Menu:
    """The menu of `task`.

    Entry 0 submits and entry 1 runs the tests; views, clean-ups and edits follow in blocks that begin at the same
    number in every menu of these rules, each padded to its end with entries that do nothing. The order of edits says
    nothing of what they come from.

    Args:
        task: The task; its known solutions are read, where edits are made of them.
        tree: Its base tree.
        rules: Sizes and sources.

    Raises:
        TaskError: If edits shall come from solutions and the task has none.
    """
    sources = ranked_sources(tree, task.problem_statement)
    edits, left_out = _edits(task, sources, rules)
    test = Entry(kind=EntryKind.TEST, label="run the tests", command=_TEST) if rules.test_runs else _PAD
    blocks = (
        ([Entry(kind=EntryKind.SUBMIT, label="submit", command=""), test], FIXED),
        (_views(sources), rules.views),
        (_cleanups(edits), rules.cleanups),
        (edits, rules.size - FIXED - rules.views - rules.cleanups),
    )
    entries = [entry for block, places in blocks for entry in _padded(block, places)]
    return Menu(task_id=task.id, entries=tuple(entries), left_out=left_out)


def empty_menu(task: Task, rules: MenuRules) -> Menu:
    """A menu that can only submit: for a task whose tree cannot be had."""
    submit = Entry(kind=EntryKind.SUBMIT, label="submit", command="")
    return Menu(task_id=task.id, entries=tuple(_padded([submit], rules.size)))


def _padded(block: Iterable[Entry], places: int) -> list[Entry]:
    found = list(block)[:places]
    return found + [_PAD] * (places - len(found))


def _views(sources: Sequence[Source]) -> list[Entry]:
    changes = Entry(kind=EntryKind.VIEW, label="view changes", command="git status --short && git diff")
    files = [
        Entry(
            kind=EntryKind.VIEW,
            label=f"view {source.path}",
            command=f"head -n 200 {shlex.quote(source.path)}",
            path=source.path,
        )
        for source in sources
    ]
    return [changes, *files]


def _cleanups(edits: Sequence[Entry]) -> list[Entry]:
    found = [
        Entry(kind=EntryKind.CLEAN, label="undo all", command=UNDO_ALL),
        Entry(kind=EntryKind.CLEAN, label="remove new files", command=REMOVE_NEW),
    ]
    for path in sorted({edit.path for edit in edits if not edit.creates}):
        command = f"git checkout -q -- {shlex.quote(path)}"
        found.append(Entry(kind=EntryKind.CLEAN, label=f"undo {path}", command=command, path=path))
    return found


def _edits(task: Task, sources: Sequence[Source], rules: MenuRules) -> tuple[list[Entry], int]:
    room = rules.size - FIXED - rules.views - rules.cleanups
    chance = random.Random(f"{rules.seed} {task.id}")
    solutions = [] if rules.edits == "mutations" else solution_pieces(task, rules.pieces)
    if rules.edits == "solutions" and not solutions:
        raise TaskError(f"task {task.id} has no known solution to take edits from: use edits='mutations'")
    found = _of_solutions(solutions, room, chance) if solutions else _of_sources(sources, room, rules.files, chance)
    chosen, total = found
    chosen.sort(key=lambda piece: (piece.path, piece.where, hashlib.sha256(piece.patch).digest()))
    return [_edit(piece) for piece in chosen], total - len(chosen)


def _of_solutions(solutions: list[list[Piece]], room: int, chance: random.Random) -> tuple[list[Piece], int]:
    """Whole solutions as long as they fit, the first always first: what is cut is then seldom half of one."""
    rest = solutions[1:]
    chance.shuffle(rest)
    pieces = unique_pieces([solutions[0], *rest])
    return pieces[:room], len(pieces)


def _of_sources(sources: Sequence[Source], room: int, files: int, chance: random.Random) -> tuple[list[Piece], int]:
    """Mutants of the first modules, those in functions that the statement names before others."""
    named: list[Piece] = []
    others: list[Piece] = []
    for source in [s for s in sources if s.is_python and not s.is_test][:files]:
        for around, piece in mutants(source.path, source.text):
            (named if around in source.named else others).append(piece)
    for group in (named, others):
        chance.shuffle(group)
    pieces = unique_pieces([named, others])
    return pieces[:room], len(pieces)


def _edit(piece: Piece) -> Entry:
    where = f":{piece.where}" if piece.where else ""
    return Entry(
        kind=EntryKind.EDIT,
        label=f"edit {piece.path}{where} +{piece.added} -{piece.removed}",
        command=apply_command(piece.patch),
        path=piece.path,
        added=piece.added,
        removed=piece.removed,
        creates=piece.creates,
    )
