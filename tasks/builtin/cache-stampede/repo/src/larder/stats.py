"""Counters of a cache."""

from dataclasses import dataclass


@dataclass
class Stats:
    """How often a cache was asked, and how often it had to load.

    ``hits`` and ``misses`` count lookups, ``loads`` counts calls of loaders,
    including those that raised.
    """

    hits: int = 0
    misses: int = 0
    loads: int = 0

    @property
    def hit_rate(self):
        """Share of the lookups that found a fresh value, 0.0 before the first."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else 0.0
