"""Splits tasks into two sets so that nothing of one is in the other, tasks with near-equal statements included."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping

ALIKE = 0.5
"""From this share of common word triples on, two statements are alike (Jaccard)."""
_WORD = re.compile(r"\w+")


def clusters(statements: Mapping[str, str], *, alike: float = ALIKE) -> list[tuple[str, ...]]:
    """Tasks in clusters: those with statements that are alike, and those that are alike to these, are together.

    Args:
        statements: Task -> problem statement.
        alike: In (0, 1].
    """
    triples = {task: _triples(text) for task, text in statements.items()}
    head = {task: task for task in statements}

    def find(task: str) -> str:
        while head[task] != task:
            task = head[task]
        return task

    names = sorted(statements)
    for place, one in enumerate(names):
        for other in names[:place]:
            a, b = triples[one], triples[other]
            if a and b and len(a & b) >= alike * len(a | b):
                head[find(one)] = find(other)
    found: dict[str, list[str]] = {}
    for task in names:
        found.setdefault(find(task), []).append(task)
    return [tuple(tasks) for tasks in found.values()]


def held_out(groups: Iterable[tuple[str, ...]], sizes: Mapping[str, int], *, share: float, seed: int) -> frozenset[str]:
    """Tasks of the smaller set: whole clusters in random order, as long as it does not exceed its share.

    At least one cluster, if there are two and a share above 0; never all.

    Args:
        groups: Clusters of tasks.
        sizes: Task -> number of its examples.
        share: Of all examples, in [0, 1).
        seed: Of the order.
    """
    order = sorted(groups)
    random.Random(f"split {seed}").shuffle(order)
    room = share * sum(sizes.values())
    chosen: list[tuple[str, ...]] = []
    for group in order:
        size = sum(sizes[task] for task in group)
        if size <= room:
            chosen.append(group)
            room -= size
    if not chosen and share > 0 and len(order) > 1:
        chosen = [min(order, key=lambda group: sum(sizes[task] for task in group))]
    return frozenset(task for group in chosen for task in group)


def _triples(text: str) -> frozenset[tuple[str, ...]]:
    words = [word.casefold() for word in _WORD.findall(text)]
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset([tuple(words)])
