"""Runs a command of the judge in a copy of a candidate's tree: a fresh sandbox for each, dropped after it."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import replace

from gagar_env.errors import GagarError, SandboxError
from gagar_env.provision import kind_for, provision
from gagar_env.sandbox import Sandbox, open_sandbox
from gagar_env.sandbox.base import ExecResult, SandboxSpec
from gagar_env.tasks.task import Task
from gagar_env.workspace import Candidate

logger = logging.getLogger(__name__)
MAX_SECONDS = 60.0
_MAX_OUTPUT = 256 * 1024


class NoCommandsError(GagarError):
    """Commands cannot be run; one line for the model, without a path of the host."""


class CommandRunner:
    """Runs commands for one task. Safe in threads.

    Args:
        task: Whose environment the commands run in.
        kind: Kind of sandbox, `auto`, or `none` to run nothing. One that isolates nothing is not used.
    """

    def __init__(self, task: Task, kind: str) -> None:
        self._task = task
        self._wanted = kind
        self._lock = threading.Lock()
        self._ready: tuple[str, SandboxSpec] | None = None
        self._fault = "commands cannot be run here" if kind == "none" else ""

    async def run(self, candidate: Candidate, command: str, timeout_s: float) -> ExecResult:
        """The result of one bash script in the candidate's tree.

        Raises:
            NoCommandsError: If it could not be run.
        """
        sandbox: Sandbox | None = None
        try:
            sandbox = await asyncio.to_thread(self._open, candidate)
            return await asyncio.to_thread(
                sandbox.run, command, timeout_s=min(MAX_SECONDS, max(1.0, timeout_s)), max_output_bytes=_MAX_OUTPUT
            )
        except (GagarError, OSError) as error:
            if isinstance(error, NoCommandsError):
                raise
            logger.warning("a judge's command on %s could not be run: %s", self._task.id, error)
            raise NoCommandsError("the command could not be run: the sandbox failed") from error
        finally:
            if sandbox is not None:
                sandbox.close()  # also what ends a command that nobody waits for

    def _open(self, candidate: Candidate) -> Sandbox:
        kind, spec = self._prepared()
        return open_sandbox(kind, replace(spec, tree=candidate.tree(), tree_key=""))

    def _prepared(self) -> tuple[str, SandboxSpec]:
        with self._lock:
            if self._ready is None and not self._fault:
                try:
                    kind = kind_for(self._task, self._wanted)
                    if kind == "process":
                        raise SandboxError("only the 'process' sandbox works here, which isolates nothing")
                    self._ready = kind, provision(self._task, sandbox=kind).spec
                except (GagarError, OSError) as error:
                    logger.warning("the judge of %s runs no commands: %s", self._task.id, error)
                    self._fault = "commands cannot be run here: no sandbox works"
            if self._ready is None:
                raise NoCommandsError(self._fault)
            return self._ready
