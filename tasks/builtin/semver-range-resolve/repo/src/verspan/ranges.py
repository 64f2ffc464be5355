"""Ranges of versions."""

import re

from .comparator import Comparator
from .errors import InvalidRange
from .partial import Partial
from .version import Version

_OPERATOR = re.compile(r"(!=|>=|<=|=|>|<)?\s*([^\s=<>!]*)")
_LOWEST = (0,)


class Range:
    """A set of versions: any of several lists of comparators."""

    def __init__(self, alternatives, text=None):
        self.alternatives = tuple(tuple(each) for each in alternatives)
        self._text = text

    @classmethod
    def parse(cls, text):
        """Return the range written in `text`.

        Raises `InvalidRange` if the text is not a range.
        """
        return cls(map(_alternative, text.split("||")), text)

    def __contains__(self, version):
        return self.contains(version)

    def __str__(self):
        return " || ".join(
            " ".join(map(str, comparators)) or "*" for comparators in self.alternatives
        )

    def __repr__(self):
        return f"Range({self._text or str(self)!r})"

    def contains(self, version, prereleases=False):
        """Return whether `version` is in the range.

        Pre-releases count only where a comparator names one of the same
        release, unless `prereleases` is true.
        """
        return any(
            _holds(comparators, version, prereleases)
            for comparators in self.alternatives
        )


def _holds(comparators, version, prereleases):
    if not all(comparator.matches(version) for comparator in comparators):
        return False
    if prereleases or not version.prerelease:
        return True
    return any(comparator.admits_prerelease(version) for comparator in comparators)


def _alternative(text):
    """Return the comparators of one alternative."""
    comparators = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _OPERATOR.match(text, position)
        op, version = match.groups()
        if not version:
            raise InvalidRange(f"version expected at {text[position:]!r}")
        comparators += _expand(op or "=", Partial.parse(version))
        position = match.end()
        while position < len(text) and text[position].isspace():
            position += 1
    return comparators


def _expand(op, partial):
    """Return the plain comparators that `op` and `partial` stand for."""
    if partial.is_full:
        return [Comparator(op, partial.floor())]
    if not partial.parts:
        return _expand_any(op)
    at_least = Comparator(">=", partial.floor())
    following = partial.bump(len(partial.parts) - 1)
    if op == "=":
        return [at_least, _below(following)]
    if op == ">":
        return [Comparator(">=", following)]
    if op == ">=":
        return [at_least]
    if op == "<":
        return [_below(partial.floor())]
    if op == "<=":
        return [_below(following)]
    raise InvalidRange(f"{op} needs a full version")


def _expand_any(op):
    if op in ("=", ">=", "<="):
        return []
    raise InvalidRange(f"{op} needs a version")


def _below(version):
    """Return the upper bound that keeps out pre-releases of `version` too."""
    return Comparator("<", Version(*version.release, _LOWEST))
