"""Splitting text into records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from plainrows.dialect import Dialect
from plainrows.errors import ParseError


class Record(NamedTuple):
    """One record and the number of the line that it starts on."""

    line: int
    values: list[str | None]


class Scanner:
    """Goes through a text once and gives its records."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._dialect = dialect
        self._position = 0
        self._line = 1

    def records(self) -> Iterator[Record]:
        """Yield the records in the text."""
        while not self._at_end():
            yield self._record()

    def _record(self) -> Record:
        line = self._line
        values = [self._value()]
        while self._accept(self._dialect.delimiter):
            values.append(self._value())
        self._end_record()
        return Record(line, values)

    def _end_record(self) -> None:
        if self._accept("\n"):
            self._line += 1
        elif not self._at_end():
            raise ParseError("text after a closing quote", self._line)

    def _value(self) -> str | None:
        if self._accept(self._dialect.quote):
            value = self._quoted()
        else:
            value = self._bare()
        return None if value == self._dialect.null else value

    def _bare(self) -> str:
        start = self._position
        stops = (self._dialect.delimiter, "\n")
        while not self._at_end() and self._text[self._position] not in stops:
            self._position += 1
        return self._text[start : self._position]

    def _quoted(self) -> str:
        quote = self._dialect.quote
        opened = self._line
        pieces = []
        while True:
            end = self._text.find(quote, self._position)
            if end < 0:
                raise ParseError("quoted value is not closed", opened)
            pieces.append(self._text[self._position : end])
            self._position = end + 1
            if not self._accept(quote):
                break
            pieces.append(quote)
        value = "".join(pieces)
        self._line += value.count("\n")
        return value

    def _accept(self, expected: str) -> bool:
        """Step over ``expected`` if it comes next, and tell whether it did."""
        found = self._text.startswith(expected, self._position)
        if found:
            self._position += len(expected)
        return found

    def _at_end(self) -> bool:
        return self._position >= len(self._text)
