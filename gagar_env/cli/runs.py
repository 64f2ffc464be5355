"""`gagar run`: many groups, side by side, written down as they end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

from gagar_env.cli.models import Actors, make_grader, make_policy
from gagar_env.cli.options import given_flags
from gagar_env.cli.output import errors_only, need_git, one_line, print_json, progress_line
from gagar_env.cli.runlog import RunLog
from gagar_env.cli.runplan import DONE, Done, Plan, curriculum_plan, plain_plan
from gagar_env.cli.runprint import print_run, warn
from gagar_env.cli.runtally import Tally
from gagar_env.episode import Episode
from gagar_env.errors import GagarError, TaskError
from gagar_env.flag_policy import FlagPolicy
from gagar_env.grading import Grader
from gagar_env.jobs import FailedJob, GroupBatch, group_seed
from gagar_env.pipeline import Pipeline
from gagar_env.provision import kind_for
from gagar_env.rollout import Policy
from gagar_env.sandbox import choose_kind
from gagar_env.store import FailureRecord, RunFolder
from gagar_env.store.lock import driving
from gagar_env.tasks.digest import task_digest
from gagar_env.tasks.task import Task

PARALLEL = 2
"""Groups that act at one time by default: while one is verified and graded, the next acts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run is made with.

    Attributes:
        groups: How many; None is one for each task.
        parallel: Groups at one time; None takes `PARALLEL`, or 1 with a curriculum.
        turns: Commands of an episode; None is what each task says.
        deadline_s: Seconds for a group to act; None is no limit.
        grading: Arguments of `grade_group`: `base`, `scheme`, `strength`, `preserve`.
        out: A new folder for it.
        resume: A run to go on with, in place of `out`.
        stored: What `out` shall say of it, as plain JSON.
        log: Names of loggers, by commas; None is TensorBoard's files where there is a folder.
        prometheus: Port of an endpoint; None for none.
    """

    groups: int | None
    group_size: int
    seed: int
    actors: Actors
    sandbox: str
    flags: str
    out: Path | None
    curriculum: bool = False
    parallel: int | None = None
    turns: int | None = None
    deadline_s: float | None = None
    grading: Mapping[str, Any] = field(default_factory=dict)
    resume: RunFolder | None = None
    stored: dict[str, Any] | None = None
    log: str | None = None
    prometheus: int | None = None


def run(settings: Settings, tasks: Sequence[Task], *, broken: Sequence[tuple[str, str]] = (), as_json: bool) -> bool:
    """Run `settings.groups` groups, round robin over the tasks or as a curriculum draws them, and print a summary.

    An episode that cannot run is recorded as invalid, a task that is broken is left out; the run goes on. Groups are
    written as soon as they are graded, so that a run that is killed loses what was at work and nothing else.

    Args:
        settings: How.
        tasks: The tasks.
        broken: Ids of tasks that do not load, and why: left out from the start.
        as_json: Print the groups as one JSON document.

    Returns:
        Whether every task could be run and any episode has a result.

    Raises:
        TaskError: If no group could be run.
        GagarError: If something does not fit, or the folder cannot be written.
    """
    if not tasks:
        raise TaskError(broken[0][1] if broken else "there is no task to run")
    flag_policy = given_flags(settings.flags)
    if settings.deadline_s == 0:
        raise GagarError("--deadline-s 0: no group can act in that; leave it out for no limit")
    if settings.curriculum and settings.group_size < 2:
        raise GagarError(f"--curriculum needs --group-size 2 or more, got {settings.group_size}")
    policy, grader = make_policy(settings.actors), make_grader(settings.actors)
    need_git()
    choose_kind(settings.sandbox)
    count = settings.groups or len(tasks)
    tally = Tally(as_json=as_json)
    with contextlib.ExitStack() as stack:
        with_folder = settings.out is not None or settings.resume is not None
        log = stack.enter_context(RunLog(settings.log, settings.prometheus, with_folder=with_folder))
        folder = settings.resume or _new_folder(settings, tasks, count)
        if folder is not None:
            stack.enter_context(driving(folder.path))
        if settings.curriculum:
            stack.enter_context(errors_only("gagar_env.sampling"))
        done = DONE if folder is None else Done.of(folder, results=settings.curriculum)
        if settings.resume is not None:
            _check_tasks(settings.resume, tasks, done)
            _count_stored(settings, settings.resume, tally, log)
            if settings.curriculum:  # what it left out stays left out
                tally.broken.update((each.task_id, TaskError(each.error)) for each in done.failures.values())
        log.begin(folder)
        driver = _Driver(settings, tasks, count, policy, folder, tally, log, done)
        try:
            driver.run(grader, flag_policy)
        except KeyboardInterrupt:
            if folder is not None:
                warn(f"stopped; go on with `gagar run --resume {folder.path}`")
            raise
    return _end(tally, policy, folder, broken)


class _Driver:
    """Runs what is left of the plan, and writes and counts what ends."""

    def __init__(
        self,
        settings: Settings,
        tasks: Sequence[Task],
        count: int,
        policy: Policy,
        folder: RunFolder | None,
        tally: Tally,
        log: RunLog,
        done: Done,
    ) -> None:
        self._settings, self._policy, self._folder, self._tally, self._log = settings, policy, folder, tally, log
        make = curriculum_plan if settings.curriculum else plain_plan
        self._parallel = settings.parallel or (1 if settings.curriculum else PARALLEL)
        self._plan: Plan = make(
            tasks,
            count=count,
            group_size=settings.group_size,
            seed=settings.seed,
            at_once=self._parallel,
            run_id="" if folder is None else folder.id,
            done=done,
        )
        self._left = count - len(done.groups)

    def run(self, grader: Grader | None, flag_policy: FlagPolicy) -> None:
        columns = (TextColumn("groups"), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with progress_line(*columns) as progress:
            bar = progress.add_task("", total=self._left)

            def failed(job: FailedJob) -> None:
                progress.update(bar, advance=1, description=job.job.task.id)
                self._failed(job)

            with Pipeline(
                self._policy,
                grader,
                group_size=self._settings.group_size,
                groups=self._parallel,
                flag_policy=flag_policy,
                deadline_s=self._settings.deadline_s,
                on_failed=failed,
                grading=self._settings.grading,
                turns=self._settings.turns,
                sandbox=self._settings.sandbox,
                action_format="tools" if self._settings.actors.native_tools else "bash",
            ) as pipeline:
                self._log.watch(pipeline)
                for jobs in self._plan:
                    for batch in pipeline.run(jobs):
                        self._ended(batch)
                        progress.update(bar, advance=1, description=batch.task.id)
            for number, task_id in self._plan.skipped:
                self._write_failure(number, task_id, "its task could not be run before")

    def _ended(self, batch: GroupBatch) -> None:
        if self._folder is not None:
            batch = _named(batch)
            self._folder.add(batch.result, batch.episodes, task=batch.task, attempt=batch.attempt)
        self._log.log(batch)
        self._plan.ended(batch.attempt, batch.result)
        kind = kind_for(batch.task, self._settings.sandbox)
        self._tally.add(batch.attempt, batch.result, batch.episodes, seed=batch.seed, sandbox=kind)

    def _failed(self, failed: FailedJob) -> None:
        job = failed.job
        self._plan.failed(job.number, job.task.id, str(failed.error))
        self._log.failed()
        self._tally.broken.setdefault(job.task.id, failed.error)
        self._write_failure(job.number, job.task.id, str(failed.error))

    def _write_failure(self, number: int, task_id: str, error: str) -> None:
        if self._folder is not None:
            self._folder.add_failure(FailureRecord(attempt=number, task_id=task_id, error=one_line(error)))


def _new_folder(settings: Settings, tasks: Sequence[Task], count: int) -> RunFolder | None:
    if settings.out is None:
        return None
    about = {**(settings.stored or {}), "group_count": count, "task_ids": [task.id for task in tasks]}
    try:
        return RunFolder.create(settings.out, about)
    except FileExistsError as error:
        raise GagarError(f"--out {settings.out} is a file: name a folder") from error
    except OSError as error:
        raise GagarError(f"--out {settings.out}: cannot be written: {error.strerror}") from error


def _named(batch: GroupBatch) -> GroupBatch:
    """The same, its episodes named by group and place: a group that is run again replaces what was left of it."""
    names = tuple(f"{batch.result.group_id}-{place}" for place in range(len(batch.episodes)))
    return GroupBatch(
        result=batch.result.model_copy(update={"episode_ids": names}),
        episodes=tuple(e.model_copy(update={"id": name}) for e, name in zip(batch.episodes, names, strict=True)),
        task=batch.task,
        attempt=batch.attempt,
        seed=batch.seed,
    )


def _check_tasks(folder: RunFolder, tasks: Sequence[Task], done: Done) -> None:
    """Refuse to go on with other tasks than those that the run was begun with: its groups would be others too."""
    stored = folder.settings.get("task_ids")
    now = [task.id for task in tasks]
    if stored != now:
        then = set(stored) if isinstance(stored, list) else set()
        other = next(iter(sorted(then ^ set(now))), "their order")
        raise GagarError(f"{folder.path}: the tasks are not those that the run was begun with: {other} differs")
    for task in tasks:
        if (digest := done.digests.get(task.id)) and digest != task_digest(task):
            raise GagarError(f"{folder.path}: task {task.id} has changed since the run was begun: begin a new one")


def _count_stored(settings: Settings, folder: RunFolder, tally: Tally, log: RunLog) -> None:
    for record in folder.records():
        if record.attempt is None:
            continue
        episodes = tuple(_readable(folder, record.result.episode_ids))
        log.counts.count(record.result, episodes)
        kind = episodes[0].sandbox if episodes and episodes[0].sandbox else settings.sandbox
        seed = group_seed(settings.seed, record.attempt)
        tally.add(record.attempt, record.result, episodes, seed=seed, sandbox=kind)


def _readable(folder: RunFolder, episode_ids: Sequence[str]) -> Iterator[Episode]:
    for episode_id in episode_ids:
        if (episode := _episode(folder, episode_id)) is not None:
            yield episode


def _episode(folder: RunFolder, episode_id: str) -> Episode | None:
    try:
        return folder.episode(episode_id)
    except (OSError, GagarError) as error:
        warn(f"episode {episode_id} cannot be read: {error}; `gagar runs verify {folder.path}` says more")
        return None


def _end(tally: Tally, policy: Policy, folder: RunFolder | None, broken: Sequence[tuple[str, str]]) -> bool:
    if not tally.groups:
        task_id, why = next(iter(tally.broken.items()))
        if not isinstance(why, TaskError) or task_id in str(why):
            raise why
        raise TaskError(f"task {task_id}: {why}")
    totals = tally.grading.totals()
    if tally.as_json:
        print_json([shown for _, shown in sorted(tally.shown.items())])
    else:
        print_run(tally, totals, policy, None if folder is None else folder.path)
    if totals.all_failed:
        warn(f"the grader failed on every group; advantages are the plain ones: {one_line(tally.first_fallback)}")
    for task_id, reason in (*broken, *((task_id, str(error)) for task_id, error in tally.broken.items())):
        warn(f"task {task_id} is left out: {one_line(reason)}")
    return not broken and not tally.broken and tally.any_valid
