"""Versions with missing parts, as ranges use them."""

import re
from dataclasses import dataclass

from .errors import InvalidRange, InvalidVersion
from .version import Version

_WILDCARDS = ("", "x", "X", "*")


@dataclass(frozen=True)
class Partial:
    """The given leading parts of a version, and the pre-release of a full one."""

    parts: tuple
    prerelease: tuple = ()

    @classmethod
    def parse(cls, text):
        """Return the partial version written in `text`, such as `1.x`."""
        try:
            version = Version.parse(text)
        except InvalidVersion:
            return cls(_leading_parts(text))
        return cls(version.release, version.prerelease)

    @property
    def is_full(self):
        """Whether no part is missing."""
        return len(self.parts) == 3

    def floor(self):
        """Return the version with zeros for the missing parts."""
        return Version(*self.parts, *[0] * (3 - len(self.parts)), self.prerelease)

    def bump(self, index):
        """Return the release after all that share the parts up to `index`."""
        parts = list(self.floor().release[: index + 1])
        parts[index] += 1
        return Version(*parts)


def _leading_parts(text):
    if not re.fullmatch(r"v?[0-9xX*]*(\.[0-9xX*]+){0,2}", text):
        raise InvalidRange(f"invalid version {text!r} in a range")
    numbers = []
    fields = text.removeprefix("v").split(".")
    for position, field in enumerate(fields):
        if field in _WILDCARDS:
            if any(rest not in _WILDCARDS for rest in fields[position:]):
                raise InvalidRange(f"number after a wildcard in {text!r}")
            break
        if not field.isdigit():
            raise InvalidRange(f"invalid version {text!r} in a range")
        numbers.append(int(field))
    return tuple(numbers)
