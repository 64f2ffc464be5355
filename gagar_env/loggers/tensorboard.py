"""Curves for TensorBoard, without TensorBoard: `tensorboard --logdir FOLDER` shows them."""

from __future__ import annotations

from pathlib import Path

from gagar_env.loggers.base import Numbers, known_numbers
from gagar_env.loggers.eventfile import EventFile


class TensorBoardLogger:
    """Writes an event file; needs nothing but this package. What is logged is on disk at once.

    Args:
        folder: Of the event file.
        first_step: Where a run that goes on begins: TensorBoard then hides what the interrupted process had logged
            from this step on.
    """

    def __init__(self, folder: str | Path, *, first_step: int = 0) -> None:
        self._file: EventFile | None = EventFile(Path(folder), first_step=first_step)

    def log(self, step: int, numbers: Numbers) -> None:
        """Write the numbers."""
        if self._file is not None:
            self._file.add(step, known_numbers(numbers))

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
