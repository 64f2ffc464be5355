"""Weighted sampling without replacement, epoch after epoch: `Strata`."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Strata:
    """Draws names in proportion to their weights, in random order, none too early and none too late.

    A stratified sample in time: the k-th draw of a name falls at a random point of the k-th stretch of length
    1 / weight. With equal weights each run of n draws over n names is a permutation: an epoch, each in another order.
    With any weights the draws of one of n >= 2 names differ from its share by at most `1 + share * (n - 2)`, at any
    time; independent draws would drift apart with the square root of their number. Weights may change from draw to
    draw: what a name has waited for is kept. The order of the names plays no role.

    Args:
        names: Distinct.
        salt: The random points are a function of this, the name and the number of its draws.
    """

    def __init__(self, names: Sequence[str], *, salt: str) -> None:
        self.names = tuple(names)
        self._salt = salt
        self._drawn = np.zeros(len(self.names), dtype=np.int64)
        self._left = np.array([self._point(name, 0) for name in self.names], dtype=np.float64)

    def draw(self, weights: Floats) -> int:
        """Place of the next name.

        Args:
            weights: Of each name, >= 0, not all 0, `(n,)`; only their proportions count. Weight 0 is never drawn.
        """
        weights = weights / weights.max()  # the greatest wait stays finite, however small all weights are
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            wait = np.where(weights > 0, self._left / weights, np.inf)
        place = int(np.argmin(wait))
        self._left = np.maximum(self._left - weights * wait[place], 0.0)
        drawn, name = int(self._drawn[place]), self.names[place]
        self._left[place] = 1.0 - self._point(name, drawn) + self._point(name, drawn + 1)
        self._drawn[place] = drawn + 1
        return place

    def state_dict(self) -> dict[str, list[float]]:
        """Name -> number of its draws, and the weight it still waits for."""
        rows = zip(self.names, self._drawn.tolist(), self._left.tolist(), strict=True)
        return {name: [drawn, left] for name, drawn, left in rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there; names that it does not hold start as new ones."""
        for place, name in enumerate(self.names):
            if name in state:
                self._drawn[place], self._left[place] = state[name]
            else:
                self._drawn[place], self._left[place] = 0, self._point(name, 0)

    def _point(self, name: str, number: int) -> float:
        return uniform(self._salt, name, str(number))


def check_strata_state(state: Any, where: str) -> None:
    """Refuse what `Strata.state_dict` cannot have made.

    Raises:
        ValueError: Naming the place.
    """
    if not isinstance(state, Mapping):
        raise ValueError(f"{where}: must be an object of name -> [draws, rest], got {type(state).__name__}")
    for name, row in state.items():
        numbers = isinstance(row, list | tuple) and len(row) == 2 and all(type(n) in (int, float) for n in row)
        if not numbers or not all(0 <= n < math.inf for n in row) or row[0] != int(row[0]):
            raise ValueError(f"{where}: {name}: must be [draws, rest], two numbers of 0 or more, got {row!r}")


def uniform(*parts: str) -> float:
    """A number in [0, 1) that is a function of these texts alone, on every machine."""
    data = b"".join(len(raw).to_bytes(8, "big") + raw for raw in (p.encode("utf-8", "surrogatepass") for p in parts))
    return (int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") >> 11) * 2.0**-53
