"""What a logger is, and several of them as one that never ends a run."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

logger = logging.getLogger(__name__)

Numbers = Mapping[str, Any]
"""Name -> number. `None`, NaN, infinities and what is no number are left out: no curve has a place for them."""


@runtime_checkable
class Logger(Protocol):
    """Takes the numbers of each step of a run. May raise: `MultiLogger` keeps that away from the run."""

    def log(self, step: int, numbers: Numbers) -> None:
        """Take the numbers of one step.

        Args:
            step: 0 or more; may repeat, and may be lower than the one before.
            numbers: Flat; a `/` in a name makes groups of curves.
        """
        ...

    def close(self) -> None:
        """Write what is still held. Nothing is logged afterwards; a second call does nothing."""
        ...


def known_numbers(numbers: Numbers) -> dict[str, int | float]:
    """The numbers that a curve can show: whole numbers stay so, and a number of numpy or torch becomes a plain one."""
    known: dict[str, int | float] = {}
    for name, value in numbers.items():
        if isinstance(value, int):
            known[str(name)] = int(value)
        elif value is not None and not isinstance(value, (str, bytes)):
            try:
                number = float(value.detach() if hasattr(value, "detach") else value)
            except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: a tensor of several numbers
                continue
            if math.isfinite(number):
                known[str(name)] = number
    return known


class MultiLogger:
    """Several loggers as one. One that fails is told once and then left out; the others and the run go on.

    May be called from several threads.

    Args:
        loggers: Loggers, or name -> logger; the name is what a warning says.
    """

    def __init__(self, loggers: Iterable[Logger] | Mapping[str, Logger]) -> None:
        if isinstance(loggers, Mapping):
            self._loggers = dict(loggers)
        else:
            self._loggers = {f"{type(one).__name__} {place}": one for place, one in enumerate(loggers, 1)}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def names(self) -> tuple[str, ...]:
        """Of those that still work."""
        return tuple(self._loggers)

    def log(self, step: int, numbers: Numbers) -> None:
        """Hand the numbers to all of them. Never raises."""
        known = known_numbers(numbers)
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            step = int(step)  # of numpy or torch, say
        with self._lock:
            if self._closed or not known:
                return
            for name, one in list(self._loggers.items()):
                if not _done(name, lambda one=one: one.log(step, known)):  # type: ignore[misc]
                    del self._loggers[name]
                    _done(name, one.close, told=True)

    def close(self) -> None:
        """Close all of them. Never raises."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for name, one in self._loggers.items():
                _done(name, one.close)

    def __enter__(self) -> MultiLogger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def tell(name: str, error: Exception) -> None:
    """Say in one line that a logger does not work."""
    said = " ".join(f"{type(error).__name__}: {error}".split())
    logger.warning("logger %s failed and is left out from here on: %s", name, said[:500])


def _done(name: str, call: Callable[[], None], *, told: bool = False) -> bool:
    try:
        call()
    except Exception as error:
        if not told:
            tell(name, error)
        return False
    return True
