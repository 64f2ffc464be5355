"""The verifier: a patch becomes a `TestReport` by the official tests, in a fresh copy of the base tree.

    base tree + what the agent changed - what only the tests may say + the official tests
        -> a new sandbox -> the reporter runs pytest -> a signed report -> a judgement
                         -> or a script of the task  -> text, exit code or reward -> a weaker one

Three outcomes. `passed` and `failed` are results; a patch that does not apply, hangs, or ends the test
process is `failed`. `error` means that the harness broke: there is no reward. Only that is tried again.
A pass that was flagged may become `failed` or `masked`, see `gagar_env.flag_policy`.

The run does not depend on when or where: fixed hash seed, time zone and locale, no network where the
sandbox has none to give, nothing of the host's environment, an interpreter by absolute path. Options
come from the task and from the base tree's own configuration; those that would hide a test's result
(stopping early, several processes, random order) are overruled, and where the base's `addopts` do not
fit the environment at all they are left out as a whole.

This is tests. Graders (`gagar_env.grading`) rank what passed here; they cannot change it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from gagar_env.changes import Changes, FileState
from gagar_env.episode import Flag, Outcome, TestReport
from gagar_env.errors import GagarError, PatchError, SandboxClosedError, TaskError, VerifyError
from gagar_env.flag_policy import FlagPolicy, check_flag_policy, judge_flags
from gagar_env.flags import find_flags, first_of_each
from gagar_env.kept_reports import KeptReports
from gagar_env.official import Official, prepare_official
from gagar_env.patch import is_read_alike, normalise, read_patch
from gagar_env.provision import Provision
from gagar_env.provision import provision as provision_task
from gagar_env.reporter_tests import ReporterTests
from gagar_env.reward_file import reward_flags
from gagar_env.run_spec import one_line
from gagar_env.script_tests import ScriptTests
from gagar_env.tasks.task import Task, Tests

logger = logging.getLogger(__name__)

_MEMORY = 512
"""Tasks whose official part is kept."""


class _Judge(Protocol):
    """One way to run tests and to tell what a run is worth. Runs are dataclasses with a `result`."""

    def run(self, ready: Provision, official: Official, content: Changes) -> Any: ...

    def judge(self, ready: Provision, run: Any, trusted: Callable[[], Sequence[Any]]) -> TestReport: ...

    def seen(self, official: Official, run: Any, trusted: Callable[[], Sequence[Any]]) -> list[Flag]: ...


class Verifier:
    """Judges patches by a task's official tests. Safe to share between threads.

    Args:
        sandbox: Kind of the fresh sandbox, as for `open_sandbox`.
        attempts: How often a verification is tried when the harness breaks.
        flag_policy: What a flag does to a pass: `flag`, `zero` or `mask`, or one of them by kind of flag.
        provision: Prepares a task; replaced where base trees or environments come from elsewhere.
        remember: How many reports are kept: equal work on an equal task then gets the report of the first of them.
            A result at a limit of time, or an error, is never kept.
        warm: Whether pytest may be imported once for all runs of an environment, in a process that forks for each: see
            `gagar_env.warm`. The reports are the same; `GAGAR_WARM=0` switches it off too.
    """

    def __init__(
        self,
        *,
        sandbox: str = "auto",
        attempts: int = 2,
        flag_policy: FlagPolicy = "flag",
        provision: Callable[[Task], Provision] | None = None,
        remember: int = 0,
        warm: bool = True,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self._by_reporter: _Judge = ReporterTests(sandbox, warm=warm)
        self._by_script: _Judge = ScriptTests(sandbox)
        self._attempts = attempts
        self._flag_policy = check_flag_policy(flag_policy)
        self._provision = provision or partial(provision_task, sandbox=sandbox)
        self._lock = threading.Lock()
        self._reports = KeptReports(remember)
        self._officials: dict[tuple[str, str, str], Official] = {}
        self._trusted: dict[tuple[str, str, str], list[Any]] = {}

    def verify(self, task: Task, patch: bytes | Changes, *, changes: Changes | None = None) -> TestReport:
        """Judge one patch.

        Args:
            task: The task.
            patch: The work: a patch against the base tree, or the changes themselves.
            changes: What `make_patch` made the patch from, where the caller has it: unless git might take the patch for
                something else, it is not read again then.

        Returns:
            The report. Nothing that the agent or the infrastructure does wrong raises.

        Raises:
            TypeError: If `patch` is neither.
        """
        if not isinstance(patch, (bytes, Mapping)):
            raise TypeError(f"a patch is bytes, or changes by path, got {type(patch).__name__}")
        return self._tried(task, partial(self._verify, task, patch, changes=changes))

    def observe(self, task: Task, patch: bytes | Changes) -> TestReport:
        """Run the tests of a task that does not say yet which must pass: every run that can be believed passes.

        It is no verdict on the work. Arguments and report are those of `verify`.
        """
        return self._tried(task, partial(self._verify, task, patch, observe=True))

    def _tried(self, task: Task, judged: Callable[[], TestReport]) -> TestReport:
        started = time.monotonic()
        attempt, again = 0, True
        while again and attempt < self._attempts:
            attempt, again = attempt + 1, False
            try:
                report = judged()
            except PatchError as error:
                report = TestReport(outcome=Outcome.FAILED, reason=f"the patch is refused: {error}")
            except Exception as error:
                kind = "" if isinstance(error, GagarError) else f"{type(error).__name__}: "
                report = TestReport(outcome=Outcome.ERROR, reason=one_line(f"{kind}{error}"))
                stopped = isinstance(error, SandboxClosedError)  # who closed it knows
                logger.log(
                    logging.INFO if stopped else logging.WARNING, "verification of %s broke: %s", task.id, report.reason
                )
                again = not isinstance(error, TaskError)  # a broken task stays broken
        took = round(time.monotonic() - started, 4)
        evidence = task.tests.evidence
        return report.model_copy(update={"attempts": attempt, "seconds": took, "evidence": evidence})

    def _verify(
        self, task: Task, patch: bytes | Changes, *, changes: Changes | None = None, observe: bool = False
    ) -> TestReport:
        observe = observe and task.tests.mode == "f2p_p2p" and bool(task.tests.files or task.tests.script)
        if not observe and (fault := task.tests.undecidable()):
            raise TaskError(f"{task.id}: {fault}")
        ready = self._provision(task)
        size = len(patch) if isinstance(patch, bytes) else sum(len(s.data) for s in patch.values() if s)
        if size > task.limits.patch_bytes:
            raise PatchError(f"{size} bytes, the limit is {task.limits.patch_bytes}")
        work = patch
        if changes is not None and (not isinstance(patch, bytes) or is_read_alike(patch)):
            work = changes  # else the patch is read: what is kept of the work must earn what the work earns
        if observe or not self._reports.size or not isinstance(patch, bytes):
            return self._judged(ready, work)
        return self._reports.get((_key(ready), patch), partial(self._judged, ready, work))

    def _judged(self, ready: Provision, patch: bytes | Changes) -> TestReport:
        task, tree = ready.task, ready.base.tree
        official = self._official(task, ready)
        changes = read_patch(tree, patch) if isinstance(patch, bytes) else normalise(tree, patch)
        content, own, ignored = official.merge(changes)
        flags = (*find_flags(tree, own, _ids(task.tests)), *reward_flags(task.tests, tree, own))
        judge = self._judge(task)
        run = judge.run(ready, official, content)
        trusted = partial(self._trusted_runs, ready, official)
        report = judge.judge(ready, run, trusted)
        if report.passed:
            flags = (*judge.seen(official, run, trusted), *flags)
        report = report.model_copy(update={"flags": first_of_each(flags), "ignored": tuple(map(_shown, ignored))})
        return judge_flags(report, self._flag_policy)

    def _judge(self, task: Task) -> _Judge:
        return self._by_reporter if task.tests.by_reporter else self._by_script

    def _official(self, task: Task, ready: Provision) -> Official:
        key = _key(ready)
        with self._lock:
            known = self._officials.get(key)
        if known is None:
            known = prepare_official(task, ready.base.tree)
            with self._lock:
                while len(self._officials) >= _MEMORY:
                    self._officials.pop(next(iter(self._officials)))
                self._officials[key] = known
        return known

    def _trusted_runs(self, ready: Provision, official: Official) -> Sequence[Any]:
        """What the base and the reference solution give, each run once for a task."""
        key = _key(ready)
        with self._lock:
            if key in self._trusted:
                return self._trusted[key]
        sources: list[Mapping[str, FileState | None]] = [{}]
        if official.reference:
            sources.append(official.reference)
        judge = self._judge(ready.task)
        runs = [judge.run(ready, official, official.merge(source)[0]) for source in sources]
        if len(runs) > 1 and runs[1].result.timed_out:  # this once, or the task is broken: not to be remembered
            raise VerifyError(f"the reference solution of {ready.task.id} reached the limit of its tests' time")
        with self._lock:
            while len(self._trusted) >= _MEMORY:
                self._trusted.pop(next(iter(self._trusted)))
            short = [replace(run, result=replace(run.result, output=b"")) for run in runs]
            return self._trusted.setdefault(key, short)


def _key(ready: Provision) -> tuple[str, str, str]:
    tests = ready.task.tests.model_dump_json() + repr(ready.task.solution_patch)
    return ready.base.key, ready.environment.key, tests


def _shown(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _ids(tests: Tests) -> tuple[str, ...]:
    """Ids of the tests, for those who look for their names in the work; of a map's, the last part."""
    return (*tests.fail_to_pass, *tests.pass_to_pass, *(name.rpartition(".")[2] for name in tests.expected))
