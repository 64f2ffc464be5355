"""Tables in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike

from plainrows.dialect import DEFAULT, Dialect
from plainrows.reader import loads
from plainrows.table import Table, Value
from plainrows.writer import dumps, format_rows


def load(
    path: str | PathLike[str], dialect: Dialect = DEFAULT, encoding: str = "utf-8"
) -> Table:
    """Read a table from a file."""
    with open(path, encoding=encoding) as file:
        return loads(file.read(), dialect)


def save(
    table: Table,
    path: str | PathLike[str],
    dialect: Dialect = DEFAULT,
    encoding: str = "utf-8",
) -> None:
    """Write a table to a file, which is replaced if there is one already."""
    with open(path, "w", encoding=encoding, newline="") as file:
        file.write(dumps(table, dialect))


def append_rows(
    path: str | PathLike[str],
    rows: Iterable[Sequence[Value]],
    dialect: Dialect = DEFAULT,
    encoding: str = "utf-8",
) -> None:
    """Add rows at the end of a file that was written by :func:`save`."""
    with open(path, "a", encoding=encoding, newline="") as file:
        file.write(format_rows(rows, dialect))
