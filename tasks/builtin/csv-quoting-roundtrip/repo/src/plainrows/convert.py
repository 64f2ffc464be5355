"""Turning columns of text into other types."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from plainrows.errors import TableError
from plainrows.table import Table

T = TypeVar("T")


def convert_column(
    table: Table, column: str, function: Callable[[str], T]
) -> list[T | None]:
    """Apply ``function`` to each value of a column, keeping ``None`` as it is."""
    converted: list[T | None] = []
    for number, value in enumerate(table.column(column), start=1):
        try:
            converted.append(None if value is None else function(value))
        except ValueError as error:
            raise TableError(f"row {number}, column {column!r}: {error}") from error
    return converted
