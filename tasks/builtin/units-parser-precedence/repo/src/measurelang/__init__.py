"""An expression language for physical quantities."""

from .errors import DimensionError, MeasureError, ParseError, UnknownUnitError
from .evaluate import convert, evaluate
from .formatting import to_text
from .nodes import Binary, Neg, Number, Unit
from .parser import parse
from .quantity import Quantity

__all__ = [
    "Binary",
    "DimensionError",
    "MeasureError",
    "Neg",
    "Number",
    "ParseError",
    "Quantity",
    "Unit",
    "UnknownUnitError",
    "convert",
    "evaluate",
    "parse",
    "to_text",
]
