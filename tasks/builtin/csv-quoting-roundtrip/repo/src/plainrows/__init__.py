"""Small tables in delimited text files."""

from plainrows.convert import convert_column
from plainrows.dialect import DEFAULT, EXCEL, TSV, Dialect
from plainrows.errors import DialectError, ParseError, PlainrowsError, TableError
from plainrows.files import append_rows, load, save
from plainrows.reader import loads
from plainrows.table import Table
from plainrows.writer import dumps

__all__ = [
    "DEFAULT",
    "EXCEL",
    "TSV",
    "Dialect",
    "DialectError",
    "ParseError",
    "PlainrowsError",
    "Table",
    "TableError",
    "append_rows",
    "convert_column",
    "dumps",
    "load",
    "loads",
    "save",
]
