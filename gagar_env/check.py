"""Self-tests of tasks before any training: solvable, not by doing nothing, stable, the answer kept out.

Everything runs through the verifier that trains, under the same hardening.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from gagar_env.bases import check_history
from gagar_env.cache import Progress
from gagar_env.episode import Outcome, TestReport, TestStatus
from gagar_env.errors import GagarError
from gagar_env.leaks import leaked_secrets
from gagar_env.provision import kind_for, provision
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.task import Task
from gagar_env.test_ids import IdIndex
from gagar_env.verify import Verifier

Expected: TypeAlias = Literal[Outcome.PASSED, Outcome.FAILED]

SHOWN = 5
"""Ids named in one problem; the rest is counted."""


class CheckRun(BaseModel):
    """One verification that a check did."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    """`reference`, `no-op`, or the name of a known solution."""
    expected: Expected
    outcome: Outcome
    reason: str = ""
    seconds: float = 0.0


class TaskCheck(BaseModel):
    """What came out of checking one task.

    Attributes:
        ok: There is no problem.
        problems: One line each; ids are named.
        seconds: Wall-clock time, preparation included.
        runs: Every verification, in order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    task_id: str
    sandbox: str
    ok: bool
    problems: tuple[str, ...] = ()
    seconds: float = 0.0
    runs: tuple[CheckRun, ...] = ()


def check_task(
    task: Task,
    *,
    sandbox: str = "auto",
    repeats: int = 1,
    solutions: bool = False,
    on_progress: Progress | None = None,
) -> TaskCheck:
    """Check one task. Its faults and those of this machine are problems of the result, not exceptions.

    Demanded are: one commit in the base tree; neither the reference patch nor a hidden test in it; the reference earns
    1, doing nothing earns 0; every listed test runs; each fail-to-pass test fails at base and each pass-to-pass test
    does not; repeats agree test by test.

    Args:
        task: The task.
        sandbox: Kind of sandbox to verify in.
        repeats: How often the reference and doing nothing are verified, at least 1.
        solutions: Verify the known solutions too: clean and sloppy ones earn 1, wrong ones 0.
        on_progress: Told what takes time.

    Raises:
        SandboxUnavailableError: If that kind of sandbox does not work here.
        ValueError: If `repeats` is below 1.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, actually: {repeats}")
    kind = choose_kind(sandbox, image=task.image is not None)
    started = time.monotonic()
    check = _Check(task, Verifier(sandbox=sandbox))
    try:
        kind = kind_for(task, sandbox)
        prepared = provision(task, sandbox=kind, on_progress=on_progress)
        check_history(prepared.base.tree)
        check.problems += leaked_secrets(task, prepared.base.tree)
        check.reference_and_no_op(repeats)
        if solutions:
            check.known_solutions()
    except (GagarError, OSError) as error:
        check.problems.append(str(error))
    return TaskCheck(
        task_id=task.id,
        sandbox=kind,
        ok=not check.problems,
        problems=tuple(check.problems),
        seconds=time.monotonic() - started,
        runs=tuple(check.runs),
    )


def check_tasks(
    tasks: Iterable[Task],
    *,
    sandbox: str = "auto",
    repeats: int = 1,
    solutions: bool = False,
    jobs: int = 1,
    on_result: Callable[[TaskCheck], None] | None = None,
    on_progress: Progress | None = None,
) -> list[TaskCheck]:
    """Check many tasks, `jobs` at a time; the results are in the order of `tasks`.

    Args:
        tasks: The tasks.
        sandbox: As in `check_task`.
        repeats: As in `check_task`.
        solutions: As in `check_task`.
        jobs: How many are checked at one time.
        on_result: Called as each ends, from the thread that checked it.
        on_progress: As in `check_task`; called from several threads.

    Raises:
        SandboxUnavailableError: If that kind of sandbox does not work here.
    """
    choose_kind(sandbox)

    def one(task: Task) -> TaskCheck:
        result = check_task(task, sandbox=sandbox, repeats=repeats, solutions=solutions, on_progress=on_progress)
        if on_result is not None:
            on_result(result)
        return result

    with ThreadPoolExecutor(max_workers=max(1, jobs), thread_name_prefix="check") as pool:
        return list(pool.map(one, tasks))


class _Check:
    """The runs of one check and what was wrong with them."""

    def __init__(self, task: Task, verifier: Verifier) -> None:
        self.task = task
        self.problems: list[str] = []
        self.runs: list[CheckRun] = []
        self._verifier = verifier

    def reference_and_no_op(self, repeats: int) -> None:
        no_op = [self._run("no-op", b"", Outcome.FAILED) for _ in range(repeats)]
        reference: list[TestReport] = []
        if self.task.solution_patch.strip():
            patch = self.task.solution_patch
            reference = [self._run("reference", patch, Outcome.PASSED) for _ in range(repeats)]
        else:
            self.problems.append("there is no reference patch: nothing shows that it can be solved")
        valid = [report for report in (*no_op, *reference) if report.valid]
        if valid:
            self._lists(
                [_statuses(self._listed, report) for report in no_op if report.valid],
                [_statuses(self._listed, report) for report in reference if report.valid],
            )

    def known_solutions(self) -> None:
        for solution in self.task.solutions:
            expected: Expected = Outcome.FAILED if solution.kind == "wrong" else Outcome.PASSED
            self._run(solution.name, solution.patch, expected)

    @property
    def _listed(self) -> tuple[str, ...]:
        return (*self.task.tests.fail_to_pass, *self.task.tests.pass_to_pass)

    def _run(self, name: str, patch: bytes, expected: Expected) -> TestReport:
        report = self._verifier.verify(self.task, patch)
        self.runs.append(
            CheckRun(
                name=name,
                expected=expected,
                outcome=report.outcome,
                reason=report.reason,
                seconds=report.seconds,
            )
        )
        if report.outcome is not expected:
            self._note(f"{name}: {_surprise(report, expected)}")
        return report

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _lists(self, no_op: Sequence[Mapping[str, str]], reference: Sequence[Mapping[str, str]]) -> None:
        """Name the ids of the task's lists that do not behave as listed."""
        runs = (*no_op, *reference)
        good = (TestStatus.PASSED.value, TestStatus.SKIPPED.value)
        tests = self.task.tests
        for ids, what in (
            ([i for i in self._listed if not any(run[i] for run in runs)], "no run has the tests"),
            (
                [i for i in tests.fail_to_pass if any(run[i] == good[0] for run in no_op)],
                "fail-to-pass tests that pass without a change",
            ),
            (
                [i for i in tests.pass_to_pass if any(run[i] not in (*good, "") for run in no_op)],
                "pass-to-pass tests that fail without a change",
            ),
            (
                [i for i in self._listed if any(len({r[i] for r in same}) > 1 for same in (no_op, reference))],
                "repeats do not agree on the tests",
            ),
        ):  # fmt: skip
            if ids:
                self._note(f"{what}: {_some(ids)}")


def _statuses(listed: Iterable[str], report: TestReport) -> dict[str, str]:
    """What each listed id came to in one run: the statuses of the tests that it means, "" if none of them ran."""
    index = IdIndex(report.tests)
    return {test: "+".join(sorted({report.tests[node].status.value for node in index.find(test)})) for test in listed}


def _surprise(report: TestReport, expected: Outcome) -> str:
    if report.outcome is Outcome.ERROR:
        return f"cannot be verified: {report.reason}"
    if report.outcome is Outcome.PASSED:
        return "it passes, and must not"
    unmet = f" ({_some(report.unmet)})" if report.unmet else ""
    return f"it does not pass: {report.reason}{unmet}"


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
