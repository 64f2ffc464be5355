"""Sources of time."""

import time

monotonic = time.monotonic


class ManualClock:
    """A clock that stands still until it is told to advance."""

    def __init__(self, now=0.0):
        self._now = now

    def __call__(self):
        return self._now

    def advance(self, seconds):
        """Move the clock forward by *seconds*."""
        if seconds < 0:
            raise ValueError("a clock cannot go back")
        self._now += seconds
