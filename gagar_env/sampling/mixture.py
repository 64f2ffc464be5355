"""What is sampled: sources of tasks with weights, nested as deep as you like."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from gagar_env.errors import TaskError
from gagar_env.sampling.gymtask import GymTask
from gagar_env.tasks.registry import load_tasks
from gagar_env.tasks.task import Task

Item: TypeAlias = "Task | GymTask"
"""What a group is run on."""
Source: TypeAlias = "str | Iterable[Item | str] | Mixture | Mapping[str, Source]"
"""The name of a set, such as "gagar/builtin"; tasks, names of tasks and sets, other environments; or a mixture; or its
sources, then of equal weight."""
By = Literal["source", "task"]

logger = logging.getLogger(__name__)


class Mixture:
    """Sources of tasks, each with its share of the groups.

    Args:
        sources: Name -> tasks, the name of a set, or a mixture. Names of sources have no "/".
        weights: Name -> weight; 1 where none is given. Only proportions count.
        by: What the weights are of. `source`: its share, however many tasks it has. `task`: each of its tasks, so that
            a source's share grows with their number.
        task_weights: Id -> weight within its source; 1 where none is given. Of tasks directly in `sources`.

    Attributes:
        sources: Name -> tuple of tasks, or mixture.
        shares: Name -> share of the groups; they sum to 1.

    Raises:
        TaskError: If a name is unknown, or two different tasks of one source have the same.
        ValueError: If a weight is not finite and above 0, a name is unknown, or a source is empty.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        weights: Mapping[str, float] | None = None,
        *,
        by: By = "source",
        task_weights: Mapping[str, float] | None = None,
    ) -> None:
        if not sources:
            raise ValueError("a mixture needs at least one source")
        if by not in ("source", "task"):
            raise ValueError(f"by must be 'source' or 'task', got {by!r}")
        if bad := [name for name in sources if not name or "/" in name]:
            raise ValueError(f"a source's name must be a text without '/', got {bad[0]!r}")
        self.sources = {name: _read(name, source) for name, source in sources.items()}
        self.task_weights = _checked("task_weights", task_weights, {i.id for s in self._leaves() for i in s}, "task")
        given = _checked("weights", weights, self.sources, "source")
        greatest = max(given.get(name, 1.0) for name in self.sources)
        size = {name: len(source) if by == "task" else 1 for name, source in self.sources.items()}
        raw = {name: given.get(name, 1.0) / greatest * size[name] for name in self.sources}
        whole = math.fsum(raw.values())
        self.shares = {name: value / whole for name, value in raw.items()}

    def _leaves(self) -> Iterator[tuple[Item, ...]]:
        for source in self.sources.values():
            if isinstance(source, tuple):
                yield source

    def __len__(self) -> int:
        """Number of tasks, those of inner mixtures included."""
        return sum(len(source) for source in self.sources.values())

    def __iter__(self) -> Iterator[Item]:
        """All tasks, those of inner mixtures included."""
        for source in self.sources.values():
            yield from source

    def __repr__(self) -> str:
        shares = ", ".join(f"{name} {share:.3g}" for name, share in self.shares.items())
        return f"<Mixture of {len(self)} tasks: {shares}>"


def as_mixture(tasks: Source) -> Mixture:
    """A mixture as it is; sources get equal weights, and plain tasks are one source named `tasks`."""
    if isinstance(tasks, Mixture):
        return tasks
    return Mixture(tasks) if isinstance(tasks, Mapping) else Mixture({"tasks": tasks})


def _read(name: str, source: Source) -> tuple[Item, ...] | Mixture:
    if isinstance(source, Mixture):
        return source
    if isinstance(source, Mapping):
        return Mixture(source)
    if isinstance(source, Task | GymTask):
        raise ValueError(f"source {name!r}: must be a list of tasks, not one {type(source).__name__}")
    found: dict[str, Item] = {}
    twice: dict[str, None] = {}
    for item in _items([source] if isinstance(source, str) else source):
        if not isinstance(item, Task | GymTask):
            raise ValueError(f"source {name!r}: holds a {type(item).__name__}: neither a task nor a name of tasks")
        known = found.setdefault(item.id, item)
        if known is item:
            continue
        if known != item:
            raise TaskError(f"source {name!r}: two different tasks have the id {item.id!r}")
        twice.setdefault(item.id)
    if twice:
        more = f", as are {len(twice) - 1} more" if len(twice) > 1 else ""
        logger.warning("source %r: task %s is in it twice and counts once%s", name, next(iter(twice)), more)
    if not found:
        raise ValueError(f"source {name!r} has no task")
    return tuple(found.values())


def _items(entries: Iterable[Item | str]) -> Iterator[Item]:
    for entry in entries:
        if isinstance(entry, str):
            yield from load_tasks(entry)
        else:
            yield entry


def _checked(what: str, given: Mapping[str, float] | None, known: Iterable[str], kind: str) -> dict[str, float]:
    weights, names = dict(given or {}), set(known)
    if unknown := sorted(set(weights) - names):
        raise ValueError(f"{what} names {unknown[0]!r}, which is no {kind} of this mixture")
    for name, value in weights.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise ValueError(f"{what}: {name} must be finite and above 0, got {value!r}: leave out what is not wanted")
    return {name: float(value) for name, value in weights.items()}
