"""One flat row for an episode, for tables."""

from __future__ import annotations

from typing import Any

from gagar_env.envs.observation import clean_text
from gagar_env.episode import Turn
from gagar_env.exports.records import Exported, patch_text

_INT64 = 2**63


def episode_row(item: Exported) -> dict[str, Any]:
    """Plain values by the columns of `tables.schema`."""
    result, episode, place = item.result, item.episode, item.position
    report, verdict = episode.report, result.verdict
    text = patch_text(episode.patch)
    turns = [
        _turn(turn, None if item.turn_advantages is None else item.turn_advantages[number])
        for number, turn in enumerate(episode.turns)
    ]
    return {
        "task_id": clean_text(episode.task_id),
        "instance_id": clean_text(item.instance_id),
        "group_id": clean_text(result.group_id),
        "attempt": _whole(item.attempt),
        "position": place,
        "episode_id": clean_text(episode.id),
        "policy": clean_text(episode.policy),
        "sandbox": clean_text(episode.sandbox),
        "image": clean_text(episode.image),
        "seed": _whole(episode.seed),
        "status": episode.status.value,
        "error": clean_text(episode.error),
        "valid": result.valid[place],
        "passed": result.passed[place],
        "reward": episode.reward,
        "kept": result.kept,
        "reason": result.reason.value,
        "mask": result.mask[place],
        "label": result.labels[place],
        "rank": result.ranks[place],
        "weight": result.weights[place],
        "advantage_before": result.advantages_before[place],
        "advantage": result.advantages[place],
        "base": result.base,
        "graded": result.graded,
        "fallback": clean_text(result.fallback),
        "grader": None if verdict is None else clean_text(verdict.grader),
        "confidence": None if verdict is None else verdict.confidence,
        "rank_reason": clean_text(item.reason),
        "problem_statement": None if item.task is None else clean_text(item.task.problem_statement),
        "first_observation": clean_text(episode.first_observation),
        "turns": turns,
        "patch": episode.patch.decode("utf-8", "replace") if text is None else text,
        "patch_bytes": episode.patch if text is None else None,
        "dropped": [
            {"path": clean_text(d.path), "reason": clean_text(d.reason), "size_bytes": _whole(d.size_bytes)}
            for d in episode.dropped
        ],
        "prompt_tokens": _whole(sum(turn.prompt_tokens for turn in episode.turns)),
        "completion_tokens": _whole(sum(turn.completion_tokens for turn in episode.turns)),
        "trained_tokens": None if result.tokens is None else result.tokens[place],
        "outcome": None if report is None else report.outcome.value,
        "outcome_reason": "" if report is None else clean_text(report.reason),
        "evidence": None if report is None else report.evidence,
        "score": None if report is None else report.score,
        "tests": []
        if report is None
        else [{"id": clean_text(name), "status": record.status.value} for name, record in report.tests.items()],
        "unmet": [] if report is None else [clean_text(name) for name in report.unmet],
        "flags": []
        if report is None
        else [
            {"kind": clean_text(f.kind), "path": clean_text(f.path), "detail": clean_text(f.detail)}
            for f in report.flags
        ],
        "reset_s": episode.timings.reset_s,
        "steps_s": episode.timings.steps_s,
        "capture_s": episode.timings.capture_s,
        "verify_s": episode.timings.verify_s,
    }


def _turn(turn: Turn, advantage: float | None) -> dict[str, Any]:
    tokens = turn.tokens
    return {
        "action": clean_text(turn.action),
        "observation": clean_text(turn.observation),
        "exit_code": _whole(turn.exit_code),
        "timed_out": turn.timed_out,
        "seconds": turn.seconds,
        "prompt_tokens": _whole(turn.prompt_tokens),
        "completion_tokens": _whole(turn.completion_tokens),
        "advantage": advantage,
        "tokens": None
        if tokens is None
        else {
            "kept": tokens.kept,
            "prompt": list(tokens.prompt),
            "completion": list(tokens.completion),
            "logprobs": None if tokens.logprobs is None else list(tokens.logprobs),
        },
    }


def _whole(value: int | None) -> int | None:
    """A number that fits a column of 64 bits; None for one that does not."""
    return value if value is not None and -_INT64 <= value < _INT64 else None
