"""`evaluate`: episodes of a policy on tasks, side by side, each for itself."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.episode import Episode
from gagar_env.errors import TaskError
from gagar_env.evaluation.report import EvaluationReport, check_k, make_report
from gagar_env.evaluation.rows import EpisodeRow, digest_of, row_of
from gagar_env.evaluation.rows_file import RowsFile
from gagar_env.group_engine import GroupEngine
from gagar_env.jobs import FailedJob, GroupJob
from gagar_env.rollout import Policy, check_policy
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task

OnEpisode = Callable[[Episode, EpisodeRow], None]


@dataclass(frozen=True, slots=True)
class _Job:
    task: Task
    sample: int
    attempt: int


def evaluate(
    policy: Policy,
    tasks: Sequence[str | Task],
    *,
    samples: int = 8,
    k: Sequence[int] = (1, 4),
    seed: int = 0,
    workers: int | None = None,
    retries: int = 1,
    deadline_s: float | None = None,
    sets: Mapping[str, Sequence[str]] | None = None,
    out: Path | str | None = None,
    made_with: Mapping[str, Any] | None = None,
    on_episode: OnEpisode | None = None,
    **env_kwargs: Any,
) -> EvaluationReport:
    """Run `samples` episodes of each task, and report pass rates and the quality of what passed.

    No grader, no groups and no advantages: an episode is judged by the tests alone. Whatever is wrong with one episode
    or one task costs only its own numbers. Episodes are handed out and forgotten; only their rows are kept.

    Args:
        policy: Who acts; called from several threads.
        tasks: Ids or tasks.
        samples: Episodes of each.
        k: For which pass@k, each 1 to `samples`.
        seed: Sample i of every task has the seed `seed + i`, so that two policies meet the same conditions.
        workers: Episodes at one time; by default one for each processor of this process.
        retries: How often an episode without a result is run again, with the same seed.
        deadline_s: Seconds for an episode to act; what still acts then is cut and has no result.
        sets: Names of sets of tasks -> ids, for a total of each.
        out: A JSONL file for the rows. What is in it is not run again: a run that stopped goes on, more `samples`,
            `tasks` or `retries` add to it. Rows of a task that has changed since do not count.
        made_with: What else makes the policy what it is, such as its temperature; `out` of another one is refused.
        on_episode: Called with each new episode and its row, from this thread.
        env_kwargs: Arguments of `RepoEditEnv`: `sandbox`, `action_format`, limits, ...

    Raises:
        ValueError: If a number is out of range, or a task is there twice.
        TypeError: If `policy` is no policy.
        UnknownTaskError: If a task is not known.
        TaskError: If no task could be run at all.
        GagarError: If `out` cannot be written, or was made with other settings.
    """
    wanted = _check(policy, samples, k, seed, workers, retries)
    loaded = {task.id: task for task in (t if isinstance(t, Task) else load_task(t) for t in tasks)}
    if not loaded or len(loaded) != len(tasks):
        raise ValueError(f"evaluate needs tasks, each once: got {len(tasks)} of {len(loaded)} different ids")
    digests = {task_id: digest_of(task) for task_id, task in loaded.items()}
    rows: dict[str, list[EpisodeRow]] = {task_id: [] for task_id in loaded}
    broken: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        file = None
        if out is not None:
            settings = {"policy": policy.name, "seed": seed, **env_kwargs, **(made_with or {})}
            file = stack.enter_context(RowsFile.opened(Path(out), settings))
            for row in file.rows:
                if row.sample < samples and digests.get(row.task_id) == row.digest:
                    rows[row.task_id].append(row)

        def done(row: EpisodeRow) -> None:
            rows[row.task_id].append(row)
            if file is not None:
                file.add(row)

        jobs = deque(job for task in loaded.values() for job in _missing(task, rows[task.id], samples, retries))
        if jobs:
            most = min(len(jobs), workers or len(os.sched_getaffinity(0)))
            run = _Run(policy, jobs, seed, retries, deadline_s, done, on_episode, broken)
            run.all(GroupVectorEnv(jobs[0].task, num_groups=most, group_size=1, **env_kwargs))
    if len(broken) == len(loaded) and not any(rows.values()):
        task_id, why = next(iter(broken.items()))
        raise TaskError(why if task_id in why else f"task {task_id}: {why}")
    return make_report(rows, k=wanted, seed=seed, sets=sets, digests=digests, broken=broken)


class _Run:
    """The episodes that are missing."""

    def __init__(
        self,
        policy: Policy,
        jobs: deque[_Job],
        seed: int,
        retries: int,
        deadline_s: float | None,
        done: Callable[[EpisodeRow], None],
        on_episode: OnEpisode | None,
        broken: dict[str, str],
    ) -> None:
        self._policy, self._jobs, self._seed = policy, jobs, seed
        self._retries, self._deadline_s = retries, deadline_s
        self._done, self._on_episode, self._broken = done, on_episode, broken

    def all(self, env: GroupVectorEnv) -> None:
        """Run them; on an interrupt, what runs is cut, its sandboxes closed, and the interrupt goes on."""
        engine = GroupEngine(
            env, self._policy, deadline_s=self._deadline_s
        )  # tasks are prepared beside others' episodes
        numbers, at_work = itertools.count(), dict[int, _Job]()
        try:
            while self._jobs or at_work:
                while self._jobs and len(at_work) < env.num_groups:
                    job = self._jobs.popleft()
                    if job.task.id not in self._broken:
                        at_work[number := next(numbers)] = job
                        engine.add(GroupJob(number, job.task, self._seed + job.sample))
                if not at_work:
                    continue
                done = engine.take()
                if isinstance(done, FailedJob):
                    del at_work[done.job.number]
                    self._broken.setdefault(done.job.task.id, " ".join(str(done.error).split()))
                else:
                    self._ended(at_work.pop(done.batch.attempt), done.batch.episodes[0])
        finally:
            engine.stop()
            env.close()

    def _ended(self, job: _Job, episode: Episode) -> None:
        row = row_of(episode, job.task, sample=job.sample, attempt=job.attempt)
        if not row.valid and job.attempt < self._retries:
            self._jobs.append(_Job(job.task, job.sample, job.attempt + 1))
        self._done(row)
        if self._on_episode is not None:
            self._on_episode(episode, row)


def _check(
    policy: Policy, samples: int, k: Sequence[int], seed: int, workers: int | None, retries: int
) -> tuple[int, ...]:
    check_policy(policy)
    if samples < 1 or seed < 0 or retries < 0 or (workers is not None and workers < 1):
        raise ValueError(
            "evaluate needs samples and workers of 1 or more and seed and retries of 0 or more, "
            f"got samples={samples}, workers={workers}, seed={seed}, retries={retries}"
        )
    wanted = check_k(k)
    if wanted[-1] > samples:
        raise ValueError(f"pass@{wanted[-1]} cannot be estimated from {samples} samples: raise samples or lower k")
    return wanted


def _missing(task: Task, rows: Sequence[EpisodeRow], samples: int, retries: int) -> list[_Job]:
    """What is still to be run: samples without a valid row, as far as they have tries left."""
    tries = dict.fromkeys(range(samples), 0)
    over = {row.sample for row in rows if row.valid}
    for row in rows:
        tries[row.sample] += 1
    return [_Job(task, n, tried) for n, tried in tries.items() if n not in over and tried <= retries]
