"""Runs on disk as a page needs them: groups by number, as many as are written, and episodes when they are asked for."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.store import FailureRecord, GroupRecord, RunFolder, find_runs
from gagar_env.store.records import read_group
from gagar_env.view.rows import group_row

MAX_RUNS = 500
_KEPT_EPISODES = 24


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    size: int


class Run:
    """One run folder. Safe for several threads; it may be written while it is read.

    Attributes:
        folder: The folder, and `path` where it is.
        name: As the switch of the page shows it.
        unreadable: Whole lines of `groups.jsonl` that hold no group; they are left out.
    """

    def __init__(self, folder: RunFolder, name: str) -> None:
        self.folder = folder
        self.path = folder.path
        self.name = name
        self.unreadable = 0
        self._rows: list[dict[str, Any]] = []
        self._places: list[_Place] = []
        self._read_to = 0
        self._lock = threading.Lock()
        self._episodes: OrderedDict[str, Episode] = OrderedDict()

    def rows(self) -> list[dict[str, Any]]:
        """One row for each group that is written whole, in the order of the file; the position is its number."""
        with self._lock:
            self._read_on()
            return list(self._rows)

    def group(self, number: int) -> GroupRecord | None:
        """A group by its number; None when there is none."""
        with self._lock:
            if not 0 <= number < len(self._places):
                self._read_on()
            if not 0 <= number < len(self._places):
                return None
            place = self._places[number]
        with (self.path / "groups.jsonl").open("rb") as stream:
            stream.seek(place.start)
            return _read_line(stream.read(place.size))

    def episode(self, episode_id: str) -> Episode | None:
        """An episode; None when its file is not there or does not hold one."""
        with self._lock:
            if (known := self._episodes.get(episode_id)) is not None:
                self._episodes.move_to_end(episode_id)
                return known
        found = self.episode_once(episode_id)
        if found is not None:
            with self._lock:
                self._episodes[episode_id] = found
                while len(self._episodes) > _KEPT_EPISODES:
                    self._episodes.popitem(last=False)
        return found

    def episode_once(self, episode_id: str) -> Episode | None:
        """The same for one who reads all of them: it is not kept in memory."""
        try:
            return self.folder.episode(episode_id)
        except (OSError, ValueError, GagarError):
            return None

    def metrics(self) -> list[dict[str, Any]]:
        """Logged steps; none where they cannot be read."""
        try:
            return self.folder.metrics()
        except (OSError, ValueError, GagarError):
            return []

    def failures(self) -> list[FailureRecord]:
        """Groups that could not be run."""
        try:
            return list(self.folder.failures())
        except (OSError, ValueError, GagarError):
            return []

    def statement(self, task_id: str, digest: str = "") -> str:
        """Problem statement of a task, as a group had it; empty where the run does not hold it."""
        try:
            task = self.folder.task(task_id, digest)
        except (OSError, ValueError, GagarError):
            return ""
        return "" if task is None else task.problem_statement

    def _read_on(self) -> None:
        """Take in the lines that were written since; the last one only when it is whole."""
        try:
            with (self.path / "groups.jsonl").open("rb") as stream:
                stream.seek(self._read_to)
                for line in stream:
                    if not line.endswith(b"\n"):
                        return
                    place = _Place(self._read_to, len(line))
                    self._read_to += len(line)
                    found = _read_line(line)
                    if found is None:
                        self.unreadable += bool(line.strip())
                        continue
                    self._rows.append(group_row(found.result))
                    self._places.append(place)
        except OSError:  # not there yet, or not for us
            return


def _read_line(line: bytes) -> GroupRecord | None:
    try:
        found = json.loads(line)
        return read_group(found, "groups.jsonl") if isinstance(found, dict) else None
    except (ValueError, RecursionError, GagarError):
        return None


def open_runs(path: Path) -> list[Run]:
    """The run that a folder is, or the runs below it.

    Args:
        path: What `gagar run --out` wrote, or a folder that holds several of these.

    Raises:
        GagarError: If there is none, or a newer version of this package wrote it.
    """
    if not path.is_dir():
        what = "is a file" if path.exists() else "there is no such folder"
        raise GagarError(f"{path}: {what}; name a folder that `gagar run --out` wrote")
    if (path / "run.json").is_file() or (path / "groups.jsonl").is_file():
        return [Run(RunFolder.open(path), path.resolve().name)]
    found = [Run(folder, folder.path.relative_to(path).as_posix()) for folder in islice(find_runs(path), MAX_RUNS)]
    if not found:
        raise GagarError(
            f"{path}: no run is in there; name a folder that `gagar run --out` wrote, or one that holds some"
        )
    return found
