"""Work out what to build, and in which order."""

from .collect import unique
from .errors import BuildOrderError, CycleError, ManifestError, UnknownPackageError
from .manifest import ManifestIndex
from .names import canonical_name
from .package import Package
from .resolver import Resolver
from .stages import stages

__all__ = [
    "BuildOrderError",
    "CycleError",
    "ManifestError",
    "ManifestIndex",
    "Package",
    "Resolver",
    "UnknownPackageError",
    "canonical_name",
    "stages",
    "unique",
]
