r"""The `scripted` sandbox: answers from a list or a function, for tests without processes. Ours and yours.

    sandbox = ScriptedSandbox(spec, answers=[ExecResult(exit_code=0, output=b"hi\\n")])

To reach it through an environment: `register_sandbox("scripted", lambda spec: ScriptedSandbox(spec, ...))`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from gagar_env.changes import Capture, Changes, FileState, check_path
from gagar_env.errors import SandboxClosedError, SandboxError
from gagar_env.sandbox.base import DEFAULT_MAX_OUTPUT_BYTES, ExecResult, SandboxSpec

Answer = ExecResult | BaseException
"""What one command gives back; an exception is raised."""


class ScriptedSandbox:
    """A sandbox without processes: files live in a dictionary, commands in a script.

    Args:
        spec: As for any sandbox; only `tree` is read, to compare with.
        answers: One `ExecResult` or exception for each command, in order; or a function of sandbox and command.
    """

    kind = "scripted"
    workdir = "/testbed"
    scratch = "/scratch"

    def __init__(
        self,
        spec: SandboxSpec,
        answers: Iterable[Answer] | Callable[[ScriptedSandbox, str], Answer] = (),
    ) -> None:
        self.spec = spec
        self.commands: list[str] = []
        """Every command that was run, in order."""
        self.files: dict[str, FileState | None] = {}
        self.scratch_files: dict[str, bytes] = {}
        self.closed = False
        self._answer = answers if callable(answers) else None
        self._answers = iter(() if callable(answers) else answers)

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
    ) -> ExecResult:
        """The next answer.

        Raises:
            SandboxError: When the script has no answer left.
        """
        self._check_open()
        self.commands.append(command)
        if self._answer is not None:
            answer = self._answer(self, command)
        else:
            try:
                answer = next(self._answers)
            except StopIteration:
                raise SandboxError(f"the script has no answer left for {command!r}") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def write(self, changes: Changes) -> None:
        """See `Sandbox.write`."""
        self._check_open()
        for path in changes:
            check_path(path)
        self.files.update(changes)

    def write_scratch(self, name: str, data: bytes) -> str:
        """See `Sandbox.write_scratch`."""
        self._check_open()
        self.scratch_files[check_path(name)] = data
        return f"{self.scratch}/{name}"

    def read_scratch(self, name: str, *, max_bytes: int = 64 * 1024 * 1024) -> bytes | None:
        """See `Sandbox.read_scratch`."""
        self._check_open()
        data = self.scratch_files.get(check_path(name))
        return data if data is not None and len(data) <= max_bytes else None

    def capture(self, *, max_file_bytes: int = 2 * 1024 * 1024) -> Capture:
        """What was written and differs from the base tree."""
        self._check_open()
        return Capture(changes={p: s for p, s in self.files.items() if s != self._base(p)})

    def _base(self, path: str) -> FileState | None:
        full = self.spec.tree / path
        if full.is_symlink():
            return FileState(os.fsencode(os.readlink(full)), "120000")
        if not full.is_file():
            return None
        return FileState(full.read_bytes(), "100755" if os.access(full, os.X_OK) else "100644")

    def _check_open(self) -> None:
        if self.closed:
            raise SandboxClosedError("the scripted sandbox is closed")

    def close(self) -> None:
        """Mark it closed. May be called twice."""
        self.closed = True
