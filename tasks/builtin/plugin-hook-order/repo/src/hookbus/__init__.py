"""An in-process event bus with a thin plugin layer."""

from .bus import EventBus
from .errors import (
    DuplicatePluginError,
    HookbusError,
    InvalidHookError,
    UnknownPluginError,
)
from .event import Event
from .manager import PluginManager
from .plugin import Hook, Plugin
from .subscription import WILDCARD, Subscription

__all__ = [
    "DuplicatePluginError",
    "Event",
    "EventBus",
    "Hook",
    "HookbusError",
    "InvalidHookError",
    "Plugin",
    "PluginManager",
    "Subscription",
    "UnknownPluginError",
    "WILDCARD",
]
