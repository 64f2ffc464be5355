"""Numbers for texts: what `DiscreteActionWrapper` shows of an episode."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_WORD = re.compile(r"[A-Za-z_]\w*|\d+|[^\w\s]")
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)\b")
_SUMMARY = re.compile(r"^.*\bin \d[\d.:]*s\b.*$", re.MULTILINE)
_MOST_CHARS = 20_000


def hashed_bag(text: str, size: int) -> NDArray[np.float32]:
    """Words and signs of a text, counted in `size` places by a hash that is the same in every process.

    Args:
        text: Its first 20 000 characters count.
        size: Places, 1 or more.

    Returns:
        Shape (size,), float32: `log(1 + count)`, scaled to length 1; zeros for an empty text.
    """
    bag = np.zeros(size, dtype=np.float32)
    for word, count in Counter(_WORD.findall(text[:_MOST_CHARS].lower())).items():
        bag[zlib.crc32(word.encode("utf-8", "surrogatepass")) % size] += count
    bag = np.log1p(bag)
    length = float(np.linalg.norm(bag))
    return bag / np.float32(length) if length else bag


class SeenTests(NamedTuple):
    """Counts of a run of pytest, as its last line says them."""

    passed: int = 0
    failed: int = 0

    @property
    def share(self) -> float:
        """Part of the tests that passed, 0 to 1; 0 where none ran."""
        ran = self.passed + self.failed
        return self.passed / ran if ran else 0.0


def read_tests(output: str) -> SeenTests | None:
    """What the summary line of pytest says; None where there is none.

    The agent's own code prints into the same output: the last such line counts, and nothing but the observation rests
    on it.
    """
    lines = _SUMMARY.findall(output)
    counts: Counter[str] = Counter()
    for number, what in _COUNTS.findall(lines[-1] if lines else ""):
        counts[what.rstrip("s") if what.startswith("error") else what] += min(int(number), 1_000_000)
    if not counts:
        return None
    return SeenTests(passed=counts["passed"] + counts["xfailed"], failed=counts["failed"] + counts["error"])


def scaled(count: int, unit: float) -> float:
    """A count as a number in [0, 1): `count / (count + unit)`."""
    return count / (count + unit)
