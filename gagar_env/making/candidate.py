"""What a maker of tasks proposes, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gagar_env.errors import RefusedError as RefusedError
from gagar_env.errors import refusal as refusal
from gagar_env.making.observe import Known
from gagar_env.tasks.task import Environment, RepoSource, Solution, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A task that may be one: nobody has run its tests yet.

    Attributes:
        id: Deterministic: the same source and settings give the same id, so that an interrupted run can go on.
        title: One line.
        statement: The problem statement, or what writes it once it is known which tests fail and how.
        repo: The base tree. Broken already: a bug that was put in is `repo.patch`.
        environment: What its tests run in.
        solution_patch: The reference, against the base tree.
        test_patch: The tests, against the base tree; empty where the base has them.
        test_files: What pytest is given.
        arguments: Further arguments for pytest.
        tags: Of the task.
        solutions: Further known solutions, such as half of a reference, which must not be enough.
        extra: Where it comes from: maker, library, versions, commit, mutation. Becomes `Task.extra`.
        whole_files: Tests may fail on the base because none of them can be imported there: a file of new tests that
            names what is not there yet.
        base_runs: Runs on the base tree, where many candidates share it; they are not repeated.
        reference_runs: The same with the reference: `observe(candidate, reference=True)` of one of them, `within` the
            files of each.
    """

    id: str
    title: str = ""
    statement: str | Statement
    repo: RepoSource
    environment: Environment
    solution_patch: bytes
    test_patch: bytes = b""
    test_files: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    solutions: tuple[Solution, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    whole_files: bool = False
    base_runs: Known | None = None
    reference_runs: Known | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the runs of a candidate showed: what a statement can be written from.

    Attributes:
        candidate: The candidate.
        fail_to_pass: Ids that the reference makes pass.
        pass_to_pass: Ids that pass with and without it.
        messages: Of each id that failed without the reference, the first lines of why.
        output: The end of what pytest printed without the reference.
    """

    candidate: Candidate
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    messages: Mapping[str, str]
    output: str = ""


Statement = Callable[[Findings], str]
"""Writes a problem statement. It must not give the reference away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The end of one candidate.

    Attributes:
        id: Of the candidate.
        task: The task; None where it is refused.
        reason: Why it is refused, in one word that can be counted, such as `no_fail_to_pass`; empty when it is not.
        detail: The same in one line.
        flaky: Ids that are left out since runs of the same tree do not agree on them.
        fail_to_pass: How many ids go from fail to pass.
        pass_to_pass: How many ids keep passing.
        tests: How many ids ran at all.
        seconds: Wall-clock time of everything.
        test_seconds: The slowest single run of the tests.
    """

    id: str
    task: Task | None = None
    reason: str = ""
    detail: str = ""
    flaky: tuple[str, ...] = ()
    fail_to_pass: int = 0
    pass_to_pass: int = 0
    tests: int = 0
    seconds: float = 0.0
    test_seconds: float = 0.0
