"""`Memo`: what was worked out once, in memory and in a file that several processes append to."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path
from typing import Any


class Memo:
    """A dictionary of JSON objects by key. The last one put under a key counts.

    The file has one object a line, written at once under a lock, so that lines of several processes do not mix. A line
    that is torn (a process was killed, the disk was full) is passed over. Safe to share between threads.

    Args:
        path: The file; None keeps everything in memory only.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        self._read_to = 0
        self._lock = threading.Lock()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> dict[str, Any] | None:
        """What is known under a key, by this process or another; None when nothing is."""
        with self._lock:
            if key not in self._known:
                self._read_on()
            return self._known.get(key)

    def put(self, key: str, value: dict[str, Any]) -> None:
        """Keep `value`, which JSON can hold."""
        line = json.dumps({"key": key, "value": value}, allow_nan=False).encode("ascii")
        with self._lock:
            self._known[key] = json.loads(line)["value"]
            if self._path is None:
                return
            with self._path.open("a+b") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX)
                stream.seek(0, os.SEEK_END)
                torn = stream.tell() > 0 and not self._ends_a_line(stream.fileno())
                stream.write((b"\n" if torn else b"") + line + b"\n")

    @staticmethod
    def _ends_a_line(file: int) -> bool:
        return os.pread(file, 1, os.fstat(file).st_size - 1) == b"\n"

    def _read_on(self) -> None:
        """Take in the whole lines that were added since the last look."""
        if self._path is None or not self._path.exists():
            return
        with self._path.open("rb") as stream:
            stream.seek(self._read_to)
            whole, _, _ = stream.read().rpartition(b"\n")
        if not whole:
            return
        self._read_to += len(whole) + 1
        self._known.update(entry for line in whole.split(b"\n") if (entry := _entry(line)))


def _entry(line: bytes) -> tuple[str, dict[str, Any]] | None:
    """Key and value of a line; None of a torn one."""
    try:
        row = json.loads(line)
        return row["key"], row["value"]
    except (ValueError, TypeError, KeyError):
        return None
