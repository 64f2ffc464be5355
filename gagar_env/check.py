"""Self-test of one task before any training: solvable, not by doing nothing, stable, the answer kept out.

Everything runs through the verifier that trains, under the same hardening. Many tasks: `gagar_env.checks`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from gagar_env.bases import check_history
from gagar_env.cache import Progress
from gagar_env.changes import Changes
from gagar_env.check_result import CheckRun, Clock, Expected, TaskCheck, Verdict
from gagar_env.checked import record_checked
from gagar_env.episode import Outcome, TestReport, TestStatus
from gagar_env.errors import GagarError, TaskError, VerifyError
from gagar_env.exact_map import tests_meant
from gagar_env.leaks import leaked_secrets, left_in_image
from gagar_env.provision import kind_for, provision
from gagar_env.repogaps import repo_gaps
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.digest import task_digest
from gagar_env.tasks.task import Task
from gagar_env.test_ids import IdIndex
from gagar_env.verify import Verifier

__all__ = ["CheckRun", "Clock", "TaskCheck", "check_task"]

SHOWN = 5
"""Ids named in one problem; the rest is counted."""


class _OverTimeError(Exception):
    pass


class _StoppedError(Exception):
    pass


class _Telling(Verifier):
    """A verifier that can be asked what it was that broke."""

    error: Exception | None = None

    def _verify(
        self, task: Task, patch: bytes | Changes, *, changes: Changes | None = None, observe: bool = False
    ) -> TestReport:
        try:
            return super()._verify(task, patch, changes=changes, observe=observe)
        except Exception as error:
            self.error = error
            raise


def check_task(
    task: Task,
    *,
    sandbox: str = "auto",
    repeats: int = 1,
    solutions: bool = False,
    task_s: float | None = None,
    on_progress: Progress | None = None,
    clock: Clock | None = None,
) -> TaskCheck:
    """Check one task. Its faults and those of this machine are problems of the result, not exceptions.

    Demanded are: one commit in the base tree; neither the reference patch nor a hidden test in it; the reference earns
    1, doing nothing earns 0; every listed test runs; each fail-to-pass test fails at base and each pass-to-pass test
    does not; repeats agree test by test. The result is noted in the cache, see `gagar_env.checked`.

    Args:
        task: The task.
        sandbox: Kind of sandbox to verify in.
        repeats: How often the reference and doing nothing are verified, at least 1. A test that passes with
            probability p agrees with itself n times with p**n + (1 - p)**n.
        solutions: Verify the known solutions too: clean and sloppy ones earn 1, wrong ones 0.
        task_s: Seconds for the whole check; a task that takes longer is bad. No run begins after them, and a run that
            has begun has no more than is left.
        on_progress: Told what takes time.
        clock: In place of `task_s`, for a caller that may end the check early.

    Raises:
        SandboxUnavailableError: If that kind of sandbox does not work here.
        ValueError: If `repeats` is below 1.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, actually: {repeats}")
    kind = choose_kind(sandbox, image=task.image is not None)
    started = time.monotonic()
    digest = task_digest(task)  # of what is checked: files that change meanwhile make another task
    # Forks of one process have its addresses in common: a test that depends on them would look stable.
    check = _Check(task, _Telling(sandbox=sandbox, warm=False), clock or Clock(task_s))
    try:
        kind = kind_for(task, sandbox)
        check.prepare(kind, on_progress)
        check.reference_and_no_op(repeats)
        if solutions:
            check.known_solutions()
    except _OverTimeError:
        check.note("it takes too long", f"it took longer than {check.clock.task_s:g} s")
    except _StoppedError:
        check.cannot("the check was stopped before it ended")
    except TaskError as error:
        # What is missing on this machine says nothing about the task.
        missing = task.repo.missing or task.environment.missing
        (check.cannot if missing and missing in str(error) else check.broken)(str(error))
    except (GagarError, OSError) as error:
        check.cannot(str(error))
    if digest != task_digest(task):
        check.cannot("its files changed while it was checked: check it again")
    verdict: Verdict = "ok" if not check.problems else "error" if check.unknown else "bad"
    if verdict != "error":
        record_checked(digest, sandbox=kind, ok=verdict == "ok", repeats=repeats)
    return TaskCheck(
        task_id=task.id,
        sandbox=kind,
        ok=verdict == "ok",
        verdict=verdict,
        reasons=tuple(check.problems.values()),
        problems=tuple(check.problems),
        notes=tuple(check.notes),
        flaky=tuple(check.flaky),
        seconds=round(time.monotonic() - started, 3),
        runs=tuple(check.runs),
        repeats=repeats,
        solutions=solutions,
        task_s=check.clock.task_s,
        digest=digest,
    )


class _Check:
    """The runs of one check and what was wrong with them."""

    def __init__(self, task: Task, verifier: _Telling, clock: Clock) -> None:
        self.task = task
        self.clock = clock
        self.problems: dict[str, str] = {}
        """Each with its kind."""
        self.notes: list[str] = []
        self.flaky: list[str] = []
        self.runs: list[CheckRun] = []
        self.unknown = False
        """It could not be checked to its end, by no fault of the task."""
        self._verifier = verifier

    def note(self, kind: str, problem: str) -> None:
        self.problems.setdefault(problem, kind)

    def broken(self, problem: str) -> None:
        self.note("it cannot be prepared", problem)

    def cannot(self, problem: str) -> None:
        self.unknown = True
        self.note("it could not be checked here", problem)

    def prepare(self, kind: str, on_progress: Progress | None) -> None:
        prepared = provision(self.task, sandbox=kind, on_progress=on_progress)
        check_history(prepared.base.tree)
        for leak in leaked_secrets(self.task, prepared.base.tree):
            self.note("the tree gives a secret away", leak)
        for leak in left_in_image(prepared, kind):
            self.note("the image gives a secret away", leak)
        self.notes += repo_gaps(prepared.base.tree)

    def reference_and_no_op(self, repeats: int) -> None:
        no_op = [self._run("no-op", b"", Outcome.FAILED) for _ in range(repeats)]
        reference: list[TestReport] = []
        if self.task.solution_patch.strip():
            patch = self.task.solution_patch
            reference = [self._run("reference", patch, Outcome.PASSED) for _ in range(repeats)]
        else:
            self.note("no reference", "there is no reference patch: nothing shows that it can be solved")
        self._count("no-op", no_op, "it passes in {} of {} runs, and must not")
        self._count("reference", reference, "it passes in {} of {} runs only")
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
        tests = self.task.tests
        return tuple(dict.fromkeys((*tests.fail_to_pass, *tests.pass_to_pass, *tests.expected)))

    def _run(self, name: str, patch: bytes, expected: Expected) -> TestReport:
        if self.clock.left_s <= 0:
            raise _StoppedError if self.clock.stopped else _OverTimeError
        task, tests = self.task, self.task.tests
        if self.clock.left_s < tests.timeout_s:
            task = task.model_copy(update={"tests": tests.model_copy(update={"timeout_s": self.clock.left_s})})
        report = self._verifier.verify(task, patch)
        if task is not self.task and report.timed_out:
            raise _StoppedError if self.clock.stopped else _OverTimeError
        self.runs.append(
            CheckRun(
                name=name,
                expected=expected,
                outcome=report.outcome,
                reason=report.reason,
                seconds=report.seconds,
            )
        )
        if report.outcome is Outcome.ERROR:
            # After its tries, a harness that breaks is one that the task breaks, unless it is this machine that fails.
            task_is = isinstance(self._verifier.error, (TaskError, VerifyError))
            (self.broken if task_is else self.cannot)(f"{name}: cannot be verified: {report.reason}")
        elif report.outcome is not expected:
            self.note(_kind(name, report), f"{name}: {_surprise(report)}")
        return report

    def _count(self, name: str, reports: Sequence[TestReport], says: str) -> None:
        """One line for runs of the same patch that disagree."""
        passed = sum(report.passed for report in reports)
        if 0 < passed < len(reports) and all(report.valid for report in reports):
            self.note("repeats do not agree", f"{name}: {says.format(passed, len(reports))}")

    def _lists(self, no_op: Sequence[Mapping[str, str]], reference: Sequence[Mapping[str, str]]) -> None:
        """Name the ids of the task's lists that do not behave as listed."""
        runs = (*no_op, *reference)
        if not runs:
            return
        good = (TestStatus.PASSED.value, TestStatus.SKIPPED.value)
        tests = self.task.tests
        self.flaky = [i for i in self._listed if any(len({run[i] for run in same}) > 1 for same in (no_op, reference))]
        for ids, kind, what in (
            (
                [i for i in self._listed if not any(run[i] for run in runs)],
                "listed tests never run",
                "no run has the tests",
            ),
            (
                [i for i in tests.fail_to_pass if any(run[i] == good[0] for run in no_op)],
                "fail-to-pass tests pass at base",
                "fail-to-pass tests that pass without a change",
            ),
            (
                # An id that was cut at its first blank may also stand for a test that only the reference passes.
                [i for i in tests.pass_to_pass if any(run[i] and not {*run[i].split("+")} & {*good} for run in no_op)],
                "pass-to-pass tests fail at base",
                "pass-to-pass tests that fail without a change",
            ),
            (self.flaky, "repeats do not agree", "repeats do not agree on the tests"),
        ):
            if ids:
                self.note(kind, f"{what}: {_some(ids)}")


def _statuses(listed: Sequence[str], report: TestReport) -> dict[str, str]:
    """What each listed id came to in one run: the statuses of the tests that it means, "" if none of them ran."""
    index, in_map = IdIndex(report.tests), tests_meant(listed, report.tests)
    meant = {test: index.find(test) or in_map.get(test, ()) for test in listed}
    return {test: "+".join(sorted({report.tests[node].status.value for node in meant[test]})) for test in listed}


def _kind(name: str, report: TestReport) -> str:
    who = name if name in ("no-op", "reference") else "a known solution"
    if report.outcome is Outcome.PASSED:
        return "doing nothing passes" if who == "no-op" else f"{who} passes and must not"
    return f"the {who} does not pass" if who == "reference" else f"{who} does not pass"


def _surprise(report: TestReport) -> str:
    if report.outcome is Outcome.PASSED:
        return "it passes, and must not"
    unmet = f" ({_some(report.unmet)})" if report.unmet else ""
    return f"it does not pass: {report.reason}{unmet}"


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return ", ".join(ids[:SHOWN]) + more
