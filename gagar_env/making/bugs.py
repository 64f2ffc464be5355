"""Bugs of a repository, one after the other: one broken place, or two that must both be mended."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gagar_env.making.mutations import PAIR, Site, mutate, sample

_PARTNERS = 40
"""Sites that are looked at to find the second half of a pair."""

TestsOf = Callable[[Site], tuple[str, ...]]
"""The test files that shall notice a bug at a site; none where no test would."""


@dataclass(frozen=True, slots=True)
class Bug:
    """A bug.

    Attributes:
        sites: One, or two in different functions.
        broken: The files with the bug, by path.
        tests: The test files that shall notice it.
    """

    sites: tuple[Site, ...]
    broken: Mapping[str, bytes]
    tests: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The kind of its site, or that of pairs."""
        return self.sites[0].kind if len(self.sites) == 1 else PAIR

    @property
    def content(self) -> str:
        """Names what it makes of the files."""
        return "".join(f"{p}\0{hashlib.sha256(data).hexdigest()}\0" for p, data in sorted(self.broken.items()))


def bugs(sites: Sequence[Site], kinds: Sequence[str], seed: int, tests_of: TestsOf) -> Iterator[Bug]:
    """All bugs of these kinds, each once, in an order that the seed draws: a pair after each turn of the other kinds.

    Args:
        sites: Where and how the code can be broken.
        kinds: The kinds that are wanted.
        seed: The same seed gives the same bugs in the same order.
        tests_of: Finds the test files of a site.
    """
    singles = _singles([site for site in sites if site.kind in kinds] if set(kinds) != {PAIR} else [], seed, tests_of)
    pairs = _pairs(sites, seed, tests_of) if PAIR in kinds else iter(())
    seen: set[str] = set()
    for bug in _turns(singles, pairs, len(kinds)):
        if bug.content not in seen:
            seen.add(bug.content)
            yield bug


def halves(bug: Bug) -> Iterator[tuple[str, str, bytes | None]]:
    """What mends only one site of a pair: which one, its file, and what is in that file then.

    None stands for the sound file. There is nothing for a single bug.
    """
    if len(bug.sites) != 2:
        return
    first, second = bug.sites
    for which, mended, left in (("first", first, second), ("second", second, first)):
        if mended.path != left.path:
            yield which, mended.path, None
        elif (text := mutate(left)) is not None:
            yield which, left.path, text


def _singles(sites: Sequence[Site], seed: int, tests_of: TestsOf) -> Iterator[Bug]:
    for site in sample(sites, seed=seed):
        text = mutate(site)
        if text is not None:
            yield Bug((site,), {site.path: text}, tests_of(site))


def _pairs(sites: Sequence[Site], seed: int, tests_of: TestsOf) -> Iterator[Bug]:
    """Two bugs that the same test files reach, where there are such, and of different kinds."""
    order = [site for site in sites if site.kind != "body"]
    random.Random(f"pairs {seed}").shuffle(order)
    while len(order) > 1:
        first = order.pop(0)
        tests = frozenset(tests_of(first))
        fit = list(itertools.islice((other for other in order if _apart(first, other)), _PARTNERS))
        if not fit:
            continue
        second = min(fit, key=lambda site: (tests.isdisjoint(tests_of(site)), site.kind == first.kind))
        order.remove(second)
        if broken := _together(first, second):
            yield Bug((first, second), broken, tuple(sorted({*tests, *tests_of(second)})))


def _turns(singles: Iterator[Bug], pairs: Iterator[Bug], kinds: int) -> Iterator[Bug]:
    while block := list(itertools.islice(singles, max(1, kinds - 1))):
        yield from block
        yield from itertools.islice(pairs, 1)
    yield from pairs


def _apart(first: Site, second: Site) -> bool:
    """Whether two sites are in different functions, none inside the other."""
    if first.path != second.path:
        return True
    one, two = f"{first.function}.", f"{second.function}."
    return not (one.startswith(two) or two.startswith(one))


def _together(first: Site, second: Site) -> dict[str, bytes]:
    """The broken files of two sites; empty where one of them breaks nothing."""
    alone = {site: mutate(site) for site in (first, second)}
    if any(text is None for text in alone.values()):
        return {}
    if first.path != second.path:
        return {site.path: text for site, text in alone.items() if text is not None}
    both = mutate(first, second)
    return {} if both is None else {first.path: both}
