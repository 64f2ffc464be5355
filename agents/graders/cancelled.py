"""Which workspaces nobody waits for any more."""

from __future__ import annotations

import threading
import weakref

WHY = "cancelled: nobody waits for this verdict any more"


class Cancelled:
    """A set of objects that are told apart by identity and not kept alive. Safe in threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._marked: weakref.WeakValueDictionary[int, object] = weakref.WeakValueDictionary()

    def mark(self, thing: object) -> None:
        """From now on, for ever: a verdict that nobody waits for is not asked for a second time."""
        with self._lock:
            self._marked[id(thing)] = thing

    def __contains__(self, thing: object) -> bool:
        with self._lock:
            return self._marked.get(id(thing)) is thing
