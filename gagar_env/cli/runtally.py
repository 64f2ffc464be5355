"""What is kept of a run while it goes on: counts and a bounded number of rows, there may be thousands of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gagar_env.agents.graders.fallback import fell_back
from gagar_env.cli.models import acting_json, grading_json
from gagar_env.cli.tables import group_json
from gagar_env.episode import Episode
from gagar_env.group_result import GroupResult
from gagar_env.totals import GradingTally

ROWS = 200
"""Groups that are shown one by one. A longer run is shown by task."""
_REASONS = 50


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: a group, or all of a task."""

    task: str
    passed: int
    episodes: int
    invalid: int
    what: str
    tiers: int
    sums: tuple[float, float] | None
    grading_tokens: int | None
    grading_s: float

    @classmethod
    def of(cls, result: GroupResult) -> Row:
        """The row of a group."""
        verdict = result.verdict
        usage = None if verdict is None else verdict.usage
        return cls(
            task=result.task_id,
            passed=sum(result.passed),
            episodes=len(result.passed),
            invalid=result.invalid_count,
            what=result.reason.value,
            tiers=0 if verdict is None else len(verdict.tiers),
            sums=(result.sum_before, result.sum_after) if result.comparable else None,
            grading_tokens=None if usage is None else usage.prompt_tokens + usage.completion_tokens,
            grading_s=0.0 if usage is None else usage.seconds,
        )


@dataclass(slots=True)
class TaskCounts:
    """All groups of one task."""

    groups: int = 0
    kept: int = 0
    passed: int = 0
    episodes: int = 0
    invalid: int = 0


@dataclass(slots=True)
class Tally:
    """Counts of a run.

    Attributes:
        as_json: Whether every group is to be printed: only then are they all kept.
        rows: Number of each of the first groups -> its row.
        shown: Number of each group -> what is printed of it, with `as_json`.
        faults: Task -> why an episode of it has no result.
        broken: Task -> why it could not be run.
        plain: Task and reason -> groups without the ranking that was wanted.
        acted: Tokens of the policy.
    """

    as_json: bool = False
    groups: int = 0
    rows: dict[int, Row] = field(default_factory=dict)
    tasks: dict[str, TaskCounts] = field(default_factory=dict)
    shown: dict[int, dict[str, Any]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    faults: dict[str, str] = field(default_factory=dict)
    broken: dict[str, Exception] = field(default_factory=dict)
    plain: Counter[tuple[str, str]] = field(default_factory=Counter)
    fallbacks: int = 0
    first_fallback: str = ""
    acted: Counter[str] = field(default_factory=Counter)
    kinds: set[str] = field(default_factory=set)
    grader: str = ""
    fell_back: int = 0
    with_a_model: bool = False
    any_valid: bool = False
    any_of_one: bool = False
    grading: GradingTally = field(default_factory=GradingTally)

    def add(self, number: int, result: GroupResult, episodes: Sequence[Episode], *, seed: int, sandbox: str) -> None:
        """Count one more group.

        Args:
            number: Its place in the run.
            result: The group.
            episodes: Its members, as far as they can be read.
            seed: Of its first member.
            sandbox: The kind that it ran in.
        """
        self.groups += 1
        self.kinds.add(sandbox)
        self.reasons[result.reason.value] += 1
        self.grading.add(result)
        if len(self.rows) < ROWS:
            self.rows[number] = Row.of(result)
        counts = self.tasks.setdefault(result.task_id, TaskCounts())
        counts.groups += 1
        counts.kept += result.kept
        counts.passed += sum(result.passed)
        counts.episodes += len(result.passed)
        counts.invalid += result.invalid_count
        self.any_valid = self.any_valid or any(result.valid)
        self.any_of_one = self.any_of_one or len(result.passed) == 1
        self.faults.update((result.task_id, e.error) for e in episodes if not e.valid)
        self.acted.update(acting := acting_json(episodes))
        self._count_grading(result)
        if self.as_json:
            whole = len(episodes) == len(result.episode_ids)
            found = group_json(result, episodes if whole else None, seed=seed, sandbox=sandbox)
            self.shown[number] = {**found, "acting": acting, "grading": grading_json(result)}

    def _count_grading(self, result: GroupResult) -> None:
        if result.fallback:
            self.fallbacks += 1
            self.first_fallback = self.first_fallback or result.fallback
            if len(self.plain) < _REASONS or (result.task_id, result.fallback) in self.plain:
                self.plain[result.task_id, result.fallback] += 1
        if result.verdict is not None:
            self.grader = self.grader or result.verdict.grader
            self.fell_back += fell_back(result.verdict)
            self.with_a_model = self.with_a_model or result.verdict.usage.calls > 0
