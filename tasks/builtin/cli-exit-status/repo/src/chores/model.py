"""Chores and lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from chores.errors import ChoresError

MAX_PRIORITY = 3


@dataclass
class Chore:
    """One thing to do."""

    number: int
    title: str
    tags: list[str] = field(default_factory=list)
    priority: int = 0
    done: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the chore as plain data for JSON."""
        return asdict(self)


class ChoreList:
    """Chores in the order in which they were added."""

    def __init__(self, chores: Iterable[Chore] = ()) -> None:
        self._chores = list(chores)

    def __iter__(self) -> Iterator[Chore]:
        return iter(self._chores)

    def __len__(self) -> int:
        return len(self._chores)

    def add(self, title: str, tags: Iterable[str] = (), priority: int = 0) -> Chore:
        """Add a chore with the next free number."""
        title = " ".join(title.split())
        if not title:
            raise ChoresError("a chore needs a title")
        if not 0 <= priority <= MAX_PRIORITY:
            raise ChoresError(f"priority must be 0 to {MAX_PRIORITY}")
        number = max((chore.number for chore in self), default=0) + 1
        chore = Chore(number, title, sorted(set(tags)), priority)
        self._chores.append(chore)
        return chore

    def get(self, number: int) -> Chore:
        """Return the chore with a number."""
        for chore in self:
            if chore.number == number:
                return chore
        raise ChoresError(f"there is no chore {number}")

    def finish(self, number: int) -> Chore:
        """Mark a chore as done."""
        chore = self.get(number)
        if chore.done:
            raise ChoresError(f"chore {number} is done already")
        chore.done = True
        return chore

    def remove(self, number: int) -> Chore:
        """Take a chore off the list."""
        chore = self.get(number)
        self._chores.remove(chore)
        return chore

    def take_done(self) -> list[Chore]:
        """Take all finished chores off the list and return them."""
        done = [chore for chore in self if chore.done]
        self._chores = [chore for chore in self if not chore.done]
        return done
