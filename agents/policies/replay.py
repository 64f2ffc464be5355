"""`ReplayPolicy`: does again what was recorded, from a file or from memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gagar_env.actions import ActionFormat
from gagar_env.agents.policies.script import ScriptActor, apply_command
from gagar_env.errors import TaskError
from gagar_env.tasks.faults import did_you_mean
from gagar_env.tasks.fields import Blob
from gagar_env.tasks.task import Task

_BLOB: TypeAdapter[bytes] = TypeAdapter(Blob)

Recording = Sequence[str] | bytes
"""Texts of actions, in the action format that they will be played in; or a patch, which fits any."""


class ReplayPolicy:
    """Plays recordings and submits.

    With several recordings of one task, an episode plays the one at its seed modulo their number: the
    members of a group play them in turn.

    Args:
        actions: One recording for every task, or task id -> its recordings.
    """

    name = "replay"

    def __init__(self, actions: Sequence[str] | Mapping[str, Sequence[Recording]]) -> None:
        self._any: Sequence[str] | None = None if isinstance(actions, Mapping) else tuple(actions)
        self._by_task = dict(actions) if isinstance(actions, Mapping) else {}

    @classmethod
    def from_file(cls, path: Path | str) -> ReplayPolicy:
        """Read recordings: JSON Lines, or one JSON list, or one JSON object of rows by task.

        A row is `{"task": id, "actions": [...]}`, `{"task": id, "patch": "..."}`, or a prediction for
        SWE-bench, `{"instance_id": id, "model_patch": "..."}`.

        Raises:
            TaskError: One line that names the file and the row, if it cannot be read.
        """
        found: dict[str, list[Recording]] = {}
        for where, row in _rows(Path(path)):
            task_id, recording = _recording(row, where)
            found.setdefault(task_id, []).append(recording)
        if not found:
            raise TaskError(f"replay file {path}: there is no row in it")
        return cls(found)

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> ScriptActor:
        """See `gagar_env.rollout.Policy`.

        Raises:
            TaskError: If there is no recording for the task.
        """
        if self._any is not None:
            return ScriptActor(self._any, actions)
        recordings = self._by_task.get(task.id)
        if not recordings:
            hint = did_you_mean(task.id, sorted(self._by_task))
            raise TaskError(f"nothing is recorded for task {task.id!r}{hint}")
        chosen = recordings[seed % len(recordings)]
        if isinstance(chosen, bytes):
            command = apply_command(chosen)
            return ScriptActor((actions.bash(command),) if command else (), actions)
        return ScriptActor(chosen, actions)


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise TaskError(f"replay file {path}: not valid UTF-8") from None
    except OSError as error:
        raise TaskError(f"replay file {path}: cannot be read: {error.strerror}") from None
    if path.suffix == ".json":
        whole = _parse(text, f"replay file {path}")
        if isinstance(whole, Mapping):
            whole = [{"task": key, **row} if isinstance(row, Mapping) else row for key, row in whole.items()]
        for number, row in enumerate(whole if isinstance(whole, list) else [whole], 1):
            yield f"replay file {path}, row {number}", row
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield (where := f"replay file {path}, line {number}"), _parse(line, where)


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{where}: not valid JSON: {error}") from None


def _recording(row: Any, where: str) -> tuple[str, Recording]:
    if not isinstance(row, Mapping):
        raise TaskError(f"{where}: must be a JSON object, got {type(row).__name__}")
    task_id = row.get("instance_id", row.get("task"))
    if not isinstance(task_id, str) or not task_id:
        raise TaskError(f"{where}: needs the task's id under 'task' or 'instance_id'")
    if isinstance(script := row.get("actions"), list) and all(isinstance(a, str) for a in script):
        return task_id, tuple(script)
    for key in ("patch", "model_patch"):
        if key in row:
            try:
                return task_id, _BLOB.validate_python(row[key] or b"")
            except (ValidationError, ValueError):
                raise TaskError(f"{where}: {key}: must be a text") from None
    raise TaskError(f"{where}: needs 'actions' (a list of texts), 'patch' or 'model_patch'")
