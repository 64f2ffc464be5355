"""Numbers as lines of JSON: in a file of one's own, or in a run folder."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gagar_env.loggers.base import Numbers, known_numbers

if TYPE_CHECKING:
    from gagar_env.store import RunFolder


class JsonlLogger:
    """One line for each step: `step`, `time` (seconds since 1970) and the numbers.

    Each line is appended in one write, so that several processes may share the file and a killed one tears no line
    but its last.

    Args:
        path: The file; what is in it stays.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()
        self._closed = False

    def log(self, step: int, numbers: Numbers) -> None:
        """Append a line."""
        if self._closed:
            return
        line = json.dumps({"step": int(step), "time": time.time(), **known_numbers(numbers)}) + "\n"
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            size = os.fstat(file).st_size
            torn = size and os.pread(file, 1, size - 1) != b"\n"  # by a process that was killed while it wrote
            os.write(file, ("\n" * bool(torn) + line).encode())
        finally:
            os.close(file)

    def close(self) -> None:
        """Nothing is held."""
        self._closed = True


class RunLogger:
    """Into the metrics of a run folder (`metrics.jsonl`), where `gagar view` finds them.

    Args:
        run: The folder.
    """

    def __init__(self, run: RunFolder) -> None:
        self._run = run

    def log(self, step: int, numbers: Numbers) -> None:
        """Append a line."""
        self._run.add_metrics(step, known_numbers(numbers))

    def close(self) -> None:
        """Nothing is held."""
