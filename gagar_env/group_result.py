"""The record of one graded group."""

from __future__ import annotations

import math
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from gagar_env.advantages import KeepReason
from gagar_env.grading import Verdict

SCHEMA_VERSION: Final = 1

BaseName = Literal["grpo", "dr_grpo", "rloo"]
SchemeName = Literal["linear", "geometric", "tiers"]
PreserveName = Literal["episode", "token"]


class GroupResult(BaseModel):
    """What became of one group. Tuples have one entry per episode, in the order given.

    Attributes:
        kept: Whether the group has a learning signal. One that has none leaves the batch whole:
            `mask` is false throughout.
        reason: `kept`, `all_passed`, `all_failed`, `too_few_valid`, or `equal_returns` (of another environment).
        labels: Label in the workspace; None where there was none. Equal passing patches share one.
        passed: By the tests; false for invalid episodes.
        valid: Whether there is a test result. Invalid episodes enter no statistic and have advantage 0.
        ranks: Tier, 0 = best; None for what is not ranked. That is not a 0.
        weights: Of the redistribution, in (0, 1]; 1 for what is not ranked.
        advantages_before: Plain group advantages.
        advantages: Final ones; equal to those before, bit for bit, where nothing was ranked.
        verdict: Of the grader; None when none was asked for, or the group was dropped.
        graded: Whether a ranking was used.
        fallback: Why a ranking that was wanted was not used; empty otherwise.
        tokens: Trained tokens of each episode, with `preserve="token"`.
        turn_advantages: For each episode the advantages of its turns, where the verdict marks some of them;
            None for other episodes, and in place of it all when nothing is marked. Of equal patches only the one
            that was shown has marks.
        turn_strength: What they were shared out with.
        seed: What the labels were drawn with.
        seconds: Wall clock of the grading.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal[1] = SCHEMA_VERSION
    group_id: str
    task_id: str
    kept: bool
    reason: KeepReason
    episode_ids: tuple[str, ...]
    labels: tuple[str | None, ...]
    passed: tuple[bool, ...]
    valid: tuple[bool, ...]
    ranks: tuple[int | None, ...]
    weights: tuple[float, ...]
    advantages_before: tuple[float, ...]
    advantages: tuple[float, ...]
    verdict: Verdict | None = None
    graded: bool = False
    fallback: str = ""
    base: BaseName = "grpo"
    scheme: SchemeName = "linear"
    strength: float = 0.5
    preserve: PreserveName = "episode"
    tokens: tuple[float, ...] | None = None
    turn_advantages: tuple[tuple[float, ...] | None, ...] | None = None
    turn_strength: float = 0.5
    seed: int = 0
    seconds: float = 0.0

    @model_validator(mode="after")
    def _one_entry_each(self) -> GroupResult:
        names = ["labels", "passed", "valid", "ranks", "weights", "advantages_before", "advantages"]
        names += [name for name in ("tokens", "turn_advantages") if getattr(self, name) is not None]
        wrong = [name for name in names if len(getattr(self, name)) != len(self.episode_ids)]
        if wrong:
            raise ValueError(f"{', '.join(wrong)}: not one entry for each of {len(self.episode_ids)} episodes")
        return self

    @property
    def mask(self) -> tuple[bool, ...]:
        """Which episodes a learner trains on: the valid ones of a kept group."""
        return tuple(self.kept and valid for valid in self.valid)

    @property
    def comparable(self) -> bool:
        """Whether there are two valid episodes. A group of one is not graded: its advantage of 0 says nothing."""
        return self.reason is not KeepReason.TOO_FEW_VALID

    @property
    def invalid_count(self) -> int:
        """Episodes without a test result."""
        return self.valid.count(False)

    @property
    def sum_before(self) -> float:
        """Sum of the plain advantages over the passing episodes; by tokens if `preserve` says so."""
        return self._sum(self.advantages_before)

    @property
    def sum_after(self) -> float:
        """The same sum over the final advantages: equal up to rounding."""
        return self._sum(self.advantages)

    def _sum(self, values: tuple[float, ...]) -> float:
        count = self.tokens or (1.0,) * len(values)
        return math.fsum(n * a for n, a, won in zip(count, values, self.passed, strict=True) if won)
