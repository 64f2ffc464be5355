"""Votes on one group: in which order and under which names candidates are shown, and what the votes come to.

Each vote shows the candidates under fresh labels and in another order; the second is the first one reversed, the fourth
the third reversed, and so on. What the votes come to:

    rank of a candidate   = mean over the votes of its rank (tied ones share the mean of their places)
    tiers                 = candidates within `tie` of the best mean rank of their tier are equal
    agreement             = mean over all pairs of votes of Kendall's tau-b
    confidence            = max(0, agreement) * votes that counted / votes that were cast

One vote alone says nothing on agreement: its confidence is 0.5. With `temper=False` confidence is 1.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gagar_env.grading import FailureKind, TurnMark, Usage, Verdict, VerdictOutcome, check_verdict, ranked_record

LONE_VOTE = 0.5
Tiers = Sequence[Sequence[str]]
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"


def orders(labels: Sequence[str], count: int, seed: str) -> list[list[str]]:
    """`count` orders of the labels; each second one is the one before it, reversed."""
    found: list[list[str]] = []
    for number in range(count):
        if number % 2:
            found.append(found[-1][::-1])
        else:
            found.append(random.Random(f"order {number} {seed}").sample(list(labels), len(labels)))
    return found


def fresh_labels(order: Sequence[str], number: int, seed: str) -> dict[str, str]:
    """New label -> label in the workspace, in the order in which they are shown. They sort in no telling way."""
    source = random.Random(f"labels {number} {seed}")
    names: dict[str, str] = {}
    for label in order:
        while (name := f"{source.choice(_LETTERS)}{source.randrange(10, 100)}") in names:
            pass
        names[name] = label
    return names


def model_seed(number: int, seed: str) -> int:
    """For models that take a seed: 31 bits."""
    return random.Random(f"model {number} {seed}").getrandbits(31)


def new_vote(order: Sequence[str], number: int, seed: str, *, send_seed: bool = True) -> dict[str, Any]:
    """A vote that is yet to be cast: what is not filled in afterwards was cancelled."""
    return {
        "labels": fresh_labels(order, number, seed),
        "token": "",
        "seed": model_seed(number, seed) if send_seed else None,
        "raw": "",
        "looked_at": [],
        "failure": FailureKind.CANCELLED.value,
        "error": "cancelled",
        "tiers": [],
        "reasons": {},
        "evidence": {},
        "marks": [],
    }


def own_tiers(vote: Mapping[str, Any]) -> list[list[str]]:
    """The tiers of a vote in labels of the workspace."""
    return [[vote["labels"][shown] for shown in tier] for tier in vote["tiers"]]


def tau_b(one: Sequence[float], two: Sequence[float]) -> float | None:
    """Kendall's tau-b of two rankings; 1 when both hold everything equal, None when only one of them does."""
    if _constant(one) and _constant(two):
        return 1.0
    if _constant(one) or _constant(two):
        return None
    signs = [(_sign(one[i] - one[j]), _sign(two[i] - two[j])) for i, j in itertools.combinations(range(len(one)), 2)]
    untied = math.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs))
    return sum(a * b for a, b in signs) / untied


def _constant(values: Sequence[float]) -> bool:
    return len(set(values)) <= 1


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def ranks(tiers: Tiers) -> dict[str, float]:
    """Place of each label, from 1; those of one tier share the mean of their places."""
    found: dict[str, float] = {}
    for tier in tiers:
        mean = len(found) + (len(tier) + 1) / 2
        found.update(dict.fromkeys(tier, mean))
    return found


def same(tiers: Sequence[Tiers]) -> bool:
    """Whether all of these rankings are the same."""
    plain = [[sorted(tier) for tier in one] for one in tiers]
    return all(one == plain[0] for one in plain[1:])


def replay(record: Mapping[str, Any]) -> Verdict:
    """The verdict that a record of the agentic grader comes to, without a model.

    Args:
        record: `verdict.record`, also that of a fallback in which the agentic grader ranked.

    Returns:
        The same verdict: outcome, tiers, confidence, reasons, evidence, marks.
    """
    record = ranked_record(record)
    passing: tuple[str, ...] = tuple(record["passing"])
    cast: list[Mapping[str, Any]] = list(record["votes"])
    good = [vote for vote in cast if not vote["failure"]]
    common: dict[str, Any] = {
        "grader": record["grader"],
        "usage": Usage(**record["usage"]),
        "warnings": tuple(record["warnings"]),
    }
    if len(good) < min(2, record["orders"]):
        last = next((vote for vote in reversed(cast) if vote["failure"]), None)
        kind = FailureKind(last["failure"]) if last else FailureKind.ERROR
        error = f"{kind.value}: {last['error']}" if last else "no vote was cast"
        nothing: dict[str, Any] = {"agreement": None, "mean_ranks": {}, "length_tau": None}
        return Verdict(
            outcome=VerdictOutcome.FAILED,
            error=error,
            failure=kind,
            evidence=_flags({}, record),
            record={**record, "result": nothing},
            **common,
        )
    placed = [ranks(own_tiers(vote)) for vote in good]
    means = {label: math.fsum(place[label] for place in placed) / len(placed) for label in passing}
    pairs = [
        tau_b([one[label] for label in passing], [two[label] for label in passing])
        for one, two in itertools.combinations(placed, 2)
    ]
    agreement = math.fsum(tau or 0.0 for tau in pairs) / len(pairs) if pairs else None
    confidence = LONE_VOTE if agreement is None else min(1.0, max(0.0, agreement)) * len(good) / len(cast)
    lines = record["patch_lines"]
    result: dict[str, Any] = {
        "agreement": agreement,
        "mean_ranks": means,
        "length_tau": _length_tau([-means[label] for label in passing], [lines[label] for label in passing]),
    }
    verdict = Verdict(
        outcome=VerdictOutcome.RANKED,
        tiers=_tiers(means, record["tie"]),
        reasons=_reasons(good, passing),
        evidence=_flags(_evidence(good), record),
        turn_marks=_marks(good),
        confidence=confidence if record["temper"] else 1.0,
        record={**record, "result": result},
        **common,
    )
    return check_verdict(verdict, passing)


def _length_tau(quality: Sequence[float], lines: Sequence[float]) -> float | None:
    """Above 0: the longer patches were ranked better. None where either is all the same."""
    return None if _constant(quality) or _constant(lines) else tau_b(quality, lines)


def _tiers(means: Mapping[str, float], tie: float) -> tuple[tuple[str, ...], ...]:
    tiers: list[list[str]] = []
    best = -math.inf
    for label in sorted(means, key=lambda name: (means[name], name)):
        if means[label] - best > tie + 1e-9:
            tiers.append([])
            best = means[label]
        tiers[-1].append(label)
    return tuple(tuple(sorted(tier)) for tier in tiers)


def _renamed(text: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\b[A-Z]\d\d\b", lambda match: labels.get(match.group(), match.group()), text)


def _reasons(votes: Sequence[Mapping[str, Any]], passing: Sequence[str]) -> dict[str, str]:
    """Of the first vote that gives one."""
    found: dict[str, str] = {}
    for vote in votes:
        for shown, text in vote["reasons"].items():
            label = vote["labels"].get(shown)
            if label in passing and text:
                found.setdefault(label, _renamed(text, vote["labels"]))
    return found


def _evidence(votes: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for vote in votes:
        for shown, texts in vote["evidence"].items():
            if (label := vote["labels"].get(shown)) is not None:
                said = found.setdefault(label, {}).setdefault("seen", [])
                said.extend(text for one in texts if (text := _renamed(one, vote["labels"])) not in said)
    return found


def _flags(evidence: dict[str, dict[str, Any]], record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    for label, found in record["talks_to_judge"].items():
        evidence.setdefault(label, {})["talks_to_judge"] = list(found)
    return evidence


def _marks(votes: Sequence[Mapping[str, Any]]) -> dict[str, dict[int, TurnMark]]:
    """Where the votes that mark a turn agree on it."""
    said: dict[str, dict[int, set[str]]] = {}
    for vote in votes:
        for label, turn, mark in vote["marks"]:
            said.setdefault(vote["labels"][label], {}).setdefault(turn, set()).add(mark)
    return {
        label: {turn: TurnMark(next(iter(marks))) for turn, marks in sorted(turns.items()) if len(marks) == 1}
        for label, turns in said.items()
    }
