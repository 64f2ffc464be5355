"""Semantic versions and their order."""

import re
from functools import total_ordering

from .errors import InvalidVersion

_NUMBER = r"0|[1-9]\d*"
_PATTERN = re.compile(
    rf"v?({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    r"(?:-([0-9A-Za-z.-]+))?"
    r"(?:\+[0-9A-Za-z.-]+)?"
)


@total_ordering
class Version:
    """An immutable semantic version. Build metadata is dropped."""

    __slots__ = ("release", "prerelease")

    def __init__(self, major, minor=0, patch=0, prerelease=()):
        self.release = (major, minor, patch)
        self.prerelease = tuple(prerelease)

    @classmethod
    def parse(cls, text):
        """Return the version written in `text`."""
        match = _PATTERN.fullmatch(text.strip())
        if match is None:
            raise InvalidVersion(f"invalid version {text!r}")
        *release, prerelease = match.groups()
        return cls(*map(int, release), _identifiers(prerelease, text))

    def __str__(self):
        text = ".".join(map(str, self.release))
        if self.prerelease:
            text += "-" + ".".join(map(str, self.prerelease))
        return text

    def __repr__(self):
        return f"Version({str(self)!r})"

    def __eq__(self, other):
        if not isinstance(other, Version):
            return NotImplemented
        return self._key() == other._key()

    def __lt__(self, other):
        if not isinstance(other, Version):
            return NotImplemented
        return self._key() < other._key()

    def __hash__(self):
        return hash((self.release, self.prerelease))

    def _key(self):
        # Numbers sort below words, and a release above its pre-releases.
        identifiers = tuple(
            (0, part, "") if isinstance(part, int) else (1, 0, part)
            for part in self.prerelease
        )
        return self.release, not self.prerelease, identifiers


def _identifiers(prerelease, text):
    if prerelease is None:
        return ()
    parts = prerelease.split(".")
    if not all(parts):
        raise InvalidVersion(f"empty pre-release identifier in {text!r}")
    return [int(part) if part.isdigit() else part for part in parts]
