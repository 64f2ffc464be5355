"""Which episodes of a run are exported, one by one, each with what its group made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.group_result import GroupResult
from gagar_env.store import RunFolder
from gagar_env.tasks.task import Task

Only = Literal["all", "kept", "passed"]
Pick = Literal["all", "first", "best"]
ONLY: Final[tuple[Only, ...]] = ("all", "kept", "passed")
PICKS: Final[tuple[Pick, ...]] = ("all", "first", "best")

_TASKS = 64
"""Tasks that are kept in memory at one time."""

Note = Callable[[str], None]
"""Told one line on what is left out, or is not written as it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One episode with its group.

    Attributes:
        attempt: Number of the group in its run, where it is known.
        position: Place of the episode in the group.
        task: As it was stored; None where it was not.
    """

    result: GroupResult
    attempt: int | None
    position: int
    episode: Episode
    task: Task | None

    @property
    def instance_id(self) -> str:
        """What the set that the task is from calls it; else the task's id."""
        raw = self.task.extra.get("instance_id") if self.task is not None else None
        return raw if isinstance(raw, str) and raw else self.episode.task_id

    @property
    def reason(self) -> str:
        """Why the grader put it where it is; empty where it did not say."""
        label, verdict = self.result.labels[self.position], self.result.verdict
        return verdict.reasons.get(label, "") if verdict is not None and label is not None else ""

    @property
    def turn_advantages(self) -> tuple[float, ...] | None:
        """Advantages of its turns, where the verdict tells them apart."""
        found = self.result.turn_advantages
        return found[self.position] if found is not None else None


def exported_episodes(run: RunFolder, *, only: Only = "all", pick: Pick = "all", note: Note) -> Iterator[Exported]:
    """The episodes of a run, in the order of its groups.

    Args:
        run: The run.
        only: `kept` takes the valid members of kept groups, on which a learner trains; `passed` those that passed.
        pick: Of the episodes of each task: all, the first, or the best: passed, then valid, then by rank.
        note: Told of an episode that cannot be read; it is left out.
    """
    chosen = None if pick == "all" else _picked(run, only, pick)
    tasks: dict[tuple[str, str], Task | None] = {}
    for number, record in enumerate(run.records()):
        result = record.result
        for position, episode_id in enumerate(result.episode_ids):
            if not _wanted(result, position, only) or (chosen is not None and (number, position) not in chosen):
                continue
            try:
                episode = run.episode(episode_id)
            except (OSError, ValueError, GagarError) as error:
                said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                note(f"episode {episode_id!r} of group {result.group_id!r} is left out: {' '.join(said.split())[:300]}")
                continue
            key = (result.task_id, record.task_digest)
            if key not in tasks:
                if len(tasks) >= _TASKS:
                    tasks.pop(next(iter(tasks)))
                tasks[key] = _task(run, *key, note)
            yield Exported(result=result, attempt=record.attempt, position=position, episode=episode, task=tasks[key])


def patch_text(patch: bytes) -> str | None:
    """The patch as text; None where it is none."""
    try:
        return patch.decode()
    except UnicodeDecodeError:
        return None


def _wanted(result: GroupResult, position: int, only: Only) -> bool:
    if only == "passed":
        return result.passed[position]
    return only == "all" or result.mask[position]


def _picked(run: RunFolder, only: Only, pick: Pick) -> set[tuple[int, int]]:
    """Number of the group and place in it, of one episode of each task."""
    found: dict[str, tuple[tuple[bool, bool, int], tuple[int, int]]] = {}
    for number, record in enumerate(run.records()):
        result = record.result
        for position, rank in enumerate(result.ranks):
            if not _wanted(result, position, only):
                continue
            bad = (not result.passed[position], not result.valid[position], rank or 0)
            worth = bad if pick == "best" else (False, False, 0)
            known = found.get(result.task_id)
            if known is None or worth < known[0]:
                found[result.task_id] = (worth, (number, position))
    return {place for _, place in found.values()}


def _task(run: RunFolder, task_id: str, digest: str, note: Note) -> Task | None:
    try:
        return run.task(task_id, digest)
    except (OSError, ValueError, GagarError) as error:
        note(f"task {task_id!r} of the run cannot be read: {' '.join(str(error).split())[:300]}")
        return None
