"""A row of a data set: its columns by lower-case name, read as text, lists or objects, whatever wrote them."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from gagar_env.errors import TaskError


class Row:
    """One row. Its faults are `TaskError`s that name the instance and the field.

    Attributes:
        raw: All columns under their own names, as JSON values.
        columns: The same, by lower-case name.
        instance: What messages call the row: its id, once a format has read it.
    """

    def __init__(self, row: Mapping[str, Any], where: str) -> None:
        try:
            self.raw: dict[str, Any] = {str(key): plain(value) for key, value in row.items()}
        except RecursionError:
            raise TaskError(f"{where}: is nested too deep") from None
        self.columns = {key.lower(): value for key, value in self.raw.items()}
        self.instance = where

    def fault(self, field: str, what: str) -> TaskError:
        """The error that `field` is wrong."""
        return TaskError(f"{self.instance}: {field}: {what}")

    def value(self, name: str) -> Any:
        """What a column holds; None where it is not there. Of two that differ in case alone, `name` as it is."""
        own = self.raw.get(name)
        return self.columns.get(name.lower()) if own is None else own

    def has(self, *names: str) -> bool:
        """Whether all of these columns hold something."""
        return all(self.value(name) is not None for name in names)

    def text(self, *names: str, default: str | None = None) -> str:
        """The first of these columns that is there."""
        for name in names:
            value = self.value(name)
            if isinstance(value, str) and (value or default is not None):
                return value
            if value is not None:
                raise self.fault(name, "is empty" if value == "" else f"is a {type(value).__name__}, not a string")
        if default is not None:
            return default
        raise self.fault(names[0], "column is missing")

    def optional(self, *names: str) -> str:
        """The first of these columns that holds text; empty if none does."""
        values = map(self.value, names)
        return next((value for value in values if isinstance(value, str) and value.strip()), "")

    def ids(self, *names: str, empty: bool = True) -> tuple[str, ...]:
        """A list of test ids, whatever wrote it: the first of these columns that holds something.

        No id is changed, and each is kept once.
        """
        there = [name for name in names if name.lower() in self.columns]
        if not there:
            raise self.fault(names[0], "column is missing")
        name = next((name for name in there if self.value(name) is not None), there[0])
        given = self.value(name)
        value = decoded(given)
        if not isinstance(value, list):
            raise self.fault(name, f"is no list of test ids: {short(given)}")
        for test in value:
            if not isinstance(test, str) or not test.strip():
                raise self.fault(name, f"holds {short(test)}, which is no test id")
        if not value and not empty:
            raise self.fault(name, "is empty, so that nothing would decide")
        return tuple(dict.fromkeys(value))

    def mapping(self, name: str) -> dict[str, Any]:
        """An object, or the JSON text of one; empty if the column is not there."""
        given = self.value(name)
        value = decoded(given)
        if given in (None, ""):
            return {}
        if not isinstance(value, dict):
            raise self.fault(name, f"is no object: {short(given)}")
        return value


def decoded(value: Any) -> Any:
    """What a text says as JSON or as a Python literal, once or twice over; other values as they are. Nothing is run."""
    for _ in range(2):
        if not isinstance(value, str):
            break
        value = _literal(value)
    return list(value) if isinstance(value, tuple) else value


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def plain(value: Any) -> Any:
    """A value as JSON has it: arrays as lists, dates as text, bytes as text or base64."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)


def short(value: object) -> str:
    """`repr`, cut to what fits into a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
