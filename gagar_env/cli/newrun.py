"""The run that `gagar grade --out` writes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from gagar_env.cli.output import counted, errors
from gagar_env.errors import GagarError
from gagar_env.store import RunFolder
from gagar_env.store.lock import driving
from gagar_env.wrappers.batches import GroupBatch

_PARTS = ("run.json", "groups.jsonl", "episodes")


class NewRun:
    """A run that begins with its first group: where nothing is graded, none is there that would be in the way.

    Args:
        out: A folder, which may be there without a run in it; None writes nothing.
        about: Settings of the run, as plain JSON.

    Raises:
        GagarError: If it is taken or cannot be made. Found here, before any grading costs.
    """

    def __init__(self, out: Path | None, about: Mapping[str, Any]) -> None:
        self._out, self._about = out, dict(about)
        self._stack = contextlib.ExitStack()
        self._run: RunFolder | None = None
        self._written = 0
        self._made = False
        if out is None:
            return
        if any((out / name).exists() for name in _PARTS):
            raise GagarError(f"{out} holds a run already: choose another --out")
        self._made = not out.exists()
        try:
            out.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise GagarError(f"--out {out} is a file: name a folder") from None
        except OSError as error:
            raise GagarError(f"--out {out}: cannot be written: {error.strerror}") from error

    def add(self, batch: GroupBatch) -> None:
        """Write a group.

        Raises:
            GagarError: If it cannot be written.
        """
        if self._out is None:
            return
        try:
            if self._run is None:
                self._run = RunFolder.create(self._out, self._about)
                self._stack.enter_context(driving(self._out))
            self._run.add(batch.result, batch.episodes, task=batch.task, attempt=batch.attempt)
        except (GagarError, OSError) as error:
            cause = error if isinstance(error, OSError) else error.__cause__
            if not isinstance(cause, OSError):
                raise
            raise GagarError(f"--out {self._out}: {cause.strerror}; {self._so_far()}") from error
        self._written += 1

    def __enter__(self) -> NewRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
        if self._out is None:
            return
        if self._made and self._run is None:
            with contextlib.suppress(OSError):  # somebody else put something there
                self._out.rmdir()
        if isinstance(error, KeyboardInterrupt) and self._written:
            line = f"gagar: stopped: {self._so_far()}"
            errors.print(line, style="red", markup=False, highlight=False, soft_wrap=True)

    def _so_far(self) -> str:
        if not self._written:
            return "nothing was written"
        return f"{counted(self._written, 'group')} of it stay there; begin again with another --out"
