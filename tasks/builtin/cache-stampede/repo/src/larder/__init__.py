"""A small in-process cache with expiry."""

from .cache import MISSING, TTLCache
from .clock import ManualClock
from .keys import call_key
from .memo import memoize
from .stats import Stats

__all__ = ["MISSING", "ManualClock", "Stats", "TTLCache", "call_key", "memoize"]
