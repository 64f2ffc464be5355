"""The lines of a run: of a group that was graded, and of one that could not be run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final

from pydantic import ValidationError

from gagar_env.group_result import SCHEMA_VERSION, GroupResult
from gagar_env.store.exact import clean, plain_json, read_exact
from gagar_env.store.files import check_schema

_OURS: Final = frozenset({"attempt", "ended_at", "task_digest", "exact"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """One group of a run.

    Attributes:
        result: The group.
        attempt: Its number in the run; None where it was not said.
        ended_at: When it was written, in UTC; None in runs of earlier versions.
        task_digest: Names what its task was then, see `gagar_env.tasks.digest.task_digest`; may be empty.
    """

    result: GroupResult
    attempt: int | None = None
    ended_at: datetime | None = None
    task_digest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecord:
    """A group that could not be run, because of its task.

    Attributes:
        attempt: Its number in the run.
        task_id: The task.
        error: Why, on one line.
    """

    attempt: int
    task_id: str
    error: str


def now() -> str:
    """The time in UTC, as it is written."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def group_line(result: GroupResult, attempt: int | None, task_digest: str) -> bytes:
    """The line of a group, without its end."""
    record, exact = plain_json(result)
    ours: dict[str, Any] = {"attempt": attempt, "ended_at": now(), "task_digest": task_digest}
    if exact:
        ours["exact"] = exact
    return record[:-1] + b"," + json.dumps(ours).encode()[1:]


def read_group(line: Mapping[str, Any], where: str) -> GroupRecord | None:
    """The group of a line; None if it is none.

    Raises:
        GagarError: If a newer version wrote it.
    """
    check_schema(where, line.get("schema_version"), SCHEMA_VERSION)
    try:
        exact = line.get("exact")
        fields = read_exact(exact) if exact else {key: line[key] for key in line if key not in _OURS}
        attempt, digest, ended = line.get("attempt"), line.get("task_digest"), line.get("ended_at")
        return GroupRecord(
            result=GroupResult.model_validate(fields),
            attempt=None if attempt is None else int(attempt),
            ended_at=None if ended is None else datetime.fromisoformat(ended),
            task_digest=str(digest or ""),
        )
    except (ValidationError, ValueError, TypeError, OverflowError):
        return None


def failure_line(failure: FailureRecord) -> bytes:
    """The line of a failure, without its end."""
    fields = {"attempt": failure.attempt, "task_id": failure.task_id, "error": failure.error, "ended_at": now()}
    return json.dumps(clean(fields)).encode()


def read_failure(line: Mapping[str, Any]) -> FailureRecord | None:
    """The failure of a line; None if it is none."""
    try:
        return FailureRecord(attempt=int(line["attempt"]), task_id=str(line["task_id"]), error=str(line["error"]))
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
