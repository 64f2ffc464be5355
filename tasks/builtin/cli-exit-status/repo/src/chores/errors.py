"""Exceptions raised by chores."""


class ChoresError(Exception):
    """Something that the user has to know about."""


class StoreError(ChoresError):
    """A file cannot be read or written."""
