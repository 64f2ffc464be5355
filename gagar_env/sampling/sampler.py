"""Which task the next group works on: `Sampler`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gagar_env.episode import Episode
from gagar_env.errors import TaskError
from gagar_env.group_result import GroupResult
from gagar_env.jobs import group_seed
from gagar_env.sampling.curriculum import Curriculum
from gagar_env.sampling.mixture import Item, Mixture, Source, as_mixture
from gagar_env.sampling.strata import Strata, check_strata_state
from gagar_env.tasks.task import Task

STATE_VERSION: Final = 1

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One group to run.

    Attributes:
        number: Its number over all workers, from 0. No two workers get the same.
        task: What to run it on.
        source: Where that comes from, such as "code/easy".
        seed: For the group: 31 bits from the sampler's seed and the number.
    """

    number: int
    task: Item
    source: str
    seed: int


class Sampler:
    """Draws tasks for groups from a mixture, without end.

    A source is chosen by its share, then a task in it: both by `Strata`, so that shares hold at any time and not only
    on average, each task comes once in each epoch of its source, and none is starved. With a curriculum, tasks of a
    source are weighed by it; shares of sources stay what they are. Groups of other environments (`GymTask`) have
    weight 1 there: what they learn from is their returns, not whether they pass.

    The draws are a function of the mixture, the seed and what `update` was given. All methods may be called from any
    thread.

    Several workers draw from one sequence: the worker of `rank` r gets draws r, r + world_size, ..., so that all
    together follow the mixture and no two share a draw or its seed. With a curriculum, give every worker the results
    of all, in one order, before the next draw, if they are to agree on the sequence; without that, each follows what
    it measured.

    Args:
        tasks: A mixture, sources by name, or tasks.
        seed: 0 or more.
        curriculum: Weighs tasks by measured pass rate; None draws them by their weights in the mixture alone.
        rank: Number of this worker.
        world_size: Number of workers.

    Raises:
        TaskError: If a task is unknown.
        ValueError: If an argument is out of range.
    """

    def __init__(
        self,
        tasks: Source,
        *,
        seed: int = 0,
        curriculum: Curriculum | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if seed < 0 or world_size < 1 or not 0 <= rank < world_size:
            raise ValueError(
                "a sampler needs seed >= 0, world_size >= 1 and rank below world_size; "
                f"got {seed}, {world_size} and {rank}"
            )
        self.mixture = as_mixture(tasks)
        self.curriculum = curriculum
        self.left_out: dict[str, str] = {}
        """Id of each task that is not drawn any more -> why."""
        self._seed, self._rank, self._world_size = seed, rank, world_size
        self._lock = threading.RLock()
        self._drawn = 0
        self._nodes: dict[str, _Node] = {}
        self._root = self._node("", self.mixture)
        self._measured = {item.id for item in self.mixture if isinstance(item, Task)}

    def __iter__(self) -> Iterator[Draw]:
        return self

    def __next__(self) -> Draw:
        """The next group of this worker.

        Raises:
            TaskError: If every task was left out.
        """
        with self._lock:
            for place in range(self._world_size):
                path, item = self._root.draw(self.curriculum)
                if place == self._rank:
                    mine, number = (path, item), self._drawn + place
            self._drawn += self._world_size
        return Draw(number=number, task=mine[1], source=mine[0], seed=group_seed(self._seed, number))

    def update(self, group: GroupResult | Sequence[Episode]) -> None:
        """Tell the curriculum what became of a group, dropped or kept. Other environments' are not counted."""
        if self.curriculum is None or not group:
            return
        task_id = group.task_id if isinstance(group, GroupResult) else group[0].task_id
        if task_id in self._measured:
            self.curriculum.update(group)

    def leave_out(self, task_id: str, why: str) -> None:
        """Draw a task no more, such as one that turned out to be broken. It is not part of the state."""
        with self._lock:
            for node in self._nodes.values():
                node.leave_out(task_id)
            self.left_out[task_id] = why
        logger.warning("task %s is left out: %s", task_id, why)

    def find(self, source: str, task_id: str) -> Item | None:
        """The task of that id in a source, if there is one."""
        node = self._nodes.get(source)
        return next((item for item in node.items if item.id == task_id), None) if node is not None else None

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next draws depend on, for JSON; the same for all workers after as many draws each."""
        with self._lock:
            return {
                "version": STATE_VERSION,
                "seed": self._seed,
                "drawn": self._drawn,
                "strata": {path: node.strata.state_dict() for path, node in self._nodes.items()},
                "curriculum": None if self.curriculum is None else self.curriculum.state_dict(),
            }

    def load_state_dict(self, state: Mapping[str, Any]) -> list[str]:
        """Go on from there: the next draws are those that would have come without a stop.

        Where tasks or sources have changed, those that are new start as new ones and those that are gone are forgotten
        (but for their measured pass rates); the others go on. The number of workers may be another.

        Returns:
            What has changed, one line each; also logged.

        Raises:
            ValueError: If it is no state of a sampler with this seed; nothing is changed then.
        """
        strata = self._check(state)
        rates = state.get("curriculum")
        notes = []
        with self._lock:
            if self.curriculum is not None and rates is not None:
                self.curriculum.load_state_dict(rates)
            elif self.curriculum is not None:
                notes.append("the state has no pass rates: the curriculum goes on with what it has")
            elif rates is not None:
                notes.append("the state has pass rates and this sampler no curriculum: they are not used")
            for path, node in self._nodes.items():
                where = f"source {path!r}" if path else "the mixture"
                notes += _changes(where, node, strata.get(path))
                node.strata.load_state_dict(strata.get(path, {}))
            notes += [f"source {path!r} is gone" for path in strata if path not in self._nodes]
            self._drawn = int(state["drawn"])
        for note in notes:
            logger.warning("sampling goes on: %s", note)
        return notes

    def _check(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        version = state.get("version") if isinstance(state, Mapping) else None
        if version != STATE_VERSION:
            raise ValueError(f"state of a sampler: version must be {STATE_VERSION}, got {version!r}")
        if state.get("seed") != self._seed:
            raise ValueError(f"state of a sampler: it was made with seed {state.get('seed')!r}, not {self._seed}")
        drawn, strata = state.get("drawn"), state.get("strata")
        if type(drawn) is not int or drawn < 0 or not isinstance(strata, Mapping):
            raise ValueError("state of a sampler: `drawn` must be a count and `strata` an object")
        for path, rows in strata.items():
            check_strata_state(rows, f"state of a sampler: strata {path!r}")
        return strata

    def _node(self, path: str, source: Mixture | Sequence[Item], weights: Mapping[str, float] | None = None) -> _Node:
        node = _Node(path, source, weights or {}, self._seed, self.curriculum)
        self._nodes[path] = node
        if isinstance(source, Mixture):
            for name, inner in source.sources.items():
                node.children.append(self._node(f"{path}/{name}" if path else name, inner, source.task_weights))
        return node


class _Node:
    """A mixture with its sources, or a source with its tasks."""

    def __init__(
        self,
        path: str,
        source: Mixture | Sequence[Item],
        weights: Mapping[str, float],
        seed: int,
        curriculum: Curriculum | None,
    ) -> None:
        self.path = path
        self.children: list[_Node] = []
        self.items: tuple[Item, ...] = () if isinstance(source, Mixture) else tuple(source)
        shares = source.shares if isinstance(source, Mixture) else {i.id: weights.get(i.id, 1.0) for i in source}
        self._weights = np.array(list(shares.values()), dtype=np.float64)
        self.strata = Strata(tuple(shares), salt=f"{seed} {path}")
        self._measured = np.array([isinstance(item, Task) for item in self.items], dtype=np.bool_)
        self._rows: NDArray[np.int64] | None = None
        self._known: tuple[int, NDArray[np.float64]] | None = None
        if curriculum is not None and self._measured.any():
            self._rows = curriculum.add(item.id for item in self.items if isinstance(item, Task))

    def leave_out(self, task_id: str) -> None:
        """Draw it no more."""
        for place, item in enumerate(self.items):
            if item.id == task_id:
                self._weights[place] = 0.0

    def is_empty(self) -> bool:
        """Whether there is nothing left to draw."""
        return all(c.is_empty() for c in self.children) if self.children else not self._weights.any()

    def draw(self, curriculum: Curriculum | None) -> tuple[str, Item]:
        """Path of a source and a task of it."""
        weights = self._weights
        if self.children:
            weights = np.where([child.is_empty() for child in self.children], 0.0, weights)
        if not weights.any():
            raise TaskError("no task is left to draw: every one was left out")
        if self.children:
            return self.children[self.strata.draw(weights)].draw(curriculum)
        if curriculum is not None and self._rows is not None:
            weights = weights.copy()
            weights[self._measured] *= self._favour(curriculum, self._rows)
        return self.path, self.items[self.strata.draw(weights)]

    def _favour(self, curriculum: Curriculum, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weights by the curriculum, computed again where it has changed: drawing for many workers is then cheap."""
        if self._known is None or self._known[0] != curriculum.changes:
            self._known = (curriculum.changes, curriculum.weights(rows))
        return self._known[1]


def _changes(where: str, node: _Node, state: Mapping[str, Any] | None) -> list[str]:
    if state is None:
        return [f"{where} is new"]
    kind = "source" if node.children else "task"
    now, then = set(node.strata.names), set(state)
    lines = []
    for names, what in ((now - then, "new"), (then - now, "gone")):
        if names:
            shown = ", ".join(sorted(names)[:3]) + (", ..." if len(names) > 3 else "")
            lines.append(f"{where}: {len(names)} {kind}{'s' if len(names) > 1 else ''} {what} ({shown})")
    return lines
