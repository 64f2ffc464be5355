"""The cache itself."""

import threading

from .clock import monotonic
from .entries import Entries, Entry
from .stats import Stats

MISSING = object()


class TTLCache:
    """Values that are fresh for *ttl* seconds.

    All methods may be called from any thread.
    """

    def __init__(self, ttl, *, maxsize=None, clock=monotonic):
        if ttl <= 0:
            raise ValueError("ttl must be positive")
        self.ttl = ttl
        self.stats = Stats()
        self._clock = clock
        self._entries = Entries(maxsize)
        self._lock = threading.Lock()

    def get(self, key, default=None):
        """Return the fresh value of *key*, or *default*."""
        with self._lock:
            entry = self._entries.fresh(key, self._clock())
            if entry is None:
                self.stats.misses += 1
                return default
            self.stats.hits += 1
            return entry.value

    def put(self, key, value):
        """Store *value*, fresh from now on."""
        with self._lock:
            self._entries.store(key, Entry(value, self._clock() + self.ttl))

    def get_or_load(self, key, loader):
        """Return the fresh value of *key*, or else store what *loader* returns.

        *loader* is called without arguments. If it raises, the exception is
        passed on and nothing is stored.
        """
        value = self.get(key, MISSING)
        if value is MISSING:
            value = self._load(loader)
            self.put(key, value)
        return value

    def _load(self, loader):
        """Call *loader*, and count the call."""
        with self._lock:
            self.stats.loads += 1
        return loader()

    def invalidate(self, key):
        """Forget the value of *key*; return whether there was one."""
        with self._lock:
            return self._entries.drop(key)

    def clear(self):
        """Forget all values. The statistics stay."""
        with self._lock:
            self._entries.clear()

    def __len__(self):
        with self._lock:
            return len(self._entries)
