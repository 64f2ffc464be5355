"""What became of every candidate of a set, one JSON object a line: an interrupted run goes on from it."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gagar_env.errors import TaskError
from gagar_env.making.candidate import Made

_AGAIN = "error"
"""The reason that says nothing of the candidate: it is tried again."""
_TOO_SLOW = "too_slow"
"""Tried again when runs may take longer than they could."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line.

    Attributes:
        source: What the candidate comes from.
        result: What became of it, its task left out; None in the line that says that the source has no more.
        reason: Why nothing more comes of the source, where it was refused as a whole.
        detail: The same in one line.
        longest_s: Seconds that one run could take.
    """

    source: str
    result: Made | None = None
    made: bool = False
    reason: str = ""
    detail: str = ""
    longest_s: float = 0.0

    def is_open(self, longest_s: float) -> bool:
        """Whether this says nothing for a run whose tests may take `longest_s` seconds."""
        reason = self.reason if self.result is None else self.result.reason
        return not self.made and (reason == _AGAIN or (reason == _TOO_SLOW and self.longest_s < longest_s))


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep other processes from the set of this journal.

    Raises:
        TaskError: If one is at work on it.
    """
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise TaskError(f"{path.parent}: another process makes tasks there: wait for it, or name another") from None
        yield


class Journal:
    """The file. Lines are written whole and at once, from any thread.

    Args:
        path: Read when it is there; a last line that was cut off is dropped.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.entries: list[Entry] = list(_read(path))

    def add(self, entry: Entry) -> None:
        """Write one line."""
        record: dict[str, Any] = {"source": entry.source, "made": entry.made, "longest_s": entry.longest_s}
        if entry.result is None:
            record |= {"done": True, "reason": entry.reason, "detail": entry.detail}
        else:
            record["result"] = asdict(replace(entry.result, task=None))
            del record["result"]["task"]
        line = json.dumps(record).encode() + b"\n"
        with self._lock:
            with self.path.open("ab", buffering=0) as file:
                size = file.tell()
                try:
                    if file.write(line) != len(line):
                        raise OSError(errno.ENOSPC, "no room for a line of the journal")
                    os.fsync(file.fileno())
                except OSError:  # the next line must not be written behind half of this one
                    file.truncate(size)
                    raise
            self.entries.append(entry)

    def last(self) -> dict[str, Entry]:
        """The last line of each candidate."""
        return {entry.result.id: entry for entry in self.entries if entry.result is not None}

    def finished(self, longest_s: float = 0.0) -> dict[str, Entry]:
        """The sources that have no more for a run whose tests may take `longest_s` seconds.

        Not those that ended by a fault of the machine, or of which a candidate is to be tried again.
        """
        left = {entry.source for entry in self.last().values() if entry.is_open(longest_s)}
        ends = (e for e in self.entries if e.result is None and not e.is_open(longest_s))
        return {entry.source: entry for entry in ends if entry.source not in left}


def _read(path: Path) -> Iterator[Entry]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    except OSError as error:
        raise TaskError(f"journal {path}: cannot be read: {error.strerror}") from None
    if lines[-1]:  # a process was killed while it wrote this
        with path.open("r+b") as file:
            file.truncate(sum(len(line) + 1 for line in lines[:-1]))
    yield from (_entry(line, f"{path}: line {number}") for number, line in enumerate(lines[:-1], 1))


def _entry(line: bytes, where: str) -> Entry:
    try:
        record = json.loads(line)
        result = record.get("result")
        return Entry(
            source=record["source"],
            result=Made(**{**result, "flaky": tuple(result["flaky"])}) if result is not None else None,
            made=record["made"],
            reason=record.get("reason", ""),
            detail=record.get("detail", ""),
            longest_s=record.get("longest_s", 0.0),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TaskError(f"journal {where} is none of ours: take another folder") from None
