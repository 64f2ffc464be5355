"""A run in numbers and curves. Long runs are drawn in bins, so that a page stays small whatever their length."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MAX_POINTS = 160
MAX_METRICS = 48
_OWN = {"step", "time"}

Rows = Sequence[Mapping[str, Any]]


def overview(rows: Rows, read: int, metrics: Rows) -> dict[str, Any]:
    """What the first page of a run shows.

    Args:
        rows: One for each group; those whose episodes were read have the keys of `episodes_row` too.
        read: How many of them have those.
        metrics: Logged steps.
    """
    width = max(1, math.ceil(len(rows) / MAX_POINTS))
    return {
        "groups": len(rows),
        "read": read,
        "totals": _totals(rows),
        "per_point": width,
        "curves": _curves(rows, width),
        "metrics": _metric_curves(metrics),
        "steps": len(metrics),
    }


def _totals(rows: Rows) -> dict[str, Any]:
    valid = sum(row["valid"] for row in rows)
    return {
        "episodes": sum(row["size"] for row in rows),
        "valid": valid,
        "passed": sum(row["passed"] for row in rows),
        "invalid": sum(row["size"] for row in rows) - valid,
        "kept": sum(row["kept"] for row in rows),
        "reasons": dict(Counter(row["reason"] for row in rows)),
        "graded": sum(row["graded"] for row in rows),
        "fallbacks": sum(row["fallback"] for row in rows),
        "flagged": sum(bool(row.get("flags")) for row in rows),
        "missing": sum(row.get("missing", 0) for row in rows),
        "cost_usd": math.fsum(row["cost_usd"] for row in rows),
        "grader_tokens": sum(row["grader_tokens"] for row in rows),
        "policy_tokens": sum(row.get("policy_tokens", 0) for row in rows),
    }


def _curves(rows: Rows, width: int) -> list[dict[str, Any]]:
    bins = [rows[start : start + width] for start in range(0, len(rows), width)]

    def curve(key: str, title: str, unit: str, hint: str, value: Any, low: float | None = None) -> dict[str, Any]:
        points = [[start * width, value(some)] for start, some in enumerate(bins)]
        return {"key": key, "title": title, "unit": unit, "hint": hint, "points": points, "low": low}

    def share(top: str, whole: str) -> Any:
        def value(some: Rows) -> float | None:
            count = sum(row[whole] for row in some)
            return sum(row[top] for row in some) / count if count else None

        return value

    def mean(key: str) -> Any:
        return lambda some: _mean([row[key] for row in some if row.get(key) is not None])

    def total(*keys: str) -> Any:
        return lambda some: math.fsum(row.get(key) or 0 for row in some for key in keys) / len(some)

    found = [
        curve("pass_rate", "Pass rate", "%", "of valid episodes", share("passed", "valid"), 0.0),
        curve("kept", "Kept groups", "%", "with passes and failures: they train", total("kept"), 0.0),
        curve("turns", "Episode length", "turns", "mean of valid episodes", mean("turns"), 0.0),
        curve("lines", "Patch size", "lines", "added and removed, mean of passing episodes", mean("lines"), 0.0),
        curve("agreement", "Agreement of votes", "tau", "of the grader with itself", mean("agreement")),
        curve("confidence", "Confidence", "", "of the grader in its rankings", mean("confidence"), 0.0),
    ]
    if any(row["cost_usd"] for row in rows):
        found.append(curve("cost", "Grading cost", "USD", "for a group", total("cost_usd"), 0.0))
    else:
        found.append(
            curve("tokens", "Grading cost", "tokens", "for a group; no price known", total("grader_tokens"), 0.0)
        )
    tokens = total("policy_tokens")
    found.append(curve("policy_tokens", "Policy tokens", "tokens", "for a group, all members", tokens, 0.0))
    return found


def _metric_curves(metrics: Rows) -> list[dict[str, Any]]:
    keys = sorted({key for step in metrics for key, value in step.items() if key not in _OWN and _number(value)})
    width = max(1, math.ceil(len(metrics) / MAX_POINTS))
    bins = [metrics[start : start + width] for start in range(0, len(metrics), width)]
    found = []
    for key in keys[:MAX_METRICS]:
        points = []
        for number, some in enumerate(bins):
            first = some[0].get("step")
            mean = _mean([float(step[key]) for step in some if _number(step.get(key))])
            points.append([first if _number(first) else number * width, mean])
        found.append({"key": key, "title": key, "unit": "", "hint": "", "points": points, "low": None})
    return found


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
