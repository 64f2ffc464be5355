"""The verifier: a patch becomes a `TestReport` by the official tests, in a fresh copy of the base tree.

    base tree + what the agent changed - what only the tests may say + the official tests
        -> a new sandbox -> the reporter runs pytest -> a signed report -> a judgement

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

import json
import logging
import os
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from gagar_env.changes import Changes, FileState
from gagar_env.episode import Flag, Outcome, TestReport
from gagar_env.errors import GagarError, PatchError, TaskError, VerifyError
from gagar_env.evidence import (
    Evidence,
    ReportRefusedError,
    distrust,
    read_evidence,
    unmet_ids,
)
from gagar_env.flag_policy import FlagPolicy, check_flag_policy, judge_flags
from gagar_env.flags import find_flags, first_of_each
from gagar_env.image_env import trusted_variables
from gagar_env.official import Official, prepare_official
from gagar_env.patch import normalise, read_patch
from gagar_env.provision import Provision
from gagar_env.provision import provision as provision_task
from gagar_env.sandbox import open_sandbox
from gagar_env.sandbox.base import ExecResult
from gagar_env.tasks.task import Task

logger = logging.getLogger(__name__)

FIXED = {"PYTHONHASHSEED": "0", "TZ": "UTC", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
"""Variables of every test run. A task's own win."""
_REMOVED = ("PYTEST_", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "BASH_ENV", "LD_")
_OUTPUT_CHARS = 8000
_MEMORY = 512
"""Tasks whose official part is kept."""
_REPORTER = ("runner_watch.py", "reporter.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    result: ExecResult
    evidence: Evidence | None
    refused: str


class Verifier:
    """Judges patches by a task's official tests. Safe to share between threads.

    Args:
        sandbox: Kind of the fresh sandbox, as for `open_sandbox`.
        attempts: How often a verification is tried when the harness breaks.
        flag_policy: What a flag does to a pass: `flag`, `zero` or `mask`, or one of them by kind of flag.
        provision: Prepares a task; replaced where base trees or environments come from elsewhere.
    """

    def __init__(
        self,
        *,
        sandbox: str = "auto",
        attempts: int = 2,
        flag_policy: FlagPolicy = "flag",
        provision: Callable[[Task], Provision] | None = None,
    ) -> None:
        if attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self._sandbox = sandbox
        self._attempts = attempts
        self._flag_policy = check_flag_policy(flag_policy)
        self._provision = provision or partial(provision_task, sandbox=sandbox)
        self._lock = threading.Lock()
        self._officials: dict[tuple[str, str, str], Official] = {}
        self._trusted: dict[tuple[str, str, str], list[Evidence | None]] = {}

    def verify(self, task: Task, patch: bytes | Changes) -> TestReport:
        """Judge one patch.

        Args:
            task: The task.
            patch: The work: a patch against the base tree, or the changes themselves.

        Returns:
            The report. Nothing that the agent or the infrastructure does wrong raises.
        """
        started = time.monotonic()
        attempt, again = 0, True
        while again and attempt < self._attempts:
            attempt, again = attempt + 1, False
            try:
                report = self._verify(task, patch)
            except PatchError as error:
                report = TestReport(outcome=Outcome.FAILED, reason=f"the patch is refused: {error}")
            except Exception as error:
                kind = "" if isinstance(error, GagarError) else f"{type(error).__name__}: "
                report = TestReport(outcome=Outcome.ERROR, reason=_one_line(f"{kind}{error}"))
                logger.warning("verification of %s broke: %s", task.id, report.reason)
                again = not isinstance(error, TaskError)  # a broken task stays broken
        took = round(time.monotonic() - started, 4)
        return report.model_copy(update={"attempts": attempt, "seconds": took})

    def _verify(self, task: Task, patch: bytes | Changes) -> TestReport:
        ready = self._provision(task)
        tree = ready.base.tree
        official = self._official(task, ready)
        size = len(patch) if isinstance(patch, bytes) else sum(len(s.data) for s in patch.values() if s)
        if size > task.limits.patch_bytes:
            raise PatchError(f"{size} bytes, the limit is {task.limits.patch_bytes}")
        changes = read_patch(tree, patch) if isinstance(patch, bytes) else normalise(tree, patch)
        content, own, ignored = official.merge(changes)
        ids = (*task.tests.fail_to_pass, *task.tests.pass_to_pass)
        flags = find_flags(tree, own, ids)
        run = self._run(ready, official, content)
        report = self._judge(ready, official, run)
        if report.passed:
            flags = first_of_each((*self._seen(ready, official, run), *flags))
        report = report.model_copy(update={"flags": flags, "ignored": tuple(map(_shown, ignored))})
        return judge_flags(report, self._flag_policy)

    def _judge(self, ready: Provision, official: Official, run: _Run) -> TestReport:
        tests, evidence, result = ready.task.tests, run.evidence, run.result
        statuses = evidence.statuses if evidence else {}
        unmet = unmet_ids(
            tests,
            statuses,
            lambda: [known.statuses if known else {} for known in self._trusted_runs(ready, official)],
        )
        required = len(dict.fromkeys((*tests.fail_to_pass, *tests.pass_to_pass)))
        reason = run.refused
        if result.timed_out:
            reason = f"the tests reached their limit of {tests.timeout_s:g} s"
        elif evidence is not None:
            reason = distrust(evidence, tests)
        if not reason and unmet:
            reason = f"{len(unmet)} of {required} required tests did not pass: {', '.join(unmet[:3])}"
        return TestReport(
            outcome=Outcome.FAILED if reason else Outcome.PASSED,
            reason=_one_line(reason),
            tests=evidence.tests if evidence else {},
            unmet=unmet,
            exit_code=None if result.timed_out else result.exit_code,
            timed_out=result.timed_out,
            output_tail=result.output.decode("utf-8", "replace")[-_OUTPUT_CHARS:],
        )

    def _seen(self, ready: Provision, official: Official, run: _Run) -> list[Flag]:
        """Flags of what happened to the test runner, and does not happen without the agent's change."""
        found = run.evidence.seen if run.evidence else ()
        found = tuple(pair for pair in found if not (pair[1] and official.rules.protect(pair[1], new=False)))
        if found:
            known = {pair for trusted in self._trusted_runs(ready, official) if trusted for pair in trusted.seen}
            found = tuple(pair for pair in found if pair not in known)
        return [Flag(kind="changes_test_runner", path=file, detail=_one_line(what)) for what, file in found]

    def _run(self, ready: Provision, official: Official, content: Changes) -> _Run:
        """One test run in a fresh sandbox."""
        task, key = ready.task, secrets.token_bytes(32)
        over, imported = trusted_variables(ready.spec.image)
        env = {k: v for k, v in ready.spec.env.items() if not k.startswith(_REMOVED)}
        spec = replace(ready.spec, env={**over, **FIXED, **env}, pythonpath=())
        sandbox = open_sandbox(self._sandbox, spec)
        try:
            sandbox.write(content)
            for name in _REPORTER:
                reporter = sandbox.write_scratch(name, Path(__file__).with_name(name).read_bytes())
            job = self._job(task, official, sandbox.scratch, key, imported)
            place = sandbox.write_scratch("job.json", job)
            command = shlex.join((ready.environment.python, "-s", "-B", reporter, place))
            result = sandbox.run(f"exec {command}", timeout_s=task.tests.timeout_s)
            if result.timed_out:
                return _Run(result=result, evidence=None, refused="")
            if sandbox.read_scratch("job.json") == job:  # nobody but us knows its content
                raise VerifyError(f"the tests' interpreter did not start: {_last(result.output)}")
            try:
                report = sandbox.read_scratch("report")
                evidence = read_evidence(report, key, result.exit_code)
            except ReportRefusedError as error:
                return _Run(result=result, evidence=None, refused=str(error))
            self._check(task, evidence, sandbox.workdir, official)
            return _Run(result=result, evidence=evidence, refused=evidence.fault)
        finally:
            sandbox.close()

    @staticmethod
    def _job(task: Task, official: Official, scratch: str, key: bytes, imported: tuple[str, ...]) -> bytes:
        content = {
            "key": key.hex(),
            "report": f"{scratch}/report",
            "sentinel": f"test_{secrets.token_hex(6)}",
            "pythonpath": (*task.environment.pythonpath, *imported),
            "own": official.own_names,
            "before": ["-o", f"cache_dir={scratch}/cache", "-p", "no:randomly", *task.tests.arguments],
            "after": ["--maxfail=0", *task.tests.files],
        }
        return json.dumps(content).encode("ascii")

    @staticmethod
    def _check(task: Task, evidence: Evidence, workdir: str, official: Official) -> None:
        """Find faults of the harness that a report shows."""
        if evidence.fault and not evidence.shared and not {"pytest", "_pytest"} & set(official.own_names):
            raise VerifyError(f"environment of {task.id}: {evidence.fault}")
        used = evidence.config_file
        if used and not os.path.normpath(used).startswith(f"{workdir}/"):
            raise VerifyError(f"pytest took its configuration from {used}, outside of the work tree")

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

    def _trusted_runs(self, ready: Provision, official: Official) -> list[Evidence | None]:
        """What the base and the reference solution give, each run once for a task."""
        key = _key(ready)
        with self._lock:
            if key in self._trusted:
                return self._trusted[key]
        sources: list[Mapping[str, FileState | None]] = [{}]
        if official.reference:
            sources.append(official.reference)
        runs = [self._run(ready, official, official.merge(source)[0]) for source in sources]
        if len(runs) > 1 and runs[1].result.timed_out:  # this once, or the task is broken: not to be remembered
            raise VerifyError(f"the reference solution of {ready.task.id} reached the limit of its tests' time")
        with self._lock:
            while len(self._trusted) >= _MEMORY:
                self._trusted.pop(next(iter(self._trusted)))
            return self._trusted.setdefault(key, [run.evidence for run in runs])


def _key(ready: Provision) -> tuple[str, str, str]:
    tests = ready.task.tests.model_dump_json() + repr(ready.task.solution_patch)
    return ready.base.key, ready.environment.key, tests


def _shown(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _one_line(text: str) -> str:
    return " ".join(text.encode("utf-8", "backslashreplace").decode("utf-8").split())[:1000]


def _last(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no output"
