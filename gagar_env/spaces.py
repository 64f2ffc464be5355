"""`UnicodeText`: the space of what an agent reads and of what it writes.

`gymnasium.spaces.Text` checks every character against a set and holds neither newlines nor most of
Unicode. Here every string belongs, membership costs the same for a megabyte as for a word, and a
sample is short and harmless.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Space
from gymnasium.vector.utils import create_shared_memory

MAX_SAMPLE_CHARS = 64
# No ASCII letters and no punctuation: a shell that is given a sample finds no command and no
# operator in it.
SAMPLE_ALPHABET = "0123456789 àçéîñöüßæøłžαβγδλπωбгджяшאבגあいう中文字本한글😀🚀"


class UnicodeText(Space[str]):
    """Every string within two length bounds, whatever its characters.

    Args:
        max_length: Most characters, inclusive; None for no bound.
        min_length: Fewest characters, inclusive.
        seed: Seed of `sample`.

    Raises:
        ValueError: If the bounds are negative or the wrong way round.
    """

    def __init__(
        self,
        max_length: int | None = None,
        *,
        min_length: int = 0,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        if min_length < 0 or (max_length is not None and max_length < min_length):
            raise ValueError(f"text lengths must be 0 <= min <= max, got {min_length} and {max_length}")
        self.min_length = int(min_length)
        self.max_length = None if max_length is None else int(max_length)
        super().__init__(shape=None, dtype=str, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: text has no fixed size."""
        return False

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string of an allowed length. Does not look at the characters."""
        if not isinstance(x, str) or len(x) < self.min_length:
            return False
        return self.max_length is None or len(x) <= self.max_length

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        """A short printable string: at most 64 characters (or `min_length`), no lone surrogates.

        Raises:
            ValueError: If a mask or probabilities are given: there is no fixed set of characters to
                mask.
        """
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText has no character set: sample() takes no mask or probability")
        high = MAX_SAMPLE_CHARS if self.max_length is None else self.max_length
        high = max(self.min_length, min(MAX_SAMPLE_CHARS, high))
        size = int(self.np_random.integers(self.min_length, high + 1))
        picks = self.np_random.integers(len(SAMPLE_ALPHABET), size=size)
        return "".join(SAMPLE_ALPHABET[i] for i in picks)

    def to_jsonable(self, sample_n: Any) -> list[str]:
        """The strings themselves, as a list."""
        return [str(text) for text in sample_n]

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """The inverse of `to_jsonable`."""
        return [str(text) for text in sample_n]

    def __repr__(self) -> str:
        return f"UnicodeText(max_length={self.max_length}, min_length={self.min_length})"

    def __eq__(self, other: object, /) -> bool:
        return (
            isinstance(other, UnicodeText)
            and self.min_length == other.min_length
            and self.max_length == other.max_length
        )

    __hash__ = None  # type: ignore[assignment]  # equal by value and mutable, as in gymnasium


@create_shared_memory.register(UnicodeText)
def _no_shared_memory(space: UnicodeText, *_: Any, **__: Any) -> Any:
    raise CustomSpaceError(
        "text has no fixed size and cannot live in shared memory: "
        "pass vector_kwargs={'shared_memory': False} to make_vec, or shared_memory=False "
        "to AsyncVectorEnv"
    )
