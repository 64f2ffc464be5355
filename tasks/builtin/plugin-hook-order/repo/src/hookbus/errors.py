"""Exceptions raised by hookbus."""


class HookbusError(Exception):
    """Base class of all errors in this package."""


class DuplicatePluginError(HookbusError):
    """A plugin of the same name is registered already."""


class UnknownPluginError(HookbusError, KeyError):
    """No plugin of that name is registered."""


class InvalidHookError(HookbusError):
    """A hook names a method that its plugin does not have."""
