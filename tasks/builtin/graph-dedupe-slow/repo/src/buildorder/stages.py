"""Grouping of a build order into steps that can run in parallel."""

from .errors import UnknownPackageError
from .names import canonical_name


def stages(packages, key=canonical_name):
    """Group *packages*, requirements first, into lists.

    A package lands in the first list in which everything that it requires
    has been built by the lists before. Order within a list is kept.
    """
    level_of = {}
    result = []
    for package in packages:
        level = 0
        for requirement in package.requires:
            try:
                level = max(level, level_of[key(requirement)] + 1)
            except KeyError:
                raise UnknownPackageError(requirement, (package.name,)) from None
        level_of[key(package.name)] = level
        if level == len(result):
            result.append([])
        result[level].append(package)
    return result
