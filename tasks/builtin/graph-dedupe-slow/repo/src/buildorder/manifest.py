"""Plain text manifests.

One package a line, as ``name version: requirement, requirement``. The version
and the requirements may be left out; ``#`` starts a comment.
"""

from .collect import unique
from .errors import ManifestError, UnknownPackageError
from .names import canonical_name
from .package import Package


def _parse_line(number, line):
    head, _, tail = line.partition(":")
    words = head.split()
    if not 1 <= len(words) <= 2:
        raise ManifestError(number, f"expected 'name version', found {head.strip()!r}")
    requires = tuple(part.strip() for part in tail.split(",") if part.strip())
    return Package(*words, requires=requires)


class ManifestIndex:
    """Packages that can be looked up in any spelling of their names."""

    def __init__(self, packages=()):
        self._packages = {}
        for package in packages:
            self._packages[canonical_name(package.name)] = package

    @classmethod
    def parse(cls, text):
        """Read an index from the text of a manifest."""
        packages = []
        for number, line in enumerate(text.splitlines(), start=1):
            line = line.partition("#")[0].strip()
            if line:
                packages.append(_parse_line(number, line))
        return cls(packages)

    def merge(self, *others):
        """Return a new index; where names clash, the earlier index wins."""
        packages = [package for index in (self, *others) for package in index]
        return ManifestIndex(unique(packages, key=lambda package: canonical_name(package.name)))

    def fetch(self, name):
        """Return the package called *name*, or raise UnknownPackageError."""
        try:
            return self._packages[canonical_name(name)]
        except KeyError:
            raise UnknownPackageError(name) from None

    def __iter__(self):
        return iter(self._packages.values())

    def __len__(self):
        return len(self._packages)
