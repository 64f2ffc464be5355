"""What a kind of degradation is: from a scene to up to three candidates, each worse than the one before."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gagar_env.changes import Changes
from gagar_env.grader_eval.scene import Scene, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A candidate that is not the reference.

    Attributes:
        strength: How bad, 1 to 3; 0 for one that is as good.
        changes: The whole work, against the base tree.
        detours: Turns that led nowhere on the way.
    """

    strength: int
    changes: Changes
    detours: int = 0


Make = Callable[[Scene, random.Random], Sequence[Variant]]
"""Candidates by strength, best first; empty where a task has no place for them. Another state of the random numbers
gives another attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A way to be worse than the reference, or, in the family `equal`, a way to differ and be as good."""

    name: str
    make: Make
    what: str


def by_count(scene: Scene, sites: Sequence[Site], counts: Sequence[int]) -> list[Variant]:
    """Variants with ever more of the same: the first `counts[0]` places, the first `counts[1]`, and so on."""
    made: list[Variant] = []
    used = 0
    for strength, count in enumerate(counts, 1):
        if min(count, len(sites)) > used:
            used = min(count, len(sites))
            made.append(Variant(strength=strength, changes=scene.with_sites(sites[:used])))
    return made
