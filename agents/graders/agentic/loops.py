"""Runs coroutines for callers that are not asynchronous: each in an event loop of its own, gone afterwards."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from gagar_env.agents.graders.cancelled import Cancelled

logger = logging.getLogger(__name__)


class Loops:
    """What runs now, by the object that it is for. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, set[_Run]] = {}
        self._cancelled = Cancelled()

    def run(self, key: object, work: Coroutine[Any, Any, None]) -> None:
        """Run to the end, or until `cancel`; also where another loop runs in this thread. An interrupt ends it.

        What was cancelled before ends at its first wait.
        """
        run = _Run()
        with self._lock:
            self._running.setdefault(id(key), set()).add(run)
        if key in self._cancelled:
            run.stop()

        async def main() -> None:
            run.begin()
            try:
                await work
            finally:
                run.end()

        def in_a_loop() -> None:
            try:
                asyncio.run(main())
            except asyncio.CancelledError:
                logger.info("cancelled")

        try:
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                in_a_loop()
            else:
                _in_a_thread(in_a_loop, run.stop)
        finally:
            with self._lock:
                runs = self._running[id(key)]
                runs.discard(run)
                if not runs:
                    del self._running[id(key)]

    def cancel(self, key: object) -> None:
        """Cancel what runs for that object, and what would be run for it later; from any thread."""
        self._cancelled.mark(key)
        with self._lock:
            runs = tuple(self._running.get(id(key), ()))
        for run in runs:
            run.stop()

    def cancelled(self, key: object) -> bool:
        """Whether `cancel` was called for that object."""
        return key in self._cancelled


class _Run:
    """One task, which can be stopped before it has begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._task: tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]] | None = None

    def begin(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            self._task = asyncio.get_running_loop(), task
            if self._stopped:
                task.cancel()

    def end(self) -> None:
        with self._lock:
            self._task = None

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            if self._task is not None:
                loop, task = self._task
                loop.call_soon_threadsafe(task.cancel)


def _in_a_thread(work: Callable[[], None], cancel: Callable[[], None]) -> None:
    faults: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=run, name="gagar-judge")
    thread.start()
    try:
        thread.join()
    except BaseException:  # an interrupt
        cancel()
        thread.join()
        raise
    if faults:
        raise faults[0]
