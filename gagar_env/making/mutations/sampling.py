"""Which sites to take, and in which order: spread over kinds, files and functions, the same for the same seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator

from gagar_env.making.mutations.kinds import KINDS
from gagar_env.making.mutations.source import Site


def sample(sites: Iterable[Site], *, seed: int = 0) -> Iterator[Site]:
    """All sites, each once, in an order that is drawn.

    The kinds take turns. Within a kind, functions that had fewer sites before come first, and files likewise.
    """
    draw = random.Random(f"sites {seed}")
    everything = list(sites)
    queues: dict[str, list[Site]] = {}
    for kind in KINDS:
        ours = [site for site in everything if site.kind == kind]
        draw.shuffle(ours)
        if ours:
            queues[kind] = ours
    functions: Counter[tuple[str, str]] = Counter()
    files: Counter[str] = Counter()
    while queues:
        for kind in list(queues):
            queue = queues[kind]
            best = min(
                range(len(queue)),
                key=lambda i: (functions[queue[i].path, queue[i].function], files[queue[i].path], i),
            )
            site = queue.pop(best)
            functions[site.path, site.function] += 1
            files[site.path] += 1
            yield site
            if not queue:
                del queues[kind]
