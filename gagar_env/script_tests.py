"""Tests that a script of the task runs: one run in a fresh sandbox, and what it is worth.

What counts is the script's output, its exit code, or the reward that it writes: see `Tests.mode`. All three are weaker
than the reporter's record. The code under test runs inside of what prints, exits and writes; it can print a line, end a
process or, where it knows the folder, write a reward. What is done about it:

- the base tree, the agent's changes and the official tests are put together as for the reporter, the official ones win;
- output is bracketed by random lines, see `gagar_env.script_output`; a test with two statuses has the worse one;
- exit code and failures must agree: one that says failure where no test failed, or the reverse, is no pass, unless the
  base or the reference solution gives the same;
- no test in the output: nothing ran, nothing passed. An output that the parser breaks at, though it can read that of
  the base or the reference solution, is no pass either;
- the reward folder is empty when the script starts. A script that ends without a reward that can be believed failed, if
  it writes one for the base or the reference solution: then the agent's change is the reason. Where it does not even do
  that, the script is broken: an infrastructure error, no reward. A script that hangs has failed.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gagar_env.changes import Changes, FileState
from gagar_env.episode import Flag, Outcome, TestRecord, TestReport, TestStatus
from gagar_env.errors import TaskError, VerifyError
from gagar_env.evidence import unmet_ids
from gagar_env.exact_map import differences
from gagar_env.official import Official
from gagar_env.provision import Provision
from gagar_env.reward_file import JSON_NAME, MAX_BYTES, TEXT_NAME, NoRewardError, read_reward
from gagar_env.run_spec import one_line, run_spec, tail
from gagar_env.sandbox import open_sandbox
from gagar_env.sandbox.base import ExecResult, Sandbox, SandboxSpec
from gagar_env.sandbox.stoppable import check_stopped, stoppable
from gagar_env.script_output import Marks, NotStartedError, OutputRefusedError
from gagar_env.swebench.children import ChildFailedError, ChildTimeoutError
from gagar_env.swebench.parsers import Parsed, parse_log
from gagar_env.tasks.task import Tests

MAX_OUTPUT_BYTES = 32 * 1024 * 1024
_FILES_S = 120.0
_BAD = (TestStatus.FAILED, TestStatus.ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """One run.

    Attributes:
        result: How the script ended.
        exit_code: Of the tests: what the script says of them where it does, else its own.
        refused: Why its output, or its reward, is no evidence.
        parsed: What its output says; None where that does not count.
        reward: What it wrote; None where it wrote none, or that does not count.
        files: Names of the files that it wrote the reward to.
        broke: The parser broke at its output.
    """

    result: ExecResult
    exit_code: int
    refused: str = ""
    parsed: Parsed | None = None
    reward: float | None = None
    files: frozenset[str] = frozenset()
    broke: bool = False

    @property
    def statuses(self) -> Mapping[str, TestStatus]:
        """Status of every test in the output."""
        return self.parsed.statuses if self.parsed else {}

    @property
    def failed(self) -> set[str]:
        """Tests that failed, or what the parser takes for one: a line of a log may look like it."""
        return {name for name, status in self.statuses.items() if status in _BAD}

    @property
    def disagreement(self) -> str:
        """How exit code and failures do not agree; empty when they do."""
        if self.exit_code and not self.failed:
            return f"exit code {self.exit_code}, but no test failed"
        return "exit code 0, but tests failed" if self.failed and not self.exit_code else ""


Trusted = Callable[[], Sequence[ScriptRun]]
"""Runs of the base and of the reference solution."""


class ScriptTests:
    """Runs and judges. Without state.

    Args:
        sandbox: Kind of the fresh sandbox.
    """

    def __init__(self, sandbox: str) -> None:
        self._sandbox = sandbox

    def run(self, ready: Provision, official: Official, content: Changes) -> ScriptRun:
        """One run of the script in a fresh sandbox, with `content` on top of the base tree."""
        tests = ready.task.tests
        spec, imported = run_spec(ready, rooms=_rooms(ready))
        spec = _with_imports(spec, ready, imported)
        marks = Marks()
        script = marks.prepare(tests.script)
        sandbox = open_sandbox(self._sandbox, spec)
        try:
            stoppable(sandbox)
            sandbox.write(content)
            if official.placed:
                _place(sandbox, tests.place, official.placed)
            path = _among(official, tests, script) or sandbox.write_scratch(
                "tests/run_tests", script.encode("utf-8", "surrogateescape")
            )
            result = sandbox.run(
                marks.command(script, path), timeout_s=tests.timeout_s, max_output_bytes=MAX_OUTPUT_BYTES
            )
            check_stopped()
            run = ScriptRun(result=result, exit_code=result.exit_code)
            if not result.timed_out:
                run = self._read(tests, marks, result)
            run = replace(run, result=replace(result, output=marks.shown(result.output)))
            if tests.mode == "reward_file" and not run.refused and not result.timed_out:
                return self._with_reward(sandbox, tests, run)
            return run
        finally:
            sandbox.close()

    @staticmethod
    def _read(tests: Tests, marks: Marks, result: ExecResult) -> ScriptRun:
        refused, exit_code, parsed, broke = "", result.exit_code, None, False
        try:
            if result.dropped_bytes and tests.parser:
                size = len(result.output) + result.dropped_bytes
                raise OutputRefusedError(f"the script printed {size} bytes, the limit is {MAX_OUTPUT_BYTES}")
            printed = marks.read(result.output, result.exit_code)
            exit_code = printed.exit_code
            if tests.mode in ("f2p_p2p", "exact_map"):
                parsed = parse_log(tests.parser, printed.text)
        except NotStartedError as error:
            raise VerifyError(str(error)) from None
        except (OutputRefusedError, ChildTimeoutError, ChildFailedError) as error:
            refused, broke = str(error), isinstance(error, ChildFailedError)
        return ScriptRun(result=result, exit_code=exit_code, refused=refused, parsed=parsed, broke=broke)

    @staticmethod
    def _with_reward(sandbox: Sandbox, tests: Tests, run: ScriptRun) -> ScriptRun:
        """Read the folder, now that no process of the tests is left."""
        names = (JSON_NAME, TEXT_NAME)
        places = ((shlex.quote(posixpath.join(tests.reward_folder, name)), name) for name in names)
        taken = f"{sandbox.scratch}/reward"
        lines = [f"rm -rf -- {taken}; mkdir -- {taken} || exit 1"]
        for place, name in places:
            lines.append(f"[ -f {place} ] && [ ! -L {place} ] && head -c {MAX_BYTES + 1} {place} >{taken}/{name}")
        sandbox.run("\n".join((*lines, "exit 0")), timeout_s=_FILES_S, cwd="/")
        files = {name: sandbox.read_scratch(f"reward/{name}", max_bytes=MAX_BYTES) for name in names}
        reward, refused = None, ""
        try:
            reward = read_reward(files)
        except NoRewardError as error:  # or it cannot be read, which the tests may have brought about
            refused = f"{error} (exit code {run.exit_code})"
        there = frozenset(name for name, data in files.items() if data is not None)
        return replace(run, refused=refused, reward=reward, files=there)

    def judge(self, ready: Provision, run: ScriptRun, trusted: Trusted) -> TestReport:
        """What a run is worth.

        Raises:
            VerifyError: If no run at all ends with a reward, or with an output that can be read: the script is broken.
        """
        tests, result = ready.task.tests, run.result
        unmet: tuple[str, ...] = ()
        reason = run.refused
        if run.broke and all(known.broke for known in trusted()):
            raise VerifyError(f"the output of the test script of {ready.task.id} cannot be read: {reason}")
        if tests.mode == "f2p_p2p":
            unmet = unmet_ids(tests, run.statuses, lambda: [known.statuses for known in trusted()])
        if result.timed_out:
            reason = f"the tests reached their limit of {tests.timeout_s:g} s"
        elif tests.mode == "exit_code":
            reason = reason or (f"the script ended with exit code {run.exit_code}" if run.exit_code else "")
        elif tests.mode == "reward_file":
            if run.reward is None and all(known.reward is None for known in trusted()):
                raise VerifyError(f"the test script of {ready.task.id} gives no reward for any tree: {run.refused}")
            reason = reason or _too_low(tests, run) or _other_files(run, trusted)
        elif not reason:
            different = differences(tests.expected, run.statuses) if tests.mode == "exact_map" else None
            unmet = different.ids if different else unmet
            reason = _distrust(run, trusted) or (different.reason if different else _unmet(tests, run, unmet))
        return TestReport(
            outcome=Outcome.FAILED if reason else Outcome.PASSED,
            reason=one_line(reason),
            tests={name: TestRecord(status=status) for name, status in run.statuses.items()},
            unmet=unmet,
            exit_code=None if result.timed_out else run.exit_code,
            timed_out=result.timed_out,
            score=run.reward,
            output_tail=tail(result.output),
        )

    def seen(self, official: Official, run: ScriptRun, trusted: Trusted) -> list[Flag]:
        """A flag where tests of the reference solution's run are not in this one, though all that must pass did."""
        if run.parsed is None or not official.reference:
            return []
        reference = list(trusted())[-1]
        missing = [name for name in reference.statuses if name not in run.statuses]
        if not missing:
            return []
        shown = one_line(f"{len(missing)} tests that run with the reference solution did not: {missing[0]}")
        return [Flag(kind="changes_test_runner", detail=shown)]


def _distrust(run: ScriptRun, trusted: Trusted) -> str:
    if not run.statuses:
        return f"the output names no test (exit code {run.exit_code})"
    if not run.disagreement or any(known.disagreement == run.disagreement for known in trusted()):
        return ""
    if not run.exit_code and not run.failed & {name for known in trusted() for name in known.statuses}:
        return ""  # nothing that failed is a test that others have: a line that looks like one
    return f"the output is not to be believed: {run.disagreement}"


def _unmet(tests: Tests, run: ScriptRun, unmet: Sequence[str]) -> str:
    if not unmet:
        return ""
    required = len(dict.fromkeys((*tests.fail_to_pass, *tests.pass_to_pass)))
    reason = f"{len(unmet)} of {required} required tests did not pass: {', '.join(unmet[:3])}"
    disputed = [name for name in unmet if run.parsed and name in run.parsed.disputed]
    return f"{reason}; printed with several statuses: {disputed[0]}" if disputed else reason


def _too_low(tests: Tests, run: ScriptRun) -> str:
    if run.reward is None or run.reward >= tests.pass_at:
        return ""
    return f"the reward is {run.reward:g}, {tests.pass_at:g} passes"


def _other_files(run: ScriptRun, trusted: Trusted) -> str:
    """Why a reward is not the script's: one in a file that it does not write itself, which would win."""
    known = [other.files for other in trusted() if other.reward is not None]
    if not known or run.files in known:
        return ""
    usual, actual = (" and ".join(sorted(files)) for files in (known[0], run.files))
    return f"the reward is in {actual}, and the script itself writes {usual}"


def _with_imports(spec: SandboxSpec, ready: Provision, imported: Sequence[str]) -> SandboxSpec:
    """Let Python import from the work tree's folders, before those outside of it that the image names."""
    folders = (*ready.task.environment.pythonpath, *imported)
    image = spec.image
    named = spec.env.get("PYTHONPATH", image.env.get("PYTHONPATH", "")) if image is not None else ""
    outside = [part for part in named.split(":") if part]
    if not folders or image is None or not outside:
        return replace(spec, pythonpath=folders)
    inside = [posixpath.normpath(f"{image.workdir}/{folder}") for folder in folders]
    return replace(spec, env={**spec.env, "PYTHONPATH": ":".join((*inside, *outside))})


def _rooms(ready: Provision) -> tuple[str, ...]:
    """Folders that the sandbox needs beside the work tree.

    Raises:
        TaskError: If one would hide the work tree, or is in it.
    """
    task = ready.task
    tests = task.tests
    workdir = posixpath.normpath(task.image.workdir) if task.image is not None and ready.spec.image else "/testbed"
    wanted = {"place": tests.place, "reward_folder": tests.reward_folder if tests.mode == "reward_file" else ""}
    for field, path in wanted.items():
        near = (posixpath.normpath(path) + "/", workdir + "/")
        if path and (near[0].startswith(near[1]) or near[1].startswith(near[0])):
            raise TaskError(f"tests.{field} of {task.id}: {path} and the work tree {workdir} must be apart")
    return tuple(dict.fromkeys(posixpath.normpath(path) for path in wanted.values() if path))


def _among(official: Official, tests: Tests, prepared: str) -> str:
    """Where the script itself stands among the placed tests, as it may look for files beside it; else empty."""
    if prepared.rstrip("\n") != tests.script.rstrip("\n"):
        return ""
    data = tests.script.encode("utf-8", "surrogateescape")
    return next((f"{tests.place.rstrip('/')}/{name}" for name, s in official.placed.items() if s.data == data), "")


def _place(sandbox: Sandbox, folder: str, files: Mapping[str, FileState]) -> None:
    """Put the official tests where they stand outside of the work tree: no process of the agent's has run yet."""
    from gagar_env.sandbox.docker.transfer import install_script, pack  # brings the engine's client

    blob, places = pack(files)
    upload = sandbox.write_scratch("tests/files", blob)
    done = sandbox.run(install_script(folder, files, places, upload), timeout_s=_FILES_S, cwd="/")
    if done.exit_code:
        raise VerifyError(f"the official tests cannot be put to {folder}: {one_line(tail(done.output))}")
