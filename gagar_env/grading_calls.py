"""Calls of a grader that can all be ended from outside: nobody waits for a verdict any longer."""

from __future__ import annotations

import threading
from typing import Any

from gagar_env.errors import GradingError
from gagar_env.grading import Grader, Verdict
from gagar_env.workspace import Workspace


class _Call:
    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.over = threading.Event()
        self.answer: list[Verdict] = []
        self.fault: list[BaseException] = []


class GradingCalls:
    """A grader that asks another one, each time in a thread of its own, until `stop`.

    It changes nothing of a verdict. Safe in threads, as far as the other one is.

    Args:
        grader: The one that is asked. Where it has `cancel`, it is told of calls that nobody waits for.
    """

    def __init__(self, grader: Grader) -> None:
        self.name = str(getattr(grader, "name", type(grader).__name__))
        self._grader = grader
        self._lock = threading.Lock()
        self._stopped = False
        self._calls: set[_Call] = set()

    def grade(self, workspace: Workspace) -> Verdict:
        """See `Grader.grade`.

        Raises:
            GradingError: If it was stopped.
        """
        call = _Call(workspace)
        with self._lock:
            if not self._stopped:
                self._calls.add(call)
        try:
            if call in self._calls:
                threading.Thread(target=self._ask, args=(call,), name="gagar-grader", daemon=True).start()
                call.over.wait()
        finally:
            with self._lock:
                self._calls.discard(call)
        if call.fault:
            raise call.fault[0]
        if not call.answer:
            raise GradingError("grading was stopped: nobody waits for this verdict any more")
        return call.answer[0]

    def cancel(self, workspace: Workspace) -> None:
        """End the call for that workspace; from any thread."""
        with self._lock:
            calls = [call for call in self._calls if call.workspace is workspace]
        self._end(calls)

    def stop(self) -> None:
        """End all calls, and begin none from now on. A thread that does not come back is left alone."""
        with self._lock:
            self._stopped = True
            calls = list(self._calls)
        self._end(calls)

    def _end(self, calls: list[_Call]) -> None:
        cancel: Any = getattr(self._grader, "cancel", None)
        for call in calls:
            try:
                if callable(cancel):
                    cancel(call.workspace)
            finally:
                call.over.set()

    def _ask(self, call: _Call) -> None:
        try:
            call.answer.append(self._grader.grade(call.workspace))
        except BaseException as error:  # an interrupt in there is handed on as well
            call.fault.append(error)
        call.over.set()
