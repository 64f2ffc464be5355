"""Writing tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plainrows.dialect import DEFAULT, Dialect
from plainrows.table import Table, Value


def dumps(table: Table, dialect: Dialect = DEFAULT) -> str:
    """Write a table, header first, as a string."""
    return format_rows([table.columns, *table.rows], dialect)


def format_rows(rows: Iterable[Sequence[Value]], dialect: Dialect) -> str:
    """Write rows one after the other, each with its line end."""
    return "".join(format_row(row, dialect) + dialect.line_end for row in rows)


def format_row(row: Sequence[Value], dialect: Dialect) -> str:
    """Write the values of one row, without a line end."""
    return dialect.delimiter.join(format_value(value, dialect) for value in row)


def format_value(value: Value, dialect: Dialect) -> str:
    """Write a single value, with quotes if it needs them."""
    if value is None:
        return dialect.null
    if not _needs_quotes(value, dialect):
        return value
    quote = dialect.quote
    return quote + value.replace(quote, quote * 2) + quote


def _needs_quotes(value: str, dialect: Dialect) -> bool:
    special = (dialect.delimiter, dialect.quote, "\n")
    return any(character in value for character in special)
