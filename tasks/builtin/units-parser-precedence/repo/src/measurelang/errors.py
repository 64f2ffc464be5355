"""Exceptions raised by measurelang."""


class MeasureError(ValueError):
    """Base class of all errors in this package."""


class ParseError(MeasureError):
    """The text is not a valid expression."""

    def __init__(self, message, position):
        super().__init__(f"{message} at column {position + 1}")
        self.position = position


class UnknownUnitError(MeasureError):
    """The expression names a unit that is not defined."""


class DimensionError(MeasureError):
    """An operation mixes incompatible dimensions."""
