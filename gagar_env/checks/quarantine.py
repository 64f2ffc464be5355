"""The quarantine file: tasks that checks found bad, with the reasons; what a run is told to leave out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gagar_env.check_result import TaskCheck
from gagar_env.errors import GagarError


def update_quarantine(path: Path | str, results: Iterable[TaskCheck]) -> dict[str, dict[str, Any]]:
    """Bring the file up to date with `results`, in one step: readers see the old file or the new one.

    Bad tasks come in, tasks that were found good go out; all others, and those that could not be checked, stay as they
    are.

    Args:
        path: `.jsonl` (one object a line), or anything else for one JSON list. Made if it is not there.
        results: Of a check.

    Returns:
        Its entries by task id: `id`, `reasons`, `problems`, `flaky` (ids of unstable tests), `digest`.

    Raises:
        GagarError: If it holds something else or cannot be written.
    """
    target = Path(path)
    entries = _entries(target) if target.exists() else {}
    for result in results:
        if result.verdict == "bad":
            entries[result.task_id] = {
                "id": result.task_id,
                "reasons": list(dict.fromkeys(result.reasons)),
                "problems": list(result.problems),
                "flaky": list(result.flaky),
                "digest": result.digest,
            }
        elif result.verdict == "ok":
            entries.pop(result.task_id, None)
    rows = [entries[task_id] for task_id in sorted(entries)]
    if target.suffix == ".jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        text = json.dumps(rows, indent=1) + "\n"
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise GagarError(f"quarantine file {path}: cannot be written: {error.strerror}") from None
    return entries


def read_quarantine(path: Path | str) -> frozenset[str]:
    """Ids of the tasks in a quarantine file, or in a list of your own: JSON, JSONL, or an id a line.

    Raises:
        GagarError: If it cannot be read or understood.
    """
    return frozenset(_entries(Path(path)))


def _entries(path: Path) -> dict[str, dict[str, Any]]:
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise GagarError(f"quarantine file {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise GagarError(f"quarantine file {path}: not valid UTF-8") from None
    entries = {}
    for number, row in enumerate(_rows(text, path), 1):
        row = {"id": row} if isinstance(row, str) else row
        if not isinstance(row, dict) or not isinstance(row.get("id"), str):
            raise GagarError(f"quarantine file {path}: entry {number} is neither an id nor an object with an `id`")
        entries[row["id"]] = row
    return entries


def _rows(text: str, path: Path) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            return list(json.loads(text))
        except ValueError as error:
            raise GagarError(f"quarantine file {path}: not valid JSON: {error}") from None
    rows: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            rows.append(json.loads(line) if line[0] in '{"' else line)
        except ValueError as error:
            raise GagarError(f"quarantine file {path}: line {number}: not valid JSON: {error}") from None
    return rows
