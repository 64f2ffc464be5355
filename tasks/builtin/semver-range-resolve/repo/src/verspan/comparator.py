"""A single comparison with a version."""

import operator
from dataclasses import dataclass

from .version import Version

_TESTS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Comparator:
    """An operator and the version that it compares with."""

    op: str
    version: Version

    def __str__(self):
        return f"{self.op}{self.version}"

    def matches(self, version):
        """Return whether `version` passes the comparison."""
        return _TESTS[self.op](version, self.version)

    def admits_prerelease(self, version):
        """Return whether this comparator names a pre-release of `version`."""
        return bool(self.version.prerelease) and self.version.release == version.release
