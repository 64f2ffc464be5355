"""Which groups a run is made of, and which of them are left: the same plan for a run that is resumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from gagar_env.errors import GagarError
from gagar_env.group_result import GroupResult
from gagar_env.jobs import GroupJob, group_seed
from gagar_env.sampling import Curriculum, Sampler
from gagar_env.store import FailureRecord, RunFolder
from gagar_env.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a run has already.

    Attributes:
        groups: Number -> the group, without its verdict; None where nobody asks for what came of it.
        failures: Number -> which task could not be run, and why.
        digests: Task -> what it was then.
    """

    groups: Mapping[int, GroupResult | None] = field(default_factory=dict)
    failures: Mapping[int, FailureRecord] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: RunFolder, *, results: bool = True) -> Done:
        """Read it; without `results` only which groups are there, of however many."""
        groups: dict[int, GroupResult | None] = {}
        digests: dict[str, str] = {}
        for record in folder.records():
            if record.attempt is not None:
                groups[record.attempt] = record.result.model_copy(update={"verdict": None}) if results else None
                if record.task_digest:
                    digests.setdefault(record.result.task_id, record.task_digest)
        failures = {failure.attempt: failure for failure in folder.failures()}
        return cls(groups=groups, failures=failures, digests=digests)


DONE: Final = Done()


class Plan(Protocol):
    """Jobs in waves: all of one end before the next is asked for."""

    skipped: list[tuple[int, str]]
    """Number and task of groups that were not tried, since their task cannot be run."""

    def __iter__(self) -> Iterator[Iterator[GroupJob]]: ...

    def ended(self, number: int, result: GroupResult) -> None:
        """Be told of a group."""

    def failed(self, number: int, task_id: str, why: str) -> None:
        """Be told of a task that cannot be run."""


def plain_plan(
    tasks: Sequence[Task], *, count: int, group_size: int, seed: int, at_once: int, run_id: str, done: Done
) -> Plan:
    """Round robin over the tasks, in one wave; tasks that could not be run before are tried again."""
    return _Plain(tasks, _Numbers(count, seed, run_id), done)


def curriculum_plan(
    tasks: Sequence[Task], *, count: int, group_size: int, seed: int, at_once: int, run_id: str, done: Done
) -> Plan:
    """As a curriculum draws them, in waves of `at_once`.

    So the draws depend on the results of all earlier waves, and not on which group was faster. What a run has already
    is told to the curriculum as if it had just ended.
    """
    sampler = Sampler(tasks, seed=seed, curriculum=Curriculum(group_size=group_size))
    return _Drawn(sampler, tasks, _Numbers(count, seed, run_id), at_once, done)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What follows from the number of a group."""

    count: int
    seed: int
    run_id: str

    def job(self, number: int, task: Task) -> GroupJob:
        name = f"{self.run_id}-{number:06d}" if self.run_id else None
        return GroupJob(number=number, task=task, seed=group_seed(self.seed, number), group_id=name)


class _Plain:
    def __init__(self, tasks: Sequence[Task], numbers: _Numbers, done: Done) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._tasks, self._numbers = tasks, numbers
        self._done, self._told = frozenset(done.groups), frozenset(done.failures)
        self._broken: set[str] = set()

    def __iter__(self) -> Iterator[Iterator[GroupJob]]:
        yield self._jobs()

    def _jobs(self) -> Iterator[GroupJob]:
        for number in range(self._numbers.count):
            task = self._tasks[number % len(self._tasks)]
            if number in self._done:
                continue
            if task.id in self._broken:
                if number not in self._told:
                    self.skipped.append((number, task.id))
                continue
            yield self._numbers.job(number, task)

    def ended(self, number: int, result: GroupResult) -> None:
        pass

    def failed(self, number: int, task_id: str, why: str) -> None:
        self._broken.add(task_id)


class _Drawn:
    def __init__(self, sampler: Sampler, tasks: Sequence[Task], numbers: _Numbers, at_once: int, done: Done) -> None:
        self.skipped: list[tuple[int, str]] = []
        self._sampler, self._tasks, self._numbers, self._at_once = sampler, tasks, numbers, at_once
        self._groups = {number: result for number, result in done.groups.items() if result is not None}
        self._failures = {number: failure.error for number, failure in done.failures.items()}

    def __iter__(self) -> Iterator[Iterator[GroupJob]]:
        for start in range(0, self._numbers.count, self._at_once):
            numbers = range(start, min(start + self._at_once, self._numbers.count))
            if len(self._sampler.left_out) >= len({task.id for task in self._tasks}):
                return
            drawn: dict[int, Task] = {}
            for number in numbers:
                task = next(self._sampler).task
                assert isinstance(task, Task)
                drawn[number] = task
                if number in self._groups and (then := self._groups[number].task_id) != task.id:
                    raise GagarError(
                        f"group {number} of the run is of task {then}, and the curriculum now draws {task.id}: "
                        "it cannot be gone on with"
                    )
            known = self._groups.keys() | self._failures.keys()
            jobs = [self._numbers.job(n, task) for n, task in drawn.items() if n not in known]
            if jobs:
                yield iter(jobs)
            for number, task in drawn.items():
                if number in self._groups:
                    self._sampler.update(self._groups.pop(number))
                elif number in self._failures:
                    self._sampler.leave_out(task.id, self._failures.pop(number))

    def ended(self, number: int, result: GroupResult) -> None:
        self._groups[number] = result

    def failed(self, number: int, task_id: str, why: str) -> None:
        self._failures[number] = why
