"""Results that somebody else's evaluation gave, for those who trust them and do not want the tests to run again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gagar_env.errors import GagarError
from gagar_env.foreign.trajectory import items, mapping

_KEYS = ("trajectory", "path", "instance_id", "task_id", "id")
_WON = ("passed", "resolved")


class TrustedResults:
    """Whether an attempt passed, by the file of its trajectory or by the id of its task.

    Args:
        results: Path (as given, or any end of it) or id -> whether it passed.
        source: Where they are from, for the record.
    """

    def __init__(self, results: Mapping[str, bool], source: str = "results that were handed in") -> None:
        self.source = source
        self._results = dict(results)

    @classmethod
    def read(cls, path: Path) -> TrustedResults:
        """Results out of a file.

        Three forms: a report of SWE-bench (`resolved_ids`, `unresolved_ids`), an object `{"ID or path": true}`, or rows
        (a JSON list or JSONL) of `{"instance_id" or "trajectory": ..., "passed" or "resolved": true}`.

        Raises:
            GagarError: If it is none of them.
        """
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise GagarError(f"{path}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise GagarError(f"{path}: is not valid UTF-8") from None
        found = _of(_parsed(text))
        if not found:
            raise GagarError(
                f'{path}: holds no results: give a report of SWE-bench, {{"ID": true}}, or rows of '
                '{"instance_id": ID, "passed": true}'
            )
        return cls(found, str(path))

    def passed(self, path: Path, task_ids: Iterable[str], *, alone: bool) -> bool | None:
        """Whether an attempt passed; None where it is not said.

        Args:
            path: Its file.
            task_ids: What its task is called.
            alone: Whether it is the only attempt at that task: a result by the task's id tells of one attempt only.
        """
        parts = path.parts
        ends = (Path(*parts[number:]).as_posix() for number in range(len(parts)))
        keys = [*ends, *(task_ids if alone else ())]
        return next((self._results[key] for key in keys if key in self._results), None)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    rows = []
    for line in text.splitlines():
        if line.strip():
            try:
                rows.append(json.loads(line))
            except (ValueError, RecursionError):
                return None
    return rows


def _of(data: object) -> dict[str, bool]:
    report = mapping(data)
    if isinstance(report.get("resolved_ids"), list):
        lost = [*_names(report.get("unresolved_ids")), *_names(report.get("empty_patch_ids"))]
        return {**dict.fromkeys(lost, False), **dict.fromkeys(_names(report["resolved_ids"]), True)}
    if report and not any(key in report for key in _KEYS):
        return {key: won for key, value in report.items() if (won := _won(value)) is not None}
    found = {}
    for row in items(data) or ([report] if report else []):
        name = next((row[key] for key in _KEYS if isinstance(row.get(key), str)), None)
        won = _won(row)
        if name is not None and won is not None:
            found[name] = won
    return found


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list) else []


def _won(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    row = mapping(value)
    return next((row[key] for key in _WON if isinstance(row.get(key), bool)), None)
