"""Candidates of many sources for many threads."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gagar_env.errors import GagarError
from gagar_env.making.candidate import Candidate, RefusedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where candidates come from.

    Attributes:
        id: Deterministic, such as `click 8.1.0 8.1.3`.
        propose: Finds the candidates. What it raises ends this source alone.
    """

    id: str
    propose: Callable[[], Iterable[Candidate]]


@dataclass(slots=True)
class _Open:
    source: Source
    iterator: Iterator[Candidate] | None = None
    busy: bool = True
    exhausted: bool = False
    pending: int = 0
    reason: str = ""
    detail: str = ""


class Feed:
    """Hands out candidates. One thread at a time looks for more of a source; others take another source meanwhile.

    Args:
        sources: In the order in which they are begun.
        on_end: Told each source that has no more and whose candidates are all through, with the reason and its
            explanation where it was refused as a whole.
    """

    def __init__(self, sources: Iterable[Source], on_end: Callable[[str, str, str], None]) -> None:
        self._waiting = deque(sources)
        self._open: list[_Open] = []
        self._on_end = on_end
        self._changed = threading.Condition()
        self._stopped = False

    def stop(self) -> None:
        """Hand out no more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[tuple[str, Candidate]]:
        """Candidates with the id of their source, until there are none; for each thread its own iterator.

        A candidate counts as through when its iterator is asked for the next.
        """
        while (taken := self._take()) is not None:
            candidate = self._next(taken)
            if candidate is None:
                continue
            try:
                yield taken.source.id, candidate
            finally:
                self._through(taken)

    def _take(self) -> _Open | None:
        with self._changed:
            while not self._stopped:
                for one in self._open:
                    if not one.busy and not one.exhausted:
                        one.busy = True
                        return one
                if self._waiting:
                    self._open.append(_Open(self._waiting.popleft()))
                    return self._open[-1]
                if all(one.exhausted for one in self._open):
                    return None
                self._changed.wait()
        return None

    def _next(self, one: _Open) -> Candidate | None:
        candidate, reason, detail = None, "", ""
        try:
            if one.iterator is None:
                one.iterator = iter(one.source.propose())
            candidate = next(one.iterator, None)
        except RefusedError as error:
            reason, detail = error.reason, str(error)
        except (GagarError, OSError) as error:
            reason, detail = "error", " ".join(str(error).split())
        except Exception as error:  # a maker that is broken must not end a run of many
            reason, detail = "error", f"{type(error).__name__}: {' '.join(str(error).split())}"
        with self._changed:
            one.busy = False
            one.exhausted = candidate is None
            one.pending += candidate is not None
            one.reason, one.detail = reason, detail
            ended = one.exhausted and not one.pending
            self._changed.notify_all()
        if ended:
            self._on_end(one.source.id, one.reason, one.detail)
        return candidate

    def _through(self, one: _Open) -> None:
        with self._changed:
            one.pending -= 1
            ended = one.exhausted and not one.pending
        if ended and not self._stopped:
            self._on_end(one.source.id, one.reason, one.detail)
