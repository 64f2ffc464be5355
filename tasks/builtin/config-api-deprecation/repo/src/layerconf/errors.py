"""Exceptions raised by this package."""


class ConfigError(Exception):
    """Base class of everything raised here on purpose."""


class MissingKeyError(ConfigError, KeyError):
    """No layer has the key."""

    def __init__(self, key):
        super().__init__(key)
        self.key = key

    def __str__(self):
        return f"missing setting {self.key!r}"


class ConversionError(ConfigError, ValueError):
    """A setting is there, but it is not of the type that was asked for."""

    def __init__(self, key, value, kind):
        super().__init__(f"setting {key!r} is not {kind}: {value!r}")
        self.key = key
