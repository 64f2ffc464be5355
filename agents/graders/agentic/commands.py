"""Runs a command of the judge in a copy of a candidate's tree: a fresh sandbox for each, dropped after it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
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
        seconds = min(MAX_SECONDS, max(1.0, timeout_s))
        once = _Once(
            lambda: self._open(candidate),
            lambda sandbox: sandbox.run(command, timeout_s=seconds, max_output_bytes=_MAX_OUTPUT),
        )
        try:
            return await asyncio.wrap_future(once.start())
        except asyncio.CancelledError:
            once.abandon()
            raise
        except (GagarError, OSError) as error:
            if isinstance(error, NoCommandsError):
                raise
            logger.warning("a judge's command on %s could not be run: %s", self._task.id, error)
            raise NoCommandsError("the command could not be run: the sandbox failed") from error

    def prepare(self) -> None:
        """Provision now what the first command would; what is wrong is said then."""
        with contextlib.suppress(NoCommandsError):  # each command says it
            self._prepared()

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


class _Once:
    """Opens a sandbox, runs one thing in it and closes it, in a thread that nothing has to wait for.

    Opening can neither be interrupted nor be waited for by a loop that is to end at its deadline: a sandbox that opens
    after it was abandoned is closed at once.
    """

    def __init__(self, make: Callable[[], Sandbox], use: Callable[[Sandbox], ExecResult]) -> None:
        self._make = make
        self._use = use
        self._lock = threading.Lock()
        self._sandbox: Sandbox | None = None
        self._abandoned = False
        self._result: Future[ExecResult] = Future()

    def start(self) -> Future[ExecResult]:
        """What will be the result, or what was raised."""
        self._result.set_running_or_notify_cancel()
        threading.Thread(target=self._work, name="gagar-judge-command", daemon=True).start()
        return self._result

    def abandon(self) -> None:
        """Nobody waits any more: end the command. Does not wait either."""
        with self._lock:
            self._abandoned = True
            opened = self._sandbox is not None
        if opened:
            threading.Thread(target=self._close, name="gagar-judge-close", daemon=True).start()

    def _work(self) -> None:
        try:
            sandbox = self._make()
            with self._lock:
                self._sandbox = sandbox
                wanted = not self._abandoned
            try:
                if not wanted:
                    raise NoCommandsError("nobody waits for this command")
                result = self._use(sandbox)
            finally:
                self._close()
        except BaseException as error:
            self._result.set_exception(error)
        else:
            self._result.set_result(result)

    def _close(self) -> None:
        """Once, by whichever thread comes first; closing also ends what runs."""
        with self._lock:
            sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            try:
                sandbox.close()
            except (GagarError, OSError) as error:
                logger.warning("a judge's sandbox could not be closed: %s", error)
