"""Tiers of scores."""

from __future__ import annotations

import math
from collections.abc import Mapping

_SAME = 1e-9


def tiers_of(scores: Mapping[str, float]) -> tuple[tuple[str, ...], ...]:
    """Tiers by score, the lowest is best; equal scores (up to rounding) are tied."""
    tiers: list[list[str]] = []
    last = -math.inf
    for label in sorted(scores, key=lambda name: (scores[name], name)):
        if scores[label] - last > _SAME:
            tiers.append([])
        last = scores[label]
        tiers[-1].append(label)
    return tuple(tuple(sorted(tier)) for tier in tiers)
