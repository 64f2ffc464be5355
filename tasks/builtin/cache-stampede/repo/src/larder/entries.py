"""Storage of cached values. Not safe for threads by itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A value and the time at which it stops to be fresh."""

    value: object
    expires_at: float


class Entries:
    """Entries by key, at most *maxsize* of them."""

    def __init__(self, maxsize=None):
        if maxsize is not None and maxsize < 1:
            raise ValueError("maxsize must be at least 1")
        self._maxsize = maxsize
        self._by_key = {}

    def fresh(self, key, now):
        """Return the entry of *key* or None; an expired entry is dropped."""
        entry = self._by_key.get(key)
        if entry is not None and entry.expires_at <= now:
            del self._by_key[key]
            return None
        return entry

    def store(self, key, entry):
        """Keep *entry* as the newest, and make room for it if necessary."""
        self._by_key.pop(key, None)
        if len(self._by_key) == self._maxsize:
            del self._by_key[next(iter(self._by_key))]
        self._by_key[key] = entry

    def drop(self, key):
        """Forget *key*; return whether it was there."""
        return self._by_key.pop(key, None) is not None

    def clear(self):
        """Forget everything."""
        self._by_key.clear()

    def __len__(self):
        return len(self._by_key)
