"""Jobs in threads, a few at a time, their results in the order of the jobs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, wait
from typing import Final, TypeVar

T = TypeVar("T")

_PATIENCE_S: Final = 5.0
"""For what tidies up after itself when it was ended."""


def in_order(jobs: Iterable[Callable[[], T]], at_once: int, *, end: Callable[[], None]) -> Generator[T, None, None]:
    """What the jobs give, in their order, at most `at_once` at work or waiting to be taken.

    One at a time runs in the caller's own thread, so that an interrupt reaches it. Of several, those that are at work
    at the end (an interrupt, somebody who breaks out) are not waited for: no thread keeps the process alive.

    Args:
        jobs: Asked for one by one, in the caller's thread.
        at_once: 1 or more.
        end: Called when it is over, however it ends, to end the jobs that are still at work.

    Raises:
        BaseException: What a job raises.
    """
    if at_once == 1:
        for job in jobs:
            yield job()
        return
    waiting: deque[Future[T]] = deque()
    try:
        for job in jobs:
            waiting.append(_begun(job))
            if len(waiting) == at_once:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        end()
        wait(waiting, timeout=_PATIENCE_S)


def _begun(job: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def work() -> None:
        try:
            future.set_result(job())
        except BaseException as error:  # an interrupt in there is handed on as well
            future.set_exception(error)

    threading.Thread(target=work, name="gagar-in-order", daemon=True).start()
    return future
