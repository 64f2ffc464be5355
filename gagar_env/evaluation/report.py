"""From rows to the report: per task, per set, and over all."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.evaluation.estimates import Estimate, mean_of, of_task
from gagar_env.evaluation.rows import EpisodeRow, digest_of, row_of
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task

SCHEMA_VERSION: Final = 1
QUALITY: Final = (
    *("lines", "added", "removed", "out_of_scope_files", "out_of_scope_lines"),
    *("turns", "prompt_tokens", "completion_tokens"),
)
"""Measures of passing episodes."""
EFFORT: Final = ("turns", "prompt_tokens", "completion_tokens", "seconds")
"""Measures of all valid episodes."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TaskEvaluation(_Record):
    """One task.

    Attributes:
        digest: Of the task, see `EpisodeRow`.
        episodes: Valid ones: what everything here is over.
        passed: Of these, those that passed.
        invalid: Samples that have no result after all tries; they count nowhere.
        retried: Tries that had no result and were repeated.
        reason: Why there is no result; empty when there is one.
        pass_at: k -> pass@k; a k of more than `episodes` is left out.
        quality: Means over the passing episodes alone; None where none passed, or nothing was counted.
        effort: Means over all valid episodes.
    """

    task_id: str
    digest: str = ""
    episodes: int
    passed: int
    invalid: int = 0
    retried: int = 0
    reason: str = ""
    pass_at: dict[int, Estimate] = Field(default_factory=dict)
    quality: dict[str, Estimate | None] = Field(default_factory=dict)
    effort: dict[str, Estimate | None] = Field(default_factory=dict)

    @property
    def has_result(self) -> bool:
        """Whether any episode is valid. A task without one is not a 0."""
        return self.episodes > 0


class SetEvaluation(_Record):
    """Several tasks, each of which counts the same.

    Attributes:
        tasks: All of them.
        no_result: Ids of those without a valid episode; they enter no mean.
        episodes, passed, invalid, retried: Sums over the tasks.
        pass_at: k -> mean over the tasks with at least k valid episodes; None where there is none.
        quality: Means over tasks of their means over passing episodes; tasks without one are left out.
        effort: The same over all valid episodes.
    """

    tasks: int
    no_result: tuple[str, ...] = ()
    episodes: int
    passed: int
    invalid: int
    retried: int
    pass_at: dict[int, Estimate | None]
    quality: dict[str, Estimate | None]
    effort: dict[str, Estimate | None]


class EvaluationReport(_Record):
    """What an evaluation found. Nothing here is graded: there are no groups, ranks or advantages.

    Attributes:
        policy: Names of the policies that acted; more than one only in mixed records.
        k: For which pass@k was wanted.
        overall: All tasks.
        sets: The same for named sets of them.
        tasks: One entry each, in the order asked for.
        faults: Why episodes have no result -> how often.
        intervals: How the 95% intervals were made.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    policy: tuple[str, ...] = ()
    seed: int = 0
    k: tuple[int, ...]
    overall: SetEvaluation
    sets: dict[str, SetEvaluation] = Field(default_factory=dict)
    tasks: tuple[TaskEvaluation, ...]
    faults: dict[str, int] = Field(default_factory=dict)
    graded: Literal[False] = False
    intervals: str = (
        "95%; pass@k of a task: Wilson, through 1 - (1 - p)^k; other numbers of a task: bootstrap over its episodes; "
        "sets: bootstrap over tasks, and the task's own interval for a set of one"
    )

    def task(self, task_id: str) -> TaskEvaluation:
        """One task.

        Raises:
            KeyError: If it was not evaluated.
        """
        for each in self.tasks:
            if each.task_id == task_id:
                return each
        raise KeyError(task_id)

    def as_dict(self) -> dict[str, float]:
        """Flat numbers for a logger, without those not known: `pass@1`, `quality/lines`, `effort/turns`, `episodes`."""
        every = self.overall
        found: dict[str, Estimate | None] = {f"pass@{k}": value for k, value in every.pass_at.items()}
        found |= {f"quality/{name}": value for name, value in every.quality.items()}
        found |= {f"effort/{name}": value for name, value in every.effort.items()}
        numbers = {name: each.value for name, each in found.items() if each is not None}
        counts = ("tasks", "episodes", "passed", "invalid", "retried")
        return numbers | {name: getattr(every, name) for name in counts} | {"no_result": len(every.no_result)}


def report_of(
    episodes: Iterable[Episode | EpisodeRow],
    tasks: Sequence[str | Task] | None = None,
    *,
    k: Sequence[int] = (1,),
    seed: int = 0,
    sets: Mapping[str, Sequence[str]] | None = None,
) -> EvaluationReport:
    """The report of recorded episodes, of any engine: training records, `gagar run --out`, rows of an evaluation.

    Args:
        episodes: Records or rows. Read one by one; none is kept. Rows of a task that has changed since do not count.
        tasks: Which tasks they are of; those without an episode have no result. By default those of the episodes, as
            they are registered here; of one that is not, the scope is not known.
        k: For which pass@k, each 1 or more.
        seed: Of the bootstrap.
        sets: Names of sets of tasks -> ids, for a total of each.

    Raises:
        ValueError: If an episode is of another task, k is out of range or more than any task has valid episodes, or
            there is nothing to report.
        UnknownTaskError: If a task of `tasks` is not known.
    """
    wanted = check_k(k)
    known = None if tasks is None else {t.id: t for t in (t if isinstance(t, Task) else load_task(t) for t in tasks)}
    found: dict[str, Task | None] = dict(known or {})
    digests = {task_id: digest_of(task) for task_id, task in (known or {}).items()}  # reads files: once for each task
    rows: dict[str, list[EpisodeRow]] = {task_id: [] for task_id in found}
    for each in episodes:
        if each.task_id not in rows:
            if known is not None:
                raise ValueError(f"an episode is of task {each.task_id!r}, which is none of `tasks`")
            if (task := _registered(each.task_id)) is not None:
                digests[each.task_id] = digest_of(task)
            found[each.task_id] = task
            rows[each.task_id] = []
        own = rows[each.task_id]
        if isinstance(each, Episode):
            digest = digests.get(each.task_id, "")
            own.append(row_of(each, found[each.task_id], sample=len(own), digest=digest))
        else:
            own.append(each)
    current = {
        task_id: [row for row in own if not row.digest or row.digest == digests.get(task_id, own[-1].digest)]
        for task_id, own in rows.items()
    }
    why = "its episodes are of another version of the task"
    changed = {task_id: why for task_id, own in rows.items() if own and not current[task_id]}
    report = make_report(current, k=wanted, seed=seed, sets=sets, digests=digests, broken=changed)
    most = max(task.episodes for task in report.tasks)
    if most and wanted[-1] > most:
        raise ValueError(f"pass@{wanted[-1]} cannot be estimated: no task has more than {most} valid episodes")
    return report


def make_report(
    rows: Mapping[str, Sequence[EpisodeRow]],
    *,
    k: tuple[int, ...],
    seed: int,
    sets: Mapping[str, Sequence[str]] | None = None,
    digests: Mapping[str, str] | None = None,
    broken: Mapping[str, str] | None = None,
) -> EvaluationReport:
    """The report of rows by task; `broken` says why a task could not be run."""
    if not rows:
        raise ValueError("there is no episode and no task to report on")
    tasks = {
        task_id: _task(task_id, own, k, seed, (digests or {}).get(task_id, ""), (broken or {}).get(task_id, ""))
        for task_id, own in rows.items()
    }
    named = {}
    for name, ids in (sets or {}).items():
        if strange := [task_id for task_id in ids if task_id not in tasks]:
            raise ValueError(f"set {name!r} has task {strange[0]!r}, which is not evaluated")
        named[name] = _set([tasks[task_id] for task_id in ids], k, seed)
    faults = Counter(row.error for own in rows.values() for row in _last_tries(own).values() if not row.valid)
    return EvaluationReport(
        policy=tuple(sorted({row.policy for own in rows.values() for row in own if row.policy})),
        seed=seed,
        k=k,
        overall=_set(list(tasks.values()), k, seed),
        sets=named,
        tasks=tuple(tasks.values()),
        faults=dict(faults.most_common()),
    )


def check_k(k: Sequence[int]) -> tuple[int, ...]:
    """`k` in ascending order, each once.

    Raises:
        ValueError: If there is none, or one is below 1.
    """
    wanted = tuple(sorted(set(k)))
    if not wanted or wanted[0] < 1:
        raise ValueError(f"k must be numbers of 1 or more, got {list(k)}")
    return wanted


def _registered(task_id: str) -> Task | None:
    try:
        return load_task(task_id)
    except GagarError:
        return None


def _last_tries(rows: Sequence[EpisodeRow]) -> dict[tuple[object, ...], EpisodeRow]:
    """Of each sample the try that counts: the one with a result, else the last."""
    last: dict[tuple[object, ...], EpisodeRow] = {}
    for row in rows:
        key = (row.policy, row.seed, row.sample)
        if key not in last or not last[key].valid:
            last[key] = row
    return last


def _task(
    task_id: str, rows: Sequence[EpisodeRow], k: tuple[int, ...], seed: int, digest: str, broken: str
) -> TaskEvaluation:
    last = _last_tries(rows)
    valid = [row for row in last.values() if row.valid]
    passing = [row for row in valid if row.passed]
    n, c = len(valid), len(passing)
    faults = Counter(row.error for row in last.values() if not row.valid)
    reason = "" if n else broken or next((f"no valid episode: {why}" for why, _ in faults.most_common(1)), "no episode")
    own = zlib.crc32(task_id.encode()) ^ seed  # tasks do not share their resamples
    return TaskEvaluation(
        task_id=task_id,
        digest=digest,
        episodes=n,
        passed=c,
        invalid=len(last) - n,
        retried=len(rows) - len(last),
        reason=reason,
        pass_at={each: of_task(n, c, each) for each in k if each <= n},
        quality={name: _mean(passing, name, own) for name in QUALITY} if n else {},
        effort={name: _mean(valid, name, own) for name in EFFORT} if n else {},
    )


def _mean(rows: Sequence[EpisodeRow], name: str, seed: int) -> Estimate | None:
    counted = [value for row in rows if (value := getattr(row, name)) is not None]
    return mean_of(counted, seed=seed)


def _set(tasks: Sequence[TaskEvaluation], k: tuple[int, ...], seed: int) -> SetEvaluation:
    def over(found: Iterable[Estimate | None]) -> Estimate | None:
        known = [each for each in found if each is not None]
        if len(known) == 1:
            return known[0].model_copy(update={"count": 1})
        return mean_of([each.value for each in known], seed=seed)

    return SetEvaluation(
        tasks=len(tasks),
        no_result=tuple(task.task_id for task in tasks if not task.has_result),
        episodes=sum(task.episodes for task in tasks),
        passed=sum(task.passed for task in tasks),
        invalid=sum(task.invalid for task in tasks),
        retried=sum(task.retried for task in tasks),
        pass_at={each: over(task.pass_at.get(each) for task in tasks) for each in k},
        quality={name: over(task.quality.get(name) for task in tasks) for name in QUALITY},
        effort={name: over(task.effort.get(name) for task in tasks) for name in EFFORT},
    )
