"""What became of every candidate of a set, one JSON object a line: an interrupted run goes on from it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gagar_env.errors import TaskError
from gagar_env.making.candidate import Made

AGAIN = frozenset({"error"})
"""Reasons that say nothing of the candidate: it is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line.

    Attributes:
        source: What the candidate comes from.
        result: What became of it, its task left out; None in the line that says that the source has no more.
        reason: Why nothing more comes of the source, where it was refused as a whole.
        detail: The same in one line.
    """

    source: str
    result: Made | None = None
    made: bool = False
    reason: str = ""
    detail: str = ""


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
        record: dict[str, Any] = {"source": entry.source, "made": entry.made}
        if entry.result is None:
            record |= {"done": True, "reason": entry.reason, "detail": entry.detail}
        else:
            record["result"] = asdict(replace(entry.result, task=None))
            del record["result"]["task"]
        line = json.dumps(record).encode() + b"\n"
        with self._lock:
            self.entries.append(entry)
            with self.path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())

    def last(self) -> dict[str, Entry]:
        """The last line of each candidate."""
        return {entry.result.id: entry for entry in self.entries if entry.result is not None}

    def finished(self) -> dict[str, Entry]:
        """The sources that have no more, and not because of a fault of the machine."""
        return {e.source: e for e in self.entries if e.result is None and e.reason not in AGAIN}


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
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TaskError(f"journal {where} is none of ours: take another folder") from None
