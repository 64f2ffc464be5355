"""Exceptions raised by this package."""


class BuildOrderError(Exception):
    """Base class of everything raised here on purpose."""


class ManifestError(BuildOrderError):
    """A manifest line could not be read."""

    def __init__(self, line_number, reason):
        super().__init__(f"line {line_number}: {reason}")
        self.line_number = line_number


class UnknownPackageError(BuildOrderError):
    """No package of that name exists.

    ``required_by`` holds the names that led there, starting with a root.
    """

    def __init__(self, name, required_by=()):
        message = f"unknown package {name!r}"
        if required_by:
            message += f" (required by {' -> '.join(required_by)})"
        super().__init__(message)
        self.name = name
        self.required_by = tuple(required_by)


class CycleError(BuildOrderError):
    """Packages require each other in a circle.

    ``path`` starts with a root and ends with the name that closed the circle.
    """

    def __init__(self, path):
        super().__init__(f"dependency cycle: {' -> '.join(path)}")
        self.path = tuple(path)
