"""Tests that pytest runs under this package's own reporter: one run in a fresh sandbox, and what it is worth."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gagar_env.changes import Changes
from gagar_env.episode import Flag, Outcome, TestReport
from gagar_env.errors import SandboxError, TaskError, VerifyError
from gagar_env.evidence import Evidence, ReportRefusedError, distrust, read_evidence, unmet_ids
from gagar_env.exact_map import differences
from gagar_env.official import Official
from gagar_env.provision import Provision
from gagar_env.run_spec import one_line, run_spec, tail
from gagar_env.sandbox import open_sandbox
from gagar_env.sandbox.base import ExecResult, Sandbox, SandboxSpec
from gagar_env.sandbox.bwrap import BwrapSandbox, DeclinedError, ForkError
from gagar_env.sandbox.stoppable import check_stopped, stoppable
from gagar_env.tasks.task import Task
from gagar_env.warm import REPORTER_FILES, Cold, Server, reporter_command, servers


@dataclass(frozen=True, slots=True, kw_only=True)
class ReporterRun:
    """One run.

    Attributes:
        result: How the process ended.
        evidence: What a genuine report says; None where there is none.
        refused: Why there is none, or why pytest could not be run.
        elsewhere: Where pytest took its configuration from, if that is outside of the work tree.
    """

    result: ExecResult
    evidence: Evidence | None
    refused: str
    elsewhere: str = ""


Trusted = Callable[[], Sequence[ReporterRun]]
"""Runs of the base and of the reference solution."""


class ReporterTests:
    """Runs and judges. Without state.

    Args:
        sandbox: Kind of the fresh sandbox.
        warm: Whether runs may be forks of a warm server, see `gagar_env.warm`.
    """

    def __init__(self, sandbox: str, *, warm: bool = True) -> None:
        self._sandbox = sandbox
        self._warm = warm

    def run(self, ready: Provision, official: Official, content: Changes) -> ReporterRun:
        """One test run in a fresh sandbox, with `content` on top of the base tree."""
        task, key = ready.task, secrets.token_bytes(32)
        spec, imported = run_spec(ready)
        with self._opened(spec, ready.environment.python) as (sandbox, server):
            stoppable(sandbox)
            sandbox.write(content)
            for name in REPORTER_FILES:
                sandbox.write_scratch(name, Path(__file__).with_name(name).read_bytes())
            job = self._job(task, official, sandbox.scratch, key, imported)
            sandbox.write_scratch("job.json", job)
            result = self._run(sandbox, server, ready.environment.python, task.tests.timeout_s)
            check_stopped()
            if result.timed_out:
                return ReporterRun(result=result, evidence=None, refused="")
            if sandbox.read_scratch("job.json") == job:  # nobody but us knows its content
                raise VerifyError(f"the tests' interpreter did not start: {_last(result.output)}")
            try:
                report = sandbox.read_scratch("report")
                evidence = read_evidence(report, key, result.exit_code)
            except ReportRefusedError as error:
                return ReporterRun(result=result, evidence=None, refused=str(error))
            if evidence.fault and not evidence.shared and not {"pytest", "_pytest"} & set(official.own_names):
                raise VerifyError(f"environment of {task.id}: {evidence.fault}")
            used = evidence.config_file
            inside = not used or os.path.normpath(used).startswith(f"{sandbox.workdir}/")
            return ReporterRun(
                result=result, evidence=evidence, refused=evidence.fault, elsewhere="" if inside else used
            )

    @contextlib.contextmanager
    def _opened(self, spec: SandboxSpec, python: str) -> Iterator[tuple[Sandbox, Server | None]]:
        """A fresh sandbox, and the server that a process in it may be forked from."""
        server = servers.get(self._sandbox, spec, python) if self._warm else None
        sandbox: Sandbox | None = None
        try:
            if server is not None:
                try:
                    sandbox = server.open(spec)
                except SandboxError as error:
                    servers.lost(server, str(error))
            if sandbox is None:
                yield (sandbox := open_sandbox(self._sandbox, spec)), None
            else:
                yield sandbox, server
        finally:
            if sandbox is not None:
                sandbox.close()
            if server is not None:
                server.release()

    @staticmethod
    def _run(sandbox: Sandbox, server: Server | None, python: str, timeout_s: float) -> ExecResult:
        if server is not None and isinstance(sandbox, BwrapSandbox):
            try:
                result = sandbox.run_forked(server.fileno, timeout_s=timeout_s)
                servers.note_warm(server)
                return result
            except DeclinedError as error:
                servers.note(Cold.DECLINED, str(error))
            except ForkError as error:
                servers.lost(server, str(error))
        return sandbox.run(f"exec {reporter_command(python, sandbox.scratch)}", timeout_s=timeout_s)

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

    def judge(self, ready: Provision, run: ReporterRun, trusted: Trusted) -> TestReport:
        """What a run is worth.

        Raises:
            VerifyError: If pytest is not configured by the task, whatever the work is.
            TaskError: If the task's own solution could not be believed either.
        """
        if run.elsewhere:
            where = f"pytest took its configuration from {run.elsewhere}, outside of the work tree"
            if all(other.elsewhere for other in trusted()):
                raise VerifyError(where)
        tests, evidence, result = ready.task.tests, run.evidence, run.result
        statuses = evidence.statuses if evidence else {}
        reason = run.refused
        if result.timed_out:
            reason = f"the tests reached their limit of {tests.timeout_s:g} s"
        elif run.elsewhere:  # the work did that
            reason = where
        elif evidence is not None and (reason := distrust(evidence, tests)):
            self._blame_hooks(ready.task, trusted)
        if tests.mode == "exact_map":
            different = differences(tests.expected, statuses)
            unmet, reason = different.ids, reason or different.reason
        else:
            unmet = unmet_ids(tests, statuses, lambda: [r.evidence.statuses if r.evidence else {} for r in trusted()])
            required = len(dict.fromkeys((*tests.fail_to_pass, *tests.pass_to_pass)))
            if not reason and unmet:
                reason = f"{len(unmet)} of {required} required tests did not pass: {', '.join(unmet[:3])}"
        return TestReport(
            outcome=Outcome.FAILED if reason else Outcome.PASSED,
            reason=one_line(reason),
            tests=evidence.tests if evidence else {},
            unmet=unmet,
            exit_code=None if result.timed_out else result.exit_code,
            timed_out=result.timed_out,
            output_tail=tail(result.output),
        )

    @staticmethod
    def _blame_hooks(task: Task, trusted: Trusted) -> None:
        """Tell a work that touched the runner from a repository whose own hooks do, whatever the work is."""
        known = trusted()[-1].evidence  # of the reference solution, if there is one
        if known is not None and known.tests and (why := distrust(known, task.tests)):
            raise TaskError(
                f"the tests of {task.id} cannot be believed, whatever the work is: {why}; a hook of the repository's "
                "(conftest.py, a plugin) keeps tests from failing, or changes the exit code"
            )

    def seen(self, official: Official, run: ReporterRun, trusted: Trusted) -> list[Flag]:
        """Flags of what happened to the test runner, and does not happen without the agent's change."""
        found = run.evidence.seen if run.evidence else ()
        found = tuple(pair for pair in found if not (pair[1] and official.rules.protect(pair[1], new=False)))
        if found:
            known = {pair for other in trusted() if other.evidence for pair in other.evidence.seen}
            found = tuple(pair for pair in found if pair not in known)
        return [Flag(kind="changes_test_runner", path=file, detail=one_line(what)) for what, file in found]


def _last(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "no output"
