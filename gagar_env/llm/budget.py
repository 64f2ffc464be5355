"""Limits on what a model may cost, and meters that count against them.

Meters form a chain: what is spent by one is spent by all above it, so that a vote, its group and the whole run each
keep to their own limit. Safe in threads.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from gagar_env.errors import ModelError
from gagar_env.grading import Usage


class OverBudgetError(ModelError):
    """A limit of requests, tokens or money was reached; says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits. None is no limit.

    Attributes:
        turns: Requests to the model, those that fail included.
        tokens: Of prompts and replies together.
        seconds: Wall clock, from when the meter is made.
        usd: Money, as far as prices are known.

    Raises:
        ValueError: If a limit is not above 0.
    """

    turns: int | None = None
    tokens: int | None = None
    seconds: float | None = None
    usd: float | None = None

    def __post_init__(self) -> None:
        for name in ("turns", "tokens", "seconds", "usd"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"budget: {name} must be above 0, or None for no limit, got {value}")

    def share(self, parts: int) -> Budget:
        """One of `parts` equal shares; time is not shared out."""
        return Budget(
            turns=None if self.turns is None else max(1, self.turns // parts),
            tokens=None if self.tokens is None else max(1, self.tokens // parts),
            usd=None if self.usd is None else self.usd / parts,
        )


class Meter:
    """Counts what is spent against a budget, and against that of the meter above.

    Args:
        budget: The limits.
        above: A meter that this one is part of.
        name: What it is the budget of, for messages.
    """

    def __init__(self, budget: Budget | None = None, *, above: Meter | None = None, name: str = "this group") -> None:
        self.budget = budget or Budget()
        self._above = above
        self._name = name
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._usage = Usage()

    @property
    def usage(self) -> Usage:
        """What was spent so far, with the seconds since the start."""
        with self._lock:
            return self._usage.model_copy(update={"seconds": time.monotonic() - self._started})

    def left_s(self) -> float | None:
        """Seconds to the nearest deadline of the chain, never below 0; None without one."""
        ends = [] if self._above is None else [self._above.left_s()]
        if self.budget.seconds is not None:
            ends.append(max(0.0, self._started + self.budget.seconds - time.monotonic()))
        return min((end for end in ends if end is not None), default=None)

    def left_turns(self) -> int | None:
        """Requests that are left in the chain; None without a limit."""
        left = [] if self._above is None else [self._above.left_turns()]
        if self.budget.turns is not None:
            left.append(max(0, self.budget.turns - self.usage.calls))
        return min((turns for turns in left if turns is not None), default=None)

    def take(self, prompt_tokens: int = 0) -> None:
        """Called before a request: allows and counts it in one step, so that those side by side keep to the limit.

        What it used is added when it ended, without the request itself.

        Args:
            prompt_tokens: Estimated length of its prompt.

        Raises:
            OverBudgetError: If a limit of the chain would be passed; nothing is counted then.
            TimeoutError: If a deadline of the chain is over; nothing is counted then.
        """
        with self._lock:
            self._refuse(prompt_tokens)
            if self._above is not None:
                self._above.take(prompt_tokens)
            self._usage = self._usage + Usage(calls=1)

    def _refuse(self, prompt_tokens: int) -> None:
        used, limit = self._usage, self.budget
        if limit.seconds is not None and time.monotonic() - self._started >= limit.seconds:
            raise TimeoutError(f"the {limit.seconds:g} seconds of {self._name} are over")
        tokens = used.prompt_tokens + used.completion_tokens
        for what, spent, most in (
            ("requests", used.calls + 1, limit.turns),
            ("tokens", tokens + prompt_tokens, limit.tokens),
        ):
            if most is not None and spent > most:
                raise OverBudgetError(f"the next request would be over the {most} {what} of {self._name}")
        if limit.usd is not None and used.cost_usd >= limit.usd:
            raise OverBudgetError(f"the {limit.usd:g} USD of {self._name} are spent")

    def add(self, usage: Usage) -> None:
        """Count what a request used."""
        with self._lock:
            self._usage = self._usage + usage
        if self._above is not None:
            self._above.add(usage)
