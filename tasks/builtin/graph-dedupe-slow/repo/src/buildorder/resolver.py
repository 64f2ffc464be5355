"""From a few roots to everything that has to be built."""

from .collect import unique
from .errors import CycleError, UnknownPackageError
from .names import canonical_name


class Resolver:
    """Follow requirements through *fetch*.

    *fetch* takes a name and returns a Package, or raises UnknownPackageError.
    It may answer an alias with a package of another name. *key* maps a name to
    a hashable value that is equal for all spellings of that name.
    """

    def __init__(self, fetch, key=canonical_name):
        self._fetch = fetch
        self._key = key

    def resolve(self, roots):
        """Return the packages that *roots* need, each once, requirements first.

        Roots and requirements are followed in the order in which they are
        given. Raises CycleError if packages require each other in a circle.
        """
        found = []
        for root in roots:
            self._walk(root, (), found)
        return unique(found, key=lambda package: self._key(package.name))

    def _walk(self, name, trail, found):
        """Append the package called *name* to *found*, after its requirements."""
        wanted = self._key(name)
        if any(self._key(earlier) == wanted for earlier in trail):
            raise CycleError([*trail, name])
        try:
            package = self._fetch(name)
        except UnknownPackageError as error:
            raise UnknownPackageError(name, trail) from error
        for requirement in package.requires:
            self._walk(requirement, (*trail, name), found)
        found.append(package)
