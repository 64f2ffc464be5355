"""Conversations of a judge that are worth learning from, out of recorded gradings.

A grading counts when at least two of its votes came to a ranking, all of these are the same although each saw another
order under other labels, and, where the right order is known, it is that one exactly. Each such vote is one session.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gagar_env.errors import GradingError
from gagar_env.grader_eval.records import Grading
from gagar_env.grading import ranked_record
from gagar_env.group_result import GroupResult
from gagar_env.store.records import read_group


class Vote(BaseModel):
    """What is read of a recorded vote."""

    model_config = ConfigDict(extra="ignore")
    labels: dict[str, str]
    token: str = ""
    failure: str = ""
    tiers: list[list[str]] = []
    session: list[dict[str, Any]] = []
    tools: list[dict[str, Any]] = []

    def own_tiers(self) -> tuple[frozenset[str], ...]:
        """The tiers in labels of the workspace."""
        return tuple(frozenset(self.labels[shown] for shown in tier) for tier in self.tiers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation with its tools, in the format that chat templates take.

    Attributes:
        statement: The problem statement, for finding tasks that are alike.
        key: Names the content, whatever labels were drawn.
    """

    task_id: str
    group_id: str
    vote: int
    statement: str
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    key: str


@dataclass(slots=True)
class Collected:
    """Sessions, and why gradings gave none."""

    sessions: list[Session] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)


def read_gradings(path: Path) -> Iterator[Grading | GroupResult]:
    """Gradings of `gagar grader eval --out FILE`, or of a folder of `gagar run --out FOLDER`.

    Raises:
        GradingError: Naming the line that is neither.
        OSError: If it cannot be read.
    """
    file = path / "groups.jsonl" if path.is_dir() else path
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        yield _read(line, f"{file}: line {number}")


def _read(line: bytes, where: str) -> Grading | GroupResult:
    kind = Grading if b'"strengths"' in line and b'"statement"' in line else GroupResult
    if kind is GroupResult and (stored := _stored(line, where)) is not None:
        return stored
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise GradingError(f"{where} is no grading: {place}: {first['msg']}") from error


def _stored(line: bytes, where: str) -> GroupResult | None:
    """The group of a line of a run, which says more than the group."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    record = read_group(found, where) if isinstance(found, dict) else None
    return None if record is None else record.result


def collect(gradings: Iterable[Grading | GroupResult], statements: Mapping[str, str]) -> Collected:
    """The sessions to learn from, each once, in the order of the gradings.

    Args:
        gradings: As recorded.
        statements: Task -> problem statement, for gradings that do not hold it.
    """
    found = Collected()
    seen: set[str] = set()
    for grading in gradings:
        result = grading.result if isinstance(grading, Grading) else grading
        votes, why = _agreeing(result)
        if not why and isinstance(grading, Grading) and not _is_right(votes[0][1].own_tiers(), grading.strengths):
            why = "the ranking is wrong"
        if why:
            found.dropped[why] += 1
            continue
        for number, vote in votes:
            messages = _chat(vote.session)
            if not messages:
                found.dropped["no conversation was kept: use --grader-sessions"] += 1
                continue
            key = _key(messages, vote)
            if key in seen:
                found.dropped["the same conversation again"] += 1
                continue
            seen.add(key)
            known = grading.statement if isinstance(grading, Grading) else statements.get(result.task_id, "")
            found.sessions.append(
                Session(
                    task_id=result.task_id,
                    group_id=result.group_id,
                    vote=number,
                    statement=known or _first(messages, "user"),
                    messages=messages,
                    tools=vote.tools,
                    key=key,
                )
            )
    return found


def _agreeing(result: GroupResult) -> tuple[list[tuple[int, Vote]], str]:
    """The votes of a grading if they agree; else why they do not count."""
    if result.verdict is None or not result.graded:
        return [], "there is no ranking"
    try:
        votes = [Vote.model_validate(vote) for vote in ranked_record(result.verdict.record).get("votes", ())]
    except ValidationError:
        votes = []
    good = [(number, vote) for number, vote in enumerate(votes) if not vote.failure and vote.tiers]
    if len(good) < 2:
        return [], "fewer than two votes"
    if len({vote.own_tiers() for _, vote in good}) > 1:
        return [], "the votes disagree"
    return good, ""


def _is_right(tiers: Sequence[frozenset[str]], strengths: Mapping[str, int]) -> bool:
    rank = {label: number for number, tier in enumerate(tiers) for label in tier}
    if set(rank) != set(strengths):
        return False
    return all(
        _sign(rank[one] - rank[other]) == _sign(strengths[one] - strengths[other])
        for one, other in combinations(strengths, 2)
    )


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def for_template(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Messages as chat templates take them: the arguments of calls are objects, which they print as JSON."""
    made = []
    for message in messages:
        kept = {name: message[name] for name in ("role", "content", "name") if name in message}
        if calls := message.get("tool_calls"):
            kept["tool_calls"] = [
                {
                    "type": "function",
                    "function": {
                        "name": call["function"]["name"],
                        "arguments": json.loads(call["function"]["arguments"] or "{}"),
                    },
                }
                for call in calls
            ]
        made.append(kept)
    return made


def _chat(session: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Up to the last word of the judge."""
    last = max((n for n, message in enumerate(session) if message["role"] == "assistant"), default=-1)
    return for_template(session[: last + 1])


def _first(messages: Sequence[Mapping[str, Any]], role: str) -> str:
    return next((str(message["content"]) for message in messages if message["role"] == role), "")


def _key(messages: Sequence[Mapping[str, Any]], vote: Vote) -> str:
    """The conversation with its labels as in the workspace: what was drawn makes no new example."""
    text = json.dumps(messages, sort_keys=True)
    for shown, own in sorted(vote.labels.items()):
        text = text.replace(shown, f"<{own}>")
    return text.replace(vote.token, "") if vote.token else text
