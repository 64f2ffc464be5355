"""Grading once more what was run before: stored groups, and those of other harnesses. Nothing is run or verified again.

A stored group is graded with its own seed, labels, base and settings, so the same grader gives the same result, bit for
bit. Its task is the one that was stored with it, or the registered one where that no longer works.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

from gagar_env.agents.graders.agentic.votes import tau_b
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.errors import GagarError
from gagar_env.foreign import ForeignGroup
from gagar_env.grading import Grader, check_grader
from gagar_env.grading_calls import GradingCalls
from gagar_env.group import grade_group
from gagar_env.group_result import GroupResult
from gagar_env.in_order import in_order
from gagar_env.store import RunFolder
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task
from gagar_env.wrappers.batches import GroupBatch

logger = logging.getLogger(__name__)

KEPT_SETTINGS: Final = ("base", "scheme", "strength", "preserve", "turn_strength")
"""Arguments of `grade_group` that a stored group has, and keeps unless they are given."""

_TASKS: Final = 256
"""Tasks that are kept in memory at one time."""

OnLeftOut = Callable[[str, str], None]
"""Told the id of a group that is left out, and one line that says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What grading a group again came to.

    Attributes:
        tau: Kendall's tau-b of the ranks before and after, over the passing episodes; None where one has no ranking.
        changed: Episodes whose advantage is another one, beyond rounding.
        episodes: All of the group.
        sum_old, sum_new: Sums of the final advantages over the passing episodes; both equal `sum_before`.
    """

    tau: float | None
    changed: int
    episodes: int
    sum_before: float
    sum_old: float
    sum_new: float


def compare(old: GroupResult, new: GroupResult) -> Change:
    """How two gradings of one group differ.

    Raises:
        ValueError: If they are of different episodes.
    """
    if old.episode_ids != new.episode_ids:
        raise ValueError(f"groups {old.group_id!r} and {new.group_id!r} do not have the same episodes")
    ranks = [(a, b) for a, b in zip(old.ranks, new.ranks, strict=True) if a is not None and b is not None]
    tau = tau_b([a for a, _ in ranks], [b for _, b in ranks]) if old.graded and new.graded and len(ranks) > 1 else None
    pairs = zip(old.advantages, new.advantages, strict=True)
    return Change(
        tau=tau,
        changed=sum(not math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for a, b in pairs),
        episodes=len(new.episode_ids),
        sum_before=new.sum_before,
        sum_old=old.sum_after,
        sum_new=new.sum_after,
    )


def regrade(
    run: RunFolder | Path | str,
    grader: Grader | None,
    *,
    tasks: Mapping[str, Task] | None = None,
    at_once: int = 1,
    on_left_out: OnLeftOut | None = None,
    deadline_s: float | None = None,
    workspace_root: Path | None = None,
    **settings: Any,
) -> Iterator[GroupBatch]:
    """Grade the groups of a run again, in their order.

    A group is left out, with one line, if an episode of it or its task cannot be had; the others go on.

    Args:
        run: A run, or its folder. Nothing in it is changed.
        grader: Ranks the passing episodes; None gives the plain advantages.
        tasks: Tasks to take in place of the stored ones, by id.
        at_once: Groups that are graded at one time.
        on_left_out: Told of each group that is left out; by default a warning is logged.
        deadline_s: Seconds for the grader, as in `grade_group`.
        workspace_root: Where workspaces are made and kept, as there.
        settings: `base`, `scheme`, `strength`, `preserve` and `turn_strength`, in place of those of each group.

    Yields:
        One batch for each group: `attempt` is its number in the run, `seed` what its labels are drawn with.

    Raises:
        GagarError: If there is no run.
        TypeError: For a setting that there is not.
        ValueError: If a setting, or `at_once`, is out of range.
    """
    if strange := sorted(set(settings) - set(KEPT_SETTINGS)):
        raise TypeError(f"regrade has no setting {strange[0]!r}; it has {', '.join(KEPT_SETTINGS)}")
    _check(at_once, settings)
    asked = _asked(grader, at_once)
    source = run if isinstance(run, RunFolder) else RunFolder.open(Path(run))
    common = {"deadline_s": deadline_s, "workspace_root": workspace_root}
    stored = lru_cache(maxsize=_TASKS)(source.task)  # groups of one task share the object

    def jobs() -> Iterator[Callable[[], GroupBatch | tuple[str, str]]]:
        for number, record in enumerate(source.records()):
            attempt = number if record.attempt is None else record.attempt
            then = partial(stored, record.result.task_id, record.task_digest)
            yield _Stored(source, then, record.result, attempt, asked, tasks or {}, {**common, **settings})

    return _in_order(jobs(), at_once, asked, on_left_out or _warn)


def grade_foreign(
    groups: Iterable[ForeignGroup],
    grader: Grader | None,
    *,
    seed: int = 0,
    at_once: int = 1,
    on_left_out: OnLeftOut | None = None,
    **grading: Any,
) -> Iterator[GroupBatch]:
    """Grade groups of other harnesses, in their order.

    Args:
        groups: See `gagar_env.foreign.foreign_groups`.
        grader: Ranks the passing episodes; None gives the plain advantages.
        seed: The labels of group n are drawn with `seed + n`.
        at_once: Groups that are graded at one time.
        on_left_out: Told of each group whose base tree cannot be had; by default a warning is logged.
        grading: Further arguments of `grade_group`.

    Raises:
        ValueError: If an argument is out of range.
    """
    _check(at_once, {key: grading[key] for key in KEPT_SETTINGS if key in grading})
    asked = _asked(grader, at_once)

    def jobs() -> Iterator[Callable[[], GroupBatch | tuple[str, str]]]:
        for number, group in enumerate(groups):
            yield _Foreign(group, asked, number, {**grading, "seed": seed + number})

    return _in_order(jobs(), at_once, asked, on_left_out or _warn)


@dataclass(frozen=True, slots=True)
class _Stored:
    """Grades one stored group."""

    source: RunFolder
    stored: Callable[[], Task | None]
    old: GroupResult
    attempt: int
    grader: Grader | None
    tasks: Mapping[str, Task]
    settings: Mapping[str, Any]

    def __call__(self) -> GroupBatch | tuple[str, str]:
        old = self.old
        try:
            episodes = tuple(map(self.source.episode, old.episode_ids))
        except (OSError, ValueError, GagarError) as error:
            said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            return old.group_id, f"group {old.group_id}: an episode cannot be read: {_line(said)}"
        kept = {name: getattr(old, name) for name in KEPT_SETTINGS}
        grading = {**kept, "tokens": old.tokens, **self.settings, "seed": old.seed}
        try:
            grade_group(episodes, None, **grading)
        except ValueError as error:  # whatever its task is
            return old.group_id, f"group {old.group_id}: {_line(str(error))}"
        faults: list[str] = []
        for find in (self._given, self.stored, self._registered):
            found = self._graded(find, episodes, grading)
            if isinstance(found, GroupBatch):
                return found
            faults += [found] if found else []
        return old.group_id, f"task {old.task_id} of group {old.group_id}: {faults[0]}: give it with --task-file"

    def _graded(
        self, find: Callable[[], Task | None], episodes: tuple[Episode, ...], grading: Mapping[str, Any]
    ) -> GroupBatch | str:
        """The batch with the task that `find` finds; else why there is none, empty where there is no such task."""
        try:
            if (task := find()) is None:
                return ""
            result = grade_group(episodes, self.grader, task=task, **grading)
        except (GagarError, OSError, ValueError) as error:
            return _line(str(error))
        return GroupBatch(result=result, episodes=episodes, task=task, attempt=self.attempt, seed=self.old.seed)

    def _given(self) -> Task | None:
        return self.tasks.get(self.old.task_id)

    def _registered(self) -> Task:
        return load_task(self.old.task_id)


@dataclass(frozen=True, slots=True)
class _Foreign:
    """Grades one group of another harness."""

    group: ForeignGroup
    grader: Grader | None
    number: int
    grading: Mapping[str, Any]

    def __call__(self) -> GroupBatch | tuple[str, str]:
        group = self.group
        try:
            result = grade_group(group.episodes, self.grader, task=group.task, **self.grading)
        except (GagarError, OSError, ValueError) as error:
            return group.group_id, f"group {group.group_id}: {_line(str(error))}"
        return GroupBatch(
            result=result, episodes=group.episodes, task=group.task, attempt=self.number, seed=self.grading["seed"]
        )


def _asked(grader: Grader | None, at_once: int) -> Grader | None:
    """The grader; where several threads ask it, behind calls that can all be ended."""
    check_grader(grader)
    return grader if grader is None or at_once == 1 else GradingCalls(grader)


def _in_order(
    jobs: Iterator[Callable[[], GroupBatch | tuple[str, str]]],
    at_once: int,
    grader: Grader | None,
    left_out: OnLeftOut,
) -> Iterator[GroupBatch]:
    """The batches, in the order of the jobs; what is left out is told. Gradings that are at work at the end are ended.

    Base trees are not: what makes one finds out by itself.
    """
    end = grader.stop if isinstance(grader, GradingCalls) else lambda: None
    with contextlib.closing(in_order(jobs, at_once, end=end)) as results:
        for found in results:
            if isinstance(found, GroupBatch):
                yield found
            else:
                left_out(*found)


def _check(at_once: int, settings: Mapping[str, Any]) -> None:
    """Find bad settings before anything costs."""
    if at_once < 1:
        raise ValueError(f"at_once must be 1 or more, got {at_once}")
    common: Any = {"group_id": "check", "task_id": "check", "status": EpisodeStatus.SUBMITTED}
    turn = Turn(action="", observation="", completion_tokens=1)
    pair = [
        Episode(id=outcome.value, report=TestReport(outcome=outcome), turns=(turn,), **common)
        for outcome in (Outcome.PASSED, Outcome.FAILED)
    ]
    grade_group(pair, None, **settings)


def _warn(group_id: str, reason: str) -> None:
    logger.warning("left out: %s", reason)


def _line(text: str) -> str:
    return " ".join(text.split())[:400]
