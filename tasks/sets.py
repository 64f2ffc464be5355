"""Names of sets of tasks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from gagar_env.errors import TaskError
from gagar_env.tasks.task import TASK_ID


@dataclass(frozen=True, slots=True)
class _Set:
    name: str
    owner: str
    ids: tuple[str, ...]

    @property
    def full(self) -> str:
        return f"{self.owner}/{self.name}" if self.owner else self.name


class SetNames:
    """Sets by name. Where two packages chose the same name, only `<package>/<name>` names theirs."""

    def __init__(self) -> None:
        self._sets: list[_Set] = []

    def add(self, name: str, ids: list[str], *, owner: str = "") -> None:
        """Name `ids`.

        Raises:
            TaskError: If the name is not one, or names other tasks already.
        """
        if not re.match(TASK_ID, name):
            raise TaskError(f"set {name!r}: a name is letters, digits and . _ + -, with / between parts")
        made = _Set(name, owner, tuple(ids))
        for known in self._sets:
            if known.full == made.full:
                if set(known.ids) != set(made.ids):
                    raise TaskError(f"set {made.full!r} is there already, with other tasks")
                return
        self._sets.append(made)

    def names(self) -> list[str]:
        """Each set by its shortest name that is its own."""
        times = Counter(known.name for known in self._sets)
        return sorted(known.name if times[known.name] == 1 else known.full for known in self._sets)

    def get(self, name: str) -> list[str]:
        """Ids of the set of that name; none if there is no such set, or several."""
        short = [known for known in self._sets if known.name == name]
        found = [known for known in self._sets if known.full == name] or (short if len(short) == 1 else [])
        return list(found[0].ids) if found else []
