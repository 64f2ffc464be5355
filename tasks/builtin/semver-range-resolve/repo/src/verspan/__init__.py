"""Semantic version ranges."""

from .comparator import Comparator
from .errors import InvalidRange, InvalidVersion, NoMatch, VerspanError
from .explain import explain
from .ranges import Range
from .resolve import best_match
from .version import Version

__all__ = [
    "Comparator",
    "InvalidRange",
    "InvalidVersion",
    "NoMatch",
    "Range",
    "Version",
    "VerspanError",
    "best_match",
    "explain",
]
