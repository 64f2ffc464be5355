"""Blocks that another thread can stop by closing the sandboxes that they use: nobody waits for them any more."""

from __future__ import annotations

import threading
from types import TracebackType

from gagar_env.errors import SandboxClosedError
from gagar_env.sandbox.base import Sandbox

_of_thread = threading.local()


class Stoppable:
    """A block of one thread; `stop` may come from any other, before, while or after it runs."""

    def __init__(self) -> None:
        self.stopped = False
        self._sandboxes: list[Sandbox] = []
        self._lock = threading.Lock()

    def stop(self) -> None:
        """Close what the block uses, now and from now on."""
        with self._lock:
            self.stopped = True
            sandboxes, self._sandboxes = self._sandboxes, []
        for sandbox in sandboxes:
            sandbox.close()

    def add(self, sandbox: Sandbox) -> None:
        """Close a sandbox when the block is stopped."""
        with self._lock:
            if not self.stopped:
                self._sandboxes.append(sandbox)

    def __enter__(self) -> Stoppable:
        self._outer: Stoppable | None = getattr(_of_thread, "block", None)
        _of_thread.block = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _of_thread.block = self._outer
        with self._lock:
            self._sandboxes.clear()


def stoppable(sandbox: Sandbox) -> None:
    """Let the block that this thread is in close `sandbox`; outside of any, nothing happens.

    Raises:
        SandboxClosedError: If the block was stopped.
    """
    block: Stoppable | None = getattr(_of_thread, "block", None)
    if block is not None:
        block.add(sandbox)
        check_stopped()


def check_stopped() -> None:
    """Refuse what a sandbox gave that may have been closed under it.

    Raises:
        SandboxClosedError: If the block that this thread is in was stopped.
    """
    block: Stoppable | None = getattr(_of_thread, "block", None)
    if block is not None and block.stopped:
        raise SandboxClosedError("stopped: nobody waits for this run any more")
