"""The numbers of collected groups, by the names that loggers and `gagar view` know."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gagar_env.evaluation.rows import row_of
from gagar_env.grading import Usage
from gagar_env.jobs import GroupBatch

if TYPE_CHECKING:
    from gagar_env.wrappers.batches import GroupMetrics

_OF_A_WRAPPER = ("exhausted", "rollout_s", "grading_s")
PHASES = ("reset", "steps", "capture", "verify")


def metrics_of(batches: Sequence[GroupBatch], counts: GroupMetrics | None = None) -> dict[str, float]:
    """What some groups were like: those of one step of a learner, or one group of a run.

    Means are over valid episodes, of patches over those that passed. A mean over nothing is NaN, which loggers leave
    out: no measurement is not a 0.

    | name | what |
    | --- | --- |
    | `pass_rate` | passed / valid episodes |
    | `groups/kept`, `groups/all_passed`, `groups/all_failed`, `groups/invalid` | number of groups by verdict; `invalid` had fewer than two valid episodes |
    | `episodes`, `episodes/invalid`, `episodes/cut` | number of episodes; without a reward; of these, stopped at a deadline |
    | `patch/lines` | lines of source added and removed, tests and documentation left out |
    | `patch/out_of_scope_lines` | of these, in files that the task does not concern; NaN where it does not say which |
    | `turns` | of an episode |
    | `tokens`, `tokens/prompt` | completion and prompt tokens of an episode; NaN where the policy counts none |
    | `grader/agreement` | mean confidence of the rankings that were used |
    | `grader/fallbacks` | kept groups whose ranking failed |
    | `grader/calls`, `grader/tokens`, `grader/cost_usd` | sums; the cost is NaN where a price is not known |
    | `advantages/sum_before`, `advantages/sum_after` | over the passing episodes of kept groups; equal to rounding |
    | `seconds/reset`, `seconds/steps`, `seconds/capture`, `seconds/verify` | of an episode, by phase; over all episodes |
    | `seconds/grading` | of all groups together |
    | `total/...` | all that `counts` has; seconds and `exhausted` where they are not 0: a wrapper counts them |

    Args:
        batches: Groups with their episodes and task, dropped ones too.
        counts: Of the whole run: those of a `GroupRewardWrapper`, or your own.
    """  # noqa: E501
    results = [batch.result for batch in batches]
    episodes = [episode for batch in batches for episode in batch.episodes]
    valid = [episode for episode in episodes if episode.valid]
    rows = [row_of(e, batch.task, digest="") for batch in batches for e in batch.episodes if e.passed]
    counted = [(sum(t.prompt_tokens for t in e.turns), sum(t.completion_tokens for t in e.turns)) for e in valid]
    tokens = [pair for pair in counted if any(pair)]
    reasons = Counter(result.reason.value for result in results)
    verdicts = [result.verdict for result in results if result.verdict is not None]
    usage = sum((verdict.usage for verdict in verdicts), Usage())
    numbers: dict[str, float] = {
        "pass_rate": _mean(e.passed for e in valid),
        "groups/kept": reasons["kept"],
        "groups/all_passed": reasons["all_passed"],
        "groups/all_failed": reasons["all_failed"],
        "groups/invalid": reasons["too_few_valid"],
        "episodes": len(episodes),
        "episodes/invalid": len(episodes) - len(valid),
        "episodes/cut": sum(episode.status.value == "cut" for episode in episodes),
        "patch/lines": _mean(row.lines for row in rows if row.lines is not None),
        "patch/out_of_scope_lines": _mean(r.out_of_scope_lines for r in rows if r.out_of_scope_lines is not None),
        "turns": _mean(len(episode.turns) for episode in valid),
        "tokens": _mean(completion for _, completion in tokens),
        "tokens/prompt": _mean(prompt for prompt, _ in tokens),
        "grader/agreement": _mean(r.verdict.confidence for r in results if r.graded and r.verdict is not None),
        "grader/fallbacks": sum(bool(result.fallback) for result in results),
        "grader/calls": usage.calls,
        "grader/tokens": usage.prompt_tokens + usage.completion_tokens,
        "grader/cost_usd": usage.cost_usd if usage.cost_known else math.nan,
        "advantages/sum_before": math.fsum(result.sum_before for result in results if result.kept),
        "advantages/sum_after": math.fsum(result.sum_after for result in results if result.kept),
    }
    for phase in PHASES:
        numbers[f"seconds/{phase}"] = _mean(getattr(episode.timings, f"{phase}_s") for episode in episodes)
    numbers["seconds/grading"] = math.fsum(result.seconds for result in results)
    totals = counts.as_dict() if counts is not None else {}
    return numbers | {f"total/{name}": n for name, n in totals.items() if n or name not in _OF_A_WRAPPER}


def _mean(values: Iterable[float]) -> float:
    listed = [float(value) for value in values]
    return math.fsum(listed) / len(listed) if listed else math.nan
