"""From files to groups: each file finds its task, attempts at one task are one group, patches are verified."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from gagar_env.episode import Episode, Outcome, TestReport
from gagar_env.errors import TaskError
from gagar_env.foreign.read import find_trajectories, read_trajectory
from gagar_env.foreign.results import TrustedResults
from gagar_env.foreign.trajectory import Trajectory, TrajectoryError
from gagar_env.sandbox.stoppable import Stoppable
from gagar_env.tasks.registry import load_task, task_ids
from gagar_env.tasks.task import Task
from gagar_env.verify import Verifier

_Made = Episode | tuple[Path, str]

OnLeftOut = Callable[[Path, str], None]
"""Told a file that is left out, and one line that names it and says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignGroup:
    """Attempts of other harnesses at one task.

    Attributes:
        episodes: One for each file, in the order of the files; their ids are the files' paths.
    """

    task: Task
    group_id: str
    episodes: tuple[Episode, ...]


def foreign_groups(
    sources: Iterable[Path],
    tasks: Mapping[str, Task] | None = None,
    *,
    task: Task | None = None,
    verifier: Verifier | None = None,
    trusted: TrustedResults | None = None,
    group_size: int | None = None,
    jobs: int | None = None,
    on_left_out: OnLeftOut | None = None,
) -> Iterator[ForeignGroup]:
    """Trajectories of other harnesses as groups, in the order in which their tasks are first met.

    The files are read twice, first for their tasks' names and then group by group, so that memory holds one group.

    Args:
        sources: Files, and folders to search.
        tasks: What the trajectories may be of: id -> task. Also found by the `instance_id` of a task's raw row. None
            takes those that are registered, by their ids.
        task: What all of them are of, whatever their files say.
        verifier: Judges the patches; one with its defaults if there is none.
        trusted: Results to take in place of a verification. What it does not name is left out.
        group_size: Most attempts of one group, more make further groups; None puts all at one task into one.
        jobs: Verifications at one time; one for each processor if None.
        on_left_out: Told of each file that is left out.

    Raises:
        TrajectoryError: If a source is not there, or holds no trajectory at all.
        ValueError: If `group_size` or `jobs` is below 1.
    """
    workers = jobs or len(os.sched_getaffinity(0))
    if (group_size is not None and group_size < 1) or workers < 1:
        raise ValueError(f"group_size and jobs must be 1 or more, got {group_size} and {jobs}")
    told = on_left_out or (lambda path, reason: None)
    places = list(sources)
    files = list(find_trajectories(places))
    if not files:
        raise TrajectoryError(f"{', '.join(map(str, places))}: there is no trajectory in it")
    by_task = _sorted_by_task(files, _finder(tasks), task, told)
    judge = verifier or Verifier()
    return _made(by_task, judge, trusted, group_size, workers, told)


def _finder(tasks: Mapping[str, Task] | None) -> Callable[[str], Task | None]:
    """Finds the task of a name; raises `TaskError` for one that is broken."""
    if tasks is None:
        registered = frozenset(task_ids())
        return cache(lambda name: load_task(name) if name in registered else None)
    rows = {str(t.extra["instance_id"]): t for t in tasks.values() if isinstance(t.extra.get("instance_id"), str)}
    return {**rows, **tasks}.get


def _sorted_by_task(
    files: Sequence[Path], find: Callable[[str], Task | None], task: Task | None, told: OnLeftOut
) -> list[tuple[Task, list[Path]]]:
    found: dict[str, tuple[Task, list[Path]]] = {}
    for path in files:
        own = _task_of(path, find, task)
        if isinstance(own, str):
            told(path, own)
        else:
            found.setdefault(own.id, (own, []))[1].append(path)
    return list(found.values())


def _task_of(path: Path, find: Callable[[str], Task | None], task: Task | None) -> Task | str:
    """The task of a file, or why it has none."""
    try:
        names = read_trajectory(path).names
        own = task or next((known for known in map(find, names) if known is not None), None)
    except TrajectoryError as error:
        return str(error)
    except TaskError as error:
        return f"{path}: its task is broken: {' '.join(str(error).split())}"
    called = " or ".join(names[:3])
    return own or f"{path}: no task is called {called}: name it with --task, or give --task-file"


def _made(
    by_task: Sequence[tuple[Task, list[Path]]],
    verifier: Verifier,
    trusted: TrustedResults | None,
    group_size: int | None,
    workers: int,
    told: OnLeftOut,
) -> Iterator[ForeignGroup]:
    for task, paths in by_task:
        size = group_size or len(paths)
        for number, start in enumerate(range(0, len(paths), size), 1):
            make = partial(_episode, task, f"{task.id}#{number}", verifier, trusted, len(paths) == 1)
            members: list[Episode] = []
            for made in _side_by_side(make, paths[start : start + size], workers):
                if isinstance(made, Episode):
                    members.append(made)
                else:
                    told(*made)
            if members:
                yield ForeignGroup(task=task, group_id=members[0].group_id, episodes=tuple(members))


def _side_by_side(make: Callable[[Path], _Made], paths: Sequence[Path], workers: int) -> list[_Made]:
    """What `make` gives for each. An interrupt stops test runs that are at work, and begins no other."""
    blocks = [Stoppable() for _ in paths]

    def work(block: Stoppable, path: Path) -> _Made:
        with block:
            return make(path)

    with ThreadPoolExecutor(workers, thread_name_prefix="gagar-foreign") as pool:
        try:
            return list(pool.map(work, blocks, paths))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for block in blocks:
                block.stop()
            raise


def _episode(
    task: Task, group_id: str, verifier: Verifier, trusted: TrustedResults | None, alone: bool, path: Path
) -> Episode | tuple[Path, str]:
    """The episode of a file, or why there is none."""
    try:
        found = read_trajectory(path)
        patch = found.patch or b""
        report = verifier.verify(task, patch) if trusted is None else _trusted(path, task, found, trusted, alone)
    except TrajectoryError as error:
        return path, str(error)
    return Episode(
        id=path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
        group_id=group_id,
        task_id=task.id,
        status=found.status,
        turns=found.turns,
        patch=patch,
        report=report,
        error=found.error,
        first_observation=found.first_observation,
        policy=found.policy,
    )


def _trusted(path: Path, task: Task, found: Trajectory, trusted: TrustedResults, alone: bool) -> TestReport:
    won = trusted.passed(path, (task.id, *found.names), alone=alone)
    if won is None:
        more = "" if alone else "; there are several attempts at its task, so name it by its path"
        raise TrajectoryError(f"{path}: {trusted.source} says nothing of it{more}")
    return TestReport(
        outcome=Outcome.PASSED if won else Outcome.FAILED,
        reason="" if won else f"by {trusted.source}",
        evidence="trusted",
        output_tail=f"not verified here: the result is of {trusted.source}\n",
    )
