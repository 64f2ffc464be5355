"""What the model has to submit, and what is wrong with what it submits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field, StrictStr, ValidationError

from gagar_env.llm.replies import NoJSONError, find_object

_MAX_TEXT = 2_000
KEYS = frozenset({"tiers"})


class Mark(BaseModel):
    """What one turn of a candidate was worth."""

    label: StrictStr
    turn: int = Field(description="Number of the turn, from 1.")
    mark: Literal["useful", "wasted", "harmful"]


class Submission(BaseModel):
    """The ranking, best first."""

    tiers: list[list[StrictStr]] = Field(
        description="Labels of ALL candidates that passed, each exactly once, best tier first; equals share a tier."
    )
    reasons: dict[str, str] = Field(default_factory=dict, description="Label -> one line: why it stands where it does.")
    evidence: dict[str, list[str]] = Field(
        default_factory=dict, description="Label -> what you saw that supports the reason: path and line, turn, output."
    )
    marks: list[Mark] = Field(default_factory=list, description="Turns that stood out, if you read trajectories.")


def fault_of(tiers: Sequence[Sequence[str]], passing: Sequence[str]) -> str:
    """Why tiers are no exact partition of the labels that were shown; empty when they are."""
    named = [label for tier in tiers for label in tier]
    missing = [label for label in passing if label not in named]
    unknown = sorted(set(named) - set(passing))
    repeated = sorted({label for label in named if named.count(label) > 1})
    faults = [
        f"{what}: {', '.join(label[:40] for label in labels[:20])}"
        for what, labels in (("missing", missing), ("not among those that passed", unknown), ("repeated", repeated))
        if labels
    ]
    if any(not tier for tier in tiers):
        faults.append("a tier is empty")
    if not faults:
        return ""
    return f"`tiers` must hold each of {', '.join(passing)} exactly once; {'; '.join(faults)}"


def read_text(text: str) -> Submission:
    """A submission that was written as text.

    Raises:
        NoJSONError: If there is none; says what is wrong, for the model to read.
    """
    try:
        return Submission.model_validate(find_object(text, keys=KEYS))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise NoJSONError(f"the JSON object does not fit: {place}: {first['msg']}") from error


def bounded(submission: Submission) -> Submission:
    """The same with long texts cut: it is recorded."""
    return submission.model_copy(
        update={
            "reasons": {label: _one_line(text) for label, text in submission.reasons.items()},
            "evidence": {
                label: [_one_line(text) for text in texts[:20]] for label, texts in submission.evidence.items()
            },
        }
    )


def _one_line(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").decode().split())[:_MAX_TEXT]
