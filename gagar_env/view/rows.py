"""One group in a line, as lists and curves need it: from its result, and from its episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gagar_env.episode import Episode
from gagar_env.group_result import GroupResult
from gagar_env.tasks.patchtext import line_counts
from gagar_env.totals import recorded_number


def group_row(result: GroupResult) -> dict[str, Any]:
    """What the result alone says of a group."""
    verdict = result.verdict
    usage = None if verdict is None else verdict.usage
    agreement = None if verdict is None else agreement_of(verdict.record)
    return {
        "group": result.group_id,
        "task": result.task_id,
        "kept": result.kept,
        "reason": result.reason.value,
        "size": len(result.episode_ids),
        "valid": sum(result.valid),
        "passed": sum(result.passed),
        "tiers": len(verdict.tiers) if verdict is not None and result.graded else 0,
        "graded": result.graded,
        "fallback": bool(result.fallback),
        "confidence": verdict.confidence if verdict is not None and result.graded else None,
        "agreement": agreement,
        "cost_usd": 0.0 if usage is None else usage.cost_usd,
        "grader_tokens": 0 if usage is None else usage.prompt_tokens + usage.completion_tokens,
        "grader_s": result.seconds,
        "warnings": 0 if verdict is None else len(verdict.warnings),
    }


def agreement_of(record: Any) -> float | None:
    """How far the votes of a grader agree, -1 to 1, where its record says so."""
    return recorded_number(record, "agreement")


def episodes_row(episodes: Sequence[Episode | None]) -> dict[str, Any]:
    """What the episodes of a group add.

    Args:
        episodes: All of its members; None for one whose file is missing.
    """
    there = [episode for episode in episodes if episode is not None]
    flags = sorted({flag.kind for e in there if e.report is not None for flag in e.report.flags})
    tokens = sum(turn.prompt_tokens + turn.completion_tokens for e in there for turn in e.turns)
    return {
        "turns": _mean([len(e.turns) for e in there if e.valid]),
        "lines": _mean([sum(line_counts(e.patch)[1:]) for e in there if e.passed]),
        "seconds": _mean([t.reset_s + t.steps_s + t.capture_s + t.verify_s for t in (e.timings for e in there)]),
        "policy_tokens": tokens,
        "flags": flags,
        "missing": len(episodes) - len(there),
    }


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
