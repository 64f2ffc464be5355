"""Curricula by measured pass rate: groups are spent where some members pass and some fail."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gagar_env.episode import Episode
from gagar_env.group_result import GroupResult

STATE_VERSION: Final = 1


def mixed_probability(pass_rate: Any, group_size: int) -> Any:
    """The probability that a group is mixed, so that it is kept: 1 - p^G - (1-p)^G.

    Args:
        pass_rate: p in [0, 1], a number or an array.
        group_size: G, 1 or more; a group of 1 is never mixed.

    Raises:
        ValueError: If an argument is out of range.
    """
    p = np.asarray(pass_rate, dtype=np.float64)
    if group_size < 1 or not np.all((p >= 0) & (p <= 1)):
        raise ValueError(f"pass_rate must be in [0, 1] and group_size 1 or more, got {pass_rate} and {group_size}")
    mixed = np.maximum(1.0 - p**group_size - (1.0 - p) ** group_size, 0.0)
    return mixed if mixed.ndim else float(mixed)


class Curriculum:
    """Measures the pass rate of each task, and weighs tasks by how probable a mixed group is.

    The passes and failures of a task, with a Beta prior, give a posterior of its pass rate. It is read
    optimistically, at the point within `optimism` standard deviations of its mean that is nearest to one half. So
    an unseen task has weight 1, like one with pass rate one half, and a solved or an impossible one sinks
    towards `floor` as evidence grows. Evidence fades, as the policy that it is about does: a task that was not tried
    for long comes back. Members without a result (a fault of the infrastructure, masked) count nowhere.

    The weight is a function of what was recorded alone. All methods may be called from any thread.

    Args:
        group_size: G of the groups that will be run, 2 or more.
        prior: Passes and failures that are assumed of an unseen task, above 0.
        half_life: After this many groups per task, on average over all tasks, evidence counts half. None: it never
            fades.
        optimism: In standard deviations, 0 or more.
        sharpness: Weight is the probability of a mixed group, relative to the greatest, to this power; 0 is uniform.
        floor: The least weight, in (0, 1].

    Raises:
        ValueError: If an argument is out of range.
    """

    def __init__(
        self,
        *,
        group_size: int = 8,
        prior: tuple[float, float] = (0.5, 0.5),
        half_life: float | None = 4.0,
        optimism: float = 0.5,
        sharpness: float = 3.0,
        floor: float = 0.05,
    ) -> None:
        _require(group_size >= 2, "group_size", group_size, "2 or more")
        _require(len(prior) == 2 and all(0 < n < math.inf for n in prior), "prior", prior, "two numbers above 0")
        _require(half_life is None or 0 < half_life < math.inf, "half_life", half_life, "above 0, or None")
        _require(0 <= optimism < math.inf, "optimism", optimism, "0 or more")
        _require(0 <= sharpness < math.inf, "sharpness", sharpness, "0 or more")
        _require(0 < floor <= 1, "floor", floor, "in (0, 1]")
        self.group_size, self.prior, self.half_life = group_size, (float(prior[0]), float(prior[1])), half_life
        self.optimism, self.sharpness, self.floor = optimism, sharpness, floor
        self._lock = threading.RLock()
        self._time = 0.0
        self._row: dict[str, int] = {}
        self._evidence = np.zeros((0, 3))
        """Passes, failures, and when they were last brought up to date, `(tasks, 3)`."""
        self.changes = 0
        """How often anything was recorded: weights stay what they are in between."""

    def add(self, task_ids: Iterable[str]) -> NDArray[np.int64]:
        """Make tasks known, as unseen if they are new; their rows, for `weights`."""
        with self._lock:
            rows = [self._row.setdefault(task_id, len(self._row)) for task_id in task_ids]
            if more := len(self._row) - len(self._evidence):
                self._evidence = np.concatenate([self._evidence, np.tile([0.0, 0.0, self._time], (more, 1))])
            return np.array(rows, dtype=np.int64)

    def update(self, group: GroupResult | Sequence[Episode]) -> None:
        """Count a group, dropped ones as well: without those that all passed or all failed, rates would be wrong."""
        if isinstance(group, GroupResult):
            task_id, valid, passed = group.task_id, group.valid, group.passed
        elif not group:
            return
        else:
            task_id = group[0].task_id
            valid, passed = tuple(e.valid for e in group), tuple(e.passed for e in group)
        won = sum(v and p for v, p in zip(valid, passed, strict=True))
        self.update_counts(task_id, passed=won, failed=sum(valid) - won)

    def update_counts(self, task_id: str, *, passed: float, failed: float) -> None:
        """Count one group of a task by its numbers. Without a result in it, nothing changes.

        Raises:
            ValueError: If a number is negative or not finite.
        """
        _require(0 <= passed < math.inf, f"passed of {task_id}", passed, "0 or more")
        _require(0 <= failed < math.inf, f"failed of {task_id}", failed, "0 or more")
        if not passed + failed:
            return
        with self._lock:
            row = int(self.add([task_id])[0])
            self._time += 1.0 / len(self._row)
            won, lost = self._faded(np.array([row]))[0]
            self._evidence[row] = (won + passed, lost + failed, self._time)
            self.changes += 1

    def weights(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Weights in [floor, 1] of these rows."""
        with self._lock:
            a, b = self._posterior(rows)
        n = a + b
        mean, deviation = a / n, np.sqrt(a * b / (n * n * (n + 1.0)))
        reach = self.optimism * deviation
        rate = np.clip(0.5, np.maximum(mean - reach, 0.0), np.minimum(mean + reach, 1.0))
        value = mixed_probability(rate, self.group_size) / mixed_probability(0.5, self.group_size)
        weights: NDArray[np.float64] = np.clip(value**self.sharpness, self.floor, 1.0)
        return weights

    def weight(self, task_id: str) -> float:
        """Weight of one task; of an unseen one, if it is not known."""
        return float(self.weights(self._rows_of(task_id))[0])

    def pass_rate(self, task_id: str) -> float:
        """Estimated pass rate: the mean of the posterior; of the prior, if the task is not known."""
        with self._lock:
            a, b = self._posterior(self._rows_of(task_id))
        return float(a[0] / (a[0] + b[0]))

    def state_dict(self) -> dict[str, Any]:
        """What was recorded, for JSON."""
        with self._lock:
            seen = {t: self._evidence[row].tolist() for t, row in self._row.items() if self._evidence[row, :2].any()}
            return {"version": STATE_VERSION, "time": self._time, "tasks": seen}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there. Tasks that it does not name are unseen; those that are not known here are remembered.

        Raises:
            ValueError: If it is no such state; nothing is changed then.
        """
        version = state.get("version") if isinstance(state, Mapping) else None
        _require(version == STATE_VERSION, "state of a curriculum: version", version, str(STATE_VERSION))
        time, tasks = state.get("time"), state.get("tasks")
        _require(_number(time), "state of a curriculum: time", time, "0 or more")
        _require(isinstance(tasks, Mapping), "state of a curriculum: tasks", type(tasks).__name__, "an object")
        assert isinstance(tasks, Mapping)
        assert isinstance(time, int | float)
        for task_id, row in tasks.items():
            fits = isinstance(row, list | tuple) and len(row) == 3 and all(map(_number, row)) and row[2] <= time
            _require(fits, f"state of a curriculum: {task_id}", row, "[passes, failures, time]")
        with self._lock:
            self.changes += 1
            self._time = float(time)
            rows = self.add(tasks)
            self._evidence[:] = (0.0, 0.0, self._time)
            if len(rows):
                self._evidence[rows] = list(tasks.values())

    def _rows_of(self, task_id: str) -> NDArray[np.int64]:
        with self._lock:
            return np.array([self._row.get(task_id, -1)], dtype=np.int64)

    def _posterior(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        faded = self._faded(rows)
        return self.prior[0] + faded[:, 0], self.prior[1] + faded[:, 1]

    def _faded(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Passes and failures as they count now; row -1 is an unseen task."""
        if not len(self._evidence):
            return np.zeros((len(rows), 2))
        found = np.where(rows[:, None] >= 0, self._evidence[rows], 0.0)
        if self.half_life is None:
            return found[:, :2]
        faded: NDArray[np.float64] = found[:, :2] * 2.0 ** (-(self._time - found[:, 2:]) / self.half_life)
        return faded


def _number(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < math.inf  # type: ignore[operator]


def _require(ok: bool, name: str, value: object, rule: str) -> None:
    if not ok:
        raise ValueError(f"{name} must be {rule}, got {value}")
