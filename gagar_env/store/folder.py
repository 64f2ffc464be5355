"""`RunFolder`: the folder of one run, written by any number of processes and threads at one time."""

from __future__ import annotations

import json
import logging
import math
import operator
import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.group_result import GroupResult
from gagar_env.store.atif import from_atif, to_atif
from gagar_env.store.files import (
    append_line,
    check_schema,
    file_name,
    make_durable,
    read_json,
    read_lines,
    told,
    warn_of_line,
    write_new,
    write_whole,
)
from gagar_env.store.records import (
    FailureRecord,
    GroupRecord,
    failure_line,
    group_line,
    now,
    read_failure,
    read_group,
)
from gagar_env.store.tasks import StoredTasks
from gagar_env.tasks.task import Task

SCHEMA_VERSION: Final = 1
_NAMES: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

logger = logging.getLogger(__name__)


class RunFolder:
    """The folder of one run; see the package for what is in it. Made by `create` or `open`.

    Attributes:
        path: The folder.
        id: Of the run; no other has it. Empty for folders of earlier versions, which did not say.
        created: When it was begun, in UTC; None likewise.
        settings: What it was made with, as plain JSON.
    """

    def __init__(self, path: Path, about: Mapping[str, Any] | None = None) -> None:
        about = about or {}
        created = about.get("created")
        settings = about.get("settings")
        self.path = Path(path)
        self.id = str(about.get("id", ""))
        self.created = datetime.fromisoformat(created) if isinstance(created, str) else None
        self.settings: dict[str, Any] = dict(settings) if isinstance(settings, Mapping) else {}
        self._tasks = StoredTasks(self.path / "tasks")

    @classmethod
    def create(cls, path: Path, settings: Mapping[str, Any] | None = None) -> RunFolder:
        """Make a new folder for a run. It is one from the moment that `run.json` is there, with all that it says.

        Args:
            path: A folder that may be there, without a run in it.
            settings: Plain JSON: what is needed to go on with the run.

        Raises:
            GagarError: If there is a run in it already: no run overwrites another. If the settings are something else,
                or the disk is full.
            OSError: If it cannot be made.
        """
        path = Path(path)
        try:
            json.dumps(settings or {}, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise GagarError(f"{path}: settings of a run must be plain JSON: {error}") from error
        about = {
            "schema_version": SCHEMA_VERSION,
            "gagar_version": version("gagar-env"),
            "id": uuid.uuid4().hex[:12],
            "created": now(),
            "settings": dict(settings or {}),
        }
        taken = GagarError(f"{path} holds a run already: choose another --out")
        if (path / "groups.jsonl").exists() or (path / "episodes").exists():
            raise taken
        with told(path):
            path.mkdir(parents=True, exist_ok=True)
            try:
                write_new(path / "run.json", json.dumps(about, indent=1, allow_nan=False).encode() + b"\n")
            except FileExistsError:
                raise taken from None
            for name in ("episodes", "tasks"):
                (path / name).mkdir(exist_ok=True)
            make_durable(path)
        return cls(path, about)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run in a folder.

        Raises:
            GagarError: If there is none, or a newer version of this package wrote it.
        """
        path = Path(path)
        if not (path / "run.json").exists():
            if (path / "groups.jsonl").exists() and (path / "episodes").is_dir():
                return cls(path)  # as earlier versions wrote it
            raise GagarError(f"{path} holds no run: `gagar run --out` makes one")
        about = read_json(path / "run.json")
        check_schema(str(path / "run.json"), about.get("schema_version"), SCHEMA_VERSION)
        try:
            return cls(path, about)
        except ValueError as error:
            raise GagarError(f"{path / 'run.json'}: the file is damaged: {error}") from error

    def add(
        self,
        result: GroupResult,
        episodes: Sequence[Episode],
        *,
        task: Task | None = None,
        attempt: int | None = None,
    ) -> None:
        """Write a group: its episodes, made durable, and then its line. From any thread, of any process.

        Args:
            result: The group.
            episodes: Its members; those of other environments cannot be kept.
            task: What they worked on, kept beside them.
            attempt: The group's number in the run.

        Raises:
            GagarError: If an episode is not of the group, or its id is that of another group's; if the disk is full.
            OSError: If it cannot be written. The group does not count then, and what was there before does.
        """
        self._check_members(result, episodes)
        with told(self.path):
            digest = "" if task is None else self._tasks.add(task)
            (self.path / "episodes").mkdir(exist_ok=True)
            for episode in episodes:
                write_whole(self._episode_path(episode.id), to_atif(episode))
            if episodes:
                make_durable(self.path / "episodes")
            number = None if attempt is None else operator.index(attempt)
            append_line(self.path / "groups.jsonl", group_line(result, number, digest))

    def _check_members(self, result: GroupResult, episodes: Sequence[Episode]) -> None:
        """Nothing is overwritten but what a group that is run again left behind."""
        for episode in episodes:
            if episode.id not in result.episode_ids:
                raise GagarError(f"{self.path}: episode {episode.id!r} is none of group {result.group_id!r}")
            if not self.has_episode(episode.id):
                continue
            try:
                other = self.episode(episode.id).group_id
            except (OSError, GagarError):  # torn: it is written again
                continue
            if other != result.group_id:
                raise GagarError(
                    f"{self.path}: episode {episode.id!r} is there already, of group {other!r}: "
                    "give the episodes of a run ids of their own"
                )

    def groups(self) -> Iterator[GroupResult]:
        """Every group that was written whole, in the order of writing; a torn line is left out with a warning."""
        return (record.result for record in self.records())

    def records(self) -> Iterator[GroupRecord]:
        """As `groups`, with number and time of each.

        Raises:
            GagarError: At a group that a newer version of this package wrote.
        """
        path = self.path / "groups.jsonl"
        for number, line in read_lines(path):
            record = read_group(line, f"{path}: line {number}")
            if record is None:
                warn_of_line(path, number, "no group")
            else:
                yield record

    def episode(self, episode_id: str) -> Episode:
        """One episode.

        Raises:
            OSError: If it is not there.
            GagarError: If its file is damaged, or a newer version of this package wrote it.
        """
        path = self._episode_path(episode_id)
        return from_atif(path.read_bytes(), str(path))

    def has_episode(self, episode_id: str) -> bool:
        """Whether there is a file for it."""
        return self._episode_path(episode_id).exists()

    def task(self, task_id: str, digest: str = "") -> Task | None:
        """The task of that id, as it was when it was last worked on; None if it was not kept.

        With a `digest` (`GroupRecord.task_digest`) it is the version that a group was run with, where that was kept.
        A file of tasks that is damaged, or that a newer version wrote, is left out with a warning.
        """
        return self._tasks.get(task_id, digest)

    def add_failure(self, failure: FailureRecord) -> None:
        """Write down that a group could not be run.

        Raises:
            GagarError: If the disk is full.
        """
        with told(self.path):
            append_line(self.path / "failures.jsonl", failure_line(failure))

    def failures(self) -> Iterator[FailureRecord]:
        """Every group that could not be run."""
        path = self.path / "failures.jsonl"
        for number, line in read_lines(path):
            failure = read_failure(line)
            if failure is None:
                warn_of_line(path, number, "no failure")
            else:
                yield failure

    def add_metrics(self, step: int, numbers: Mapping[str, float]) -> None:
        """Write the numbers of one step.

        Args:
            step: Its number.
            numbers: By name; "step" and "time" are taken.

        Raises:
            GagarError: If the disk is full.
        """
        shown = {name: _shown(value) for name, value in numbers.items()}
        line = {**shown, "step": operator.index(step), "time": time.time()}
        with told(self.path):
            append_line(self.path / "metrics.jsonl", json.dumps(line, allow_nan=False).encode())

    def metrics(self) -> list[dict[str, Any]]:
        """Every line of numbers, with `step` and `time` (seconds since 1970); infinite ones and NaN are floats."""
        lines = (line for _, line in read_lines(self.path / "metrics.jsonl"))
        return [{name: _NAMES.get(v, v) if isinstance(v, str) else v for name, v in line.items()} for line in lines]

    def _episode_path(self, episode_id: str) -> Path:
        return self.path / "episodes" / f"{file_name(episode_id)}.json"


def _shown(value: float) -> float | str:
    """A number as strict JSON has it, those that it does not have by name."""
    number = value if isinstance(value, int) else float(value)
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"


def find_runs(root: Path) -> Iterator[RunFolder]:
    """The runs below a folder, itself included, in the order of their names; links are not followed.

    One that cannot be read is left out with a warning.
    """
    for where, folders, files in os.walk(root):
        folders.sort()
        if "run.json" in files or ("groups.jsonl" in files and "episodes" in folders):
            folders.clear()
            try:
                yield RunFolder.open(Path(where))
            except (GagarError, OSError) as error:
                logger.warning("%s", error)
