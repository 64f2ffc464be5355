"""What a menu of actions holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gagar_env._compat import StrEnum

NOTHING = ":"
"""The command of an entry that does nothing."""
REMOVE_NEW = "git clean -fdq"
UNDO_ALL = f"git checkout -q -- . && {REMOVE_NEW}"


class EntryKind(StrEnum):
    """What an entry does."""

    SUBMIT = "submit"
    TEST = "test"
    """Runs the tests that the repository has: those that the agent can see."""
    VIEW = "view"
    CLEAN = "clean"
    """Takes changes back or removes files that git does not know."""
    EDIT = "edit"
    PAD = "pad"
    """Does nothing: fills the menu up to its size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One action of a menu.

    Attributes:
        kind: What it does.
        label: For people; of an edit it names the file and the place, not where the edit comes from.
        command: A bash command; empty for a submission.
        path: The file that it is about; empty if there is none.
        added: Lines that an edit adds.
        removed: Lines that it removes.
        creates: Whether it makes a file that git does not know then.
    """

    kind: EntryKind
    label: str
    command: str = NOTHING
    path: str = ""
    added: int = 0
    removed: int = 0
    creates: bool = False

    def undoes(self, edit: Entry) -> bool:
        """Whether this clean-up takes back `edit`."""
        if self.kind is not EntryKind.CLEAN:
            return False
        if self.path:
            return edit.path == self.path and not edit.creates
        return edit.creates or self.command == UNDO_ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """The actions of one task. Holds pieces of known solutions where edits are made of them: for trusted code only.

    Attributes:
        task_id: Of the task.
        entries: In fixed blocks, see `build_menu`; as many for every task.
        left_out: Edits that found no room.
    """

    task_id: str
    entries: tuple[Entry, ...]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def real(self) -> NDArray[np.bool_]:
        """Which entries do something, shape (size,)."""
        return np.array([entry.kind is not EntryKind.PAD for entry in self.entries], dtype=np.bool_)

    def of_kind(self, kind: EntryKind) -> tuple[int, ...]:
        """Numbers of the entries of a kind."""
        return tuple(number for number, entry in enumerate(self.entries) if entry.kind is kind)
