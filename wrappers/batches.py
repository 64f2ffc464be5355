"""What collecting groups gives: a batch for each kept group, and the counts of all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.group_result import GroupResult
from gagar_env.jobs import GroupBatch as GroupBatch

OnGroup = Callable[[GroupBatch], None]


@dataclass(slots=True, kw_only=True)
class GroupMetrics:
    """Counts since the wrapper was made (or since `metrics` was replaced).

    Attributes:
        groups: Groups that ended.
        kept: Those with a learning signal.
        dropped: The others by reason, such as `all_passed`, `all_failed` and `too_few_valid`.
        episodes: Episodes of all groups.
        passed_episodes: Those whose work earned the reward.
        invalid_episodes: Those without a reward: a fault of the infrastructure, a cut, not verified.
        cut_episodes: Those that were stopped at a deadline; part of the invalid ones.
        grader_fallbacks: Kept groups whose ranking failed, so that plain advantages were used.
        turns, prompt_tokens, completion_tokens: Of all episodes, as far as the policy counts tokens.
        grader_calls, grader_tokens: Requests to a model for grading; prompt and completion tokens of them together.
        grader_cost_usd: What they cost, as far as prices are known.
        unpriced: Groups whose grading has replies of unknown price.
        exhausted: Calls of `collect` that ended with fewer groups than asked for.
        rollout_s: Seconds that the caller waited for groups; for their grading too, where nothing else held it up.
        grading_s: Seconds spent grading, of all workers together. Groups that act at the same time hide them.
    """

    groups: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    episodes: int = 0
    passed_episodes: int = 0
    invalid_episodes: int = 0
    cut_episodes: int = 0
    grader_fallbacks: int = 0
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    grader_calls: int = 0
    grader_tokens: int = 0
    grader_cost_usd: float = 0.0
    unpriced: int = 0
    exhausted: int = 0
    rollout_s: float = 0.0
    grading_s: float = 0.0

    def count(self, result: GroupResult, episodes: tuple[Episode, ...]) -> None:
        """Add one group."""
        self.groups += 1
        self.episodes += len(episodes)
        self.passed_episodes += sum(episode.passed for episode in episodes)
        self.invalid_episodes += sum(not episode.valid for episode in episodes)
        self.cut_episodes += sum(episode.status is EpisodeStatus.CUT for episode in episodes)
        turns = [turn for episode in episodes for turn in getattr(episode, "turns", ())]  # other environments have none
        self.turns += len(turns)
        self.prompt_tokens += sum(turn.prompt_tokens for turn in turns)
        self.completion_tokens += sum(turn.completion_tokens for turn in turns)
        if result.verdict is not None:
            usage = result.verdict.usage
            self.grader_calls += usage.calls
            self.grader_tokens += usage.prompt_tokens + usage.completion_tokens
            self.grader_cost_usd += usage.cost_usd
            self.unpriced += not usage.cost_known
        if result.kept:
            self.kept += 1
            self.grader_fallbacks += bool(result.fallback)
        else:
            self.dropped[result.reason.value] += 1

    def ran_short(self, kept: int, wanted: int, attempts: int) -> str:
        """Count a call of `collect` that ended with fewer groups than asked for; a line about it."""
        self.exhausted += 1
        dropped = ", ".join(f"{n} {reason}" for reason, n in sorted(self.dropped.items()))
        return f"{kept} of {wanted} groups kept after {attempts} attempts (dropped so far: {dropped or 'none'})"

    def as_dict(self) -> dict[str, Any]:
        """Flat numbers for a logger; one `dropped/REASON` for each reason that occurred."""
        numbers = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "dropped"}
        return numbers | {f"dropped/{reason}": n for reason, n in sorted(self.dropped.items())}
