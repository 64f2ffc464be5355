"""What collecting groups gives: a batch for each kept group, and the counts of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.group_result import GroupResult
from gagar_env.tasks.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBatch:
    """One group, graded. A batch for a learner is a kept one.

    Attributes:
        result: Advantages before and after, ranks, verdict.
        episodes: All members, invalid ones included, in the order of `result`.
        task: What they worked on.
        attempt: Number of the group in the wrapper's schedule, from 0 over all calls of `collect`.
        seed: Seed of its first member.
    """

    result: GroupResult
    episodes: tuple[Episode, ...]
    task: Task
    attempt: int
    seed: int


OnGroup = Callable[[GroupBatch], None]


@dataclass(slots=True, kw_only=True)
class GroupMetrics:
    """Counts since the wrapper was made (or since `metrics` was replaced).

    Attributes:
        groups: Groups that ended.
        kept: Those with a learning signal.
        dropped: The others by reason, such as `all_passed`, `all_failed` and `too_few_valid`.
        episodes: Episodes of all groups.
        invalid_episodes: Those without a reward: a fault of the infrastructure, a cut, not verified.
        cut_episodes: Those that were stopped at a deadline; part of the invalid ones.
        grader_fallbacks: Kept groups whose ranking failed, so that plain advantages were used.
        exhausted: Calls of `collect` that ended with fewer groups than asked for.
        rollout_s: Seconds spent waiting for episodes.
        grading_s: Seconds spent grading.
    """

    groups: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    invalid_episodes: int = 0
    cut_episodes: int = 0
    grader_fallbacks: int = 0
    exhausted: int = 0
    rollout_s: float = 0.0
    grading_s: float = 0.0

    def count(self, result: GroupResult, episodes: tuple[Episode, ...]) -> None:
        """Add one group."""
        self.groups += 1
        self.episodes += len(episodes)
        self.invalid_episodes += sum(not episode.valid for episode in episodes)
        self.cut_episodes += sum(episode.status is EpisodeStatus.CUT for episode in episodes)
        if result.kept:
            self.kept += 1
            self.grader_fallbacks += bool(result.fallback)
        else:
            self.dropped[result.reason.value] += 1

    def as_dict(self) -> dict[str, Any]:
        """Flat numbers for a logger; one `dropped/REASON` for each reason that occurred."""
        numbers = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "dropped"}
        return numbers | {f"dropped/{reason}": n for reason, n in sorted(self.dropped.items())}
