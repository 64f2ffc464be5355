"""A group and its members as a page shows them."""

from __future__ import annotations

from typing import Any

from gagar_env.episode import Episode, TestReport
from gagar_env.grading import Verdict, ranked_record
from gagar_env.group_result import GroupResult
from gagar_env.store import GroupRecord
from gagar_env.tasks.patchtext import line_counts
from gagar_env.view.patches import patch_view
from gagar_env.view.plain import cut, short
from gagar_env.view.rows import agreement_of
from gagar_env.view.runs import Run

MAX_STATEMENT = 20_000
MAX_TESTS = 2_000
MAX_FLAGS = 100
MAX_OUTPUT = 8_000


def group_view(run: Run, number: int, line: GroupRecord) -> dict[str, Any]:
    """A group: how it came to its advantages, and a line for each member."""
    result = line.result
    return {
        "number": number,
        "group": result.group_id,
        "task": result.task_id,
        "statement": cut(run.statement(result.task_id, line.task_digest), MAX_STATEMENT),
        "kept": result.kept,
        "reason": result.reason.value,
        "attempt": line.attempt,
        "ended_at": None if line.ended_at is None else line.ended_at.isoformat(timespec="seconds"),
        "seed": result.seed,
        "base": result.base,
        "scheme": result.scheme,
        "strength": result.strength,
        "preserve": result.preserve,
        "turn_strength": result.turn_strength,
        "graded": result.graded,
        "fallback": result.fallback[:MAX_OUTPUT],
        "seconds": result.seconds,
        "sum_before": result.sum_before,
        "sum_after": result.sum_after,
        "comparable": result.comparable,
        "verdict": None if result.verdict is None else _verdict_view(result.verdict),
        "members": [_member_line(run, result, place) for place in range(len(result.episode_ids))],
    }


def member_view(episode: Episode) -> dict[str, Any]:
    """What is shown of one member beside its trajectory."""
    report = episode.report
    return {
        "patch": patch_view(episode.patch),
        "dropped": [short(d.model_dump()) for d in episode.dropped[:MAX_FLAGS]],
        "dropped_left": max(0, len(episode.dropped) - MAX_FLAGS),
        "report": None if report is None else _report_view(report),
        "made_with": {
            "episode": episode.id,
            "policy": episode.policy,
            "seed": episode.seed,
            "sandbox": episode.sandbox,
            "image": episode.image,
            **{name: round(value, 3) for name, value in episode.timings.model_dump().items()},
        },
    }


def _member_line(run: Run, result: GroupResult, place: int) -> dict[str, Any]:
    episode = run.episode(result.episode_ids[place])
    label = result.labels[place]
    verdict = result.verdict
    weight = result.tokens[place] if result.tokens is not None else 1.0
    found: dict[str, Any] = {
        "episode": result.episode_ids[place],
        "label": label,
        "twin": label is not None and label in result.labels[:place],
        "valid": result.valid[place],
        "passed": result.passed[place],
        "rank": result.ranks[place],
        "weight": result.weights[place],
        "before": result.advantages_before[place],
        "after": result.advantages[place],
        "part_before": weight * result.advantages_before[place],
        "part_after": weight * result.advantages[place],
        "tokens": None if result.tokens is None else result.tokens[place],
        "grader_reason": "" if verdict is None or label is None else verdict.reasons.get(label, "")[:MAX_OUTPUT],
        "evidence": {} if verdict is None or label is None else short(verdict.evidence.get(label, {})),
        "there": episode is not None,
    }
    return found if episode is None else {**found, **_of_episode(episode)}


def _of_episode(episode: Episode) -> dict[str, Any]:
    files, added, removed = line_counts(episode.patch)
    report = episode.report
    flags = () if report is None else report.flags
    return {
        "status": episode.status.value,
        "error": episode.error[:MAX_OUTPUT],
        "turns": len(episode.turns),
        "files": files,
        "added": added,
        "removed": removed,
        "outcome": None if report is None else report.outcome.value,
        "why": "" if report is None else report.reason[:MAX_OUTPUT],
        "score": None if report is None else report.score,
        "tests": 0 if report is None else len(report.tests),
        "tests_passed": 0 if report is None else sum(t.status.value == "passed" for t in report.tests.values()),
        "unmet": 0 if report is None else len(report.unmet),
        "flags": [short(flag.model_dump()) for flag in flags[:MAX_FLAGS]],
        "flags_left": max(0, len(flags) - MAX_FLAGS),
    }


def _report_view(report: TestReport) -> dict[str, Any]:
    unmet = set(report.unmet)
    tests: list[dict[str, Any]] = [
        {
            "id": name[:MAX_OUTPUT],
            "status": record.status.value,
            "seconds": record.seconds,
            "message": record.message[:MAX_OUTPUT],
            "unmet": name in unmet,
        }
        for name, record in report.tests.items()
    ]
    tests += [
        {"id": name[:MAX_OUTPUT], "status": "missing", "seconds": 0.0, "message": "it left no result", "unmet": True}
        for name in report.unmet
        if name not in report.tests
    ]
    tests.sort(key=lambda test: (not test["unmet"], test["status"] == "passed"))
    return {
        "outcome": report.outcome.value,
        "reason": report.reason[:MAX_OUTPUT],
        "evidence": report.evidence,
        "exit_code": report.exit_code,
        "timed_out": report.timed_out,
        "attempts": report.attempts,
        "seconds": report.seconds,
        "score": report.score,
        "tests": tests[:MAX_TESTS],
        "tests_left": max(0, len(tests) - MAX_TESTS),
        "ignored": short(list(report.ignored)),
        "output": cut(report.output_tail, MAX_OUTPUT),
    }


def _verdict_view(verdict: Verdict) -> dict[str, Any]:
    record = ranked_record(verdict.record)
    votes = record.get("votes")
    return {
        "grader": verdict.grader,
        "outcome": verdict.outcome.value,
        "tiers": verdict.tiers,
        "confidence": verdict.confidence,
        "agreement": agreement_of(verdict.record),
        "usage": verdict.usage.model_dump(),
        "error": verdict.error[:MAX_OUTPUT],
        "failure": str(verdict.failure),
        "warnings": short(list(verdict.warnings)),
        "cached": verdict.cached,
        "model": short(record.get("model")) if "model" in record else None,
        "votes": [_vote_view(vote) for vote in votes[:20] if isinstance(vote, dict)] if isinstance(votes, list) else [],
    }


def _vote_view(vote: dict[str, Any]) -> dict[str, Any]:
    """A vote in labels of the group; what the judge called the candidates is in `labels`."""
    labels = vote.get("labels")
    names = labels if isinstance(labels, dict) else {}
    tiers = vote.get("tiers")
    listed = [tier for tier in tiers if isinstance(tier, list)] if isinstance(tiers, list) else []
    plain = [[_named(names, each) for each in tier] for tier in listed]
    return {
        "tiers": short(plain),
        "order": short(list(names.values())),
        "failure": short(vote.get("failure", "")),
        "error": short(vote.get("error", "")),
        "looked_at": short(vote.get("looked_at", []), longest=400, most=60),
        "raw": cut(str(vote.get("raw", "")), MAX_OUTPUT),
    }


def _named(names: dict[str, Any], candidate: Any) -> Any:
    return names.get(candidate, candidate) if isinstance(candidate, str) else candidate
