"""Exceptions raised by verspan."""


class VerspanError(ValueError):
    """Base class of all errors in this package."""


class InvalidVersion(VerspanError):
    """The text is not a semantic version."""


class InvalidRange(VerspanError):
    """The text is not a version range."""


class NoMatch(VerspanError):
    """No candidate satisfies all ranges."""
