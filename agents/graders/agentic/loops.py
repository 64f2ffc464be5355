"""Runs coroutines for callers that are not asynchronous: each in an event loop of its own, gone afterwards."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class Loops:
    """What runs now, by key. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = {}

    def run(self, key: int, work: Coroutine[Any, Any, None]) -> None:
        """Run to the end, or until `cancel`; also where another loop runs in this thread. An interrupt ends it."""

        async def main() -> None:
            task = asyncio.current_task()
            assert task is not None
            with self._lock:
                self._running[key] = asyncio.get_running_loop(), task
            try:
                await work
            finally:
                with self._lock:
                    del self._running[key]

        def in_a_loop() -> None:
            try:
                asyncio.run(main())
            except asyncio.CancelledError:
                logger.info("cancelled")

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            in_a_loop()
        else:
            _in_a_thread(in_a_loop, lambda: self.cancel(key))

    def cancel(self, key: int) -> None:
        """Cancel what runs under that key, from any thread."""
        with self._lock:
            if key in self._running:
                loop, task = self._running[key]
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
