"""How tables are written down."""

from __future__ import annotations

from dataclasses import dataclass

from plainrows.errors import DialectError

#: Everything that may end a record, longest first.
LINE_ENDS = ("\r\n", "\n", "\r")


@dataclass(frozen=True)
class Dialect:
    """The characters that give a text file the structure of a table."""

    delimiter: str = ","
    quote: str = '"'
    null: str = ""
    line_end: str = "\n"

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote"):
            if len(getattr(self, name)) != 1:
                raise DialectError(f"{name} must be one character")
        if self.line_end not in LINE_ENDS:
            raise DialectError(f"unknown line end {self.line_end!r}")
        special = {self.delimiter, self.quote, "\r", "\n"}
        if len(special) != 4:
            raise DialectError("delimiter, quote and line ends must differ")
        if special & set(self.null):
            raise DialectError("null must not contain special characters")


DEFAULT = Dialect()
EXCEL = Dialect(line_end="\r\n")
TSV = Dialect(delimiter="\t", null="\\N")
