"""Exceptions raised by plainrows."""


class PlainrowsError(ValueError):
    """Base class of the errors in this package."""


class DialectError(PlainrowsError):
    """The options of a dialect contradict each other."""


class TableError(PlainrowsError):
    """A header or a row does not fit the table."""


class ParseError(PlainrowsError):
    """The text is not in the given dialect."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line
