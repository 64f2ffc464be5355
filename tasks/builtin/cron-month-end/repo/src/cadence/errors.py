"""Exceptions raised by cadence."""


class CadenceError(ValueError):
    """Base class of all errors raised on purpose by this package."""


class CronError(CadenceError):
    """A cron expression is malformed or can never match."""


class RuleError(CadenceError):
    """A recurrence rule has impossible settings."""
