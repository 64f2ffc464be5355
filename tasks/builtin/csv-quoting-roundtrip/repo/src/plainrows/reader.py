"""Reading tables from text."""

from __future__ import annotations

from plainrows.dialect import DEFAULT, Dialect
from plainrows.errors import TableError
from plainrows.scanner import Scanner
from plainrows.table import Table


def loads(text: str, dialect: Dialect = DEFAULT) -> Table:
    """Read a table from a string. The first record is the header."""
    records = Scanner(text, dialect).records()
    header = next(records, None)
    if header is None:
        raise TableError("there is no header")
    table = Table([name or "" for name in header.values])
    for record in records:
        try:
            table.append(record.values)
        except TableError as error:
            raise TableError(f"line {record.line}: {error}") from None
    return table
