"""Writes sessions of a judge as training data.

DIR/train.jsonl     one {"messages": [...], "tools": [...]} a line
DIR/eval.jsonl      the same, of other tasks
DIR/manifest.json   where each came from, what was left out and why
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from gagar_env.errors import GradingError
from gagar_env.grader_eval.sessions import Session, collect, read_gradings
from gagar_env.grader_eval.splits import clusters, held_out

SCHEMA_VERSION: Final = 1


class Example(BaseModel):
    """Where a line came from."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    split: Literal["train", "eval"]
    line: int
    task_id: str
    group_id: str
    vote: int


class Manifest(BaseModel):
    """What an export holds.

    Attributes:
        examples: One for each line, in the order of the files.
        tasks: By split; no task is in both, nor two tasks whose statements are alike.
        alike: Clusters of more than one task that were kept together.
        dropped: Why gradings or votes were left out, counted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal[1] = SCHEMA_VERSION
    seed: int
    eval_share: float
    examples: tuple[Example, ...]
    tasks: dict[str, tuple[str, ...]]
    alike: tuple[tuple[str, ...], ...]
    dropped: dict[str, int]


def export(
    sources: Sequence[Path],
    out: Path,
    *,
    eval_share: float = 0.2,
    seed: int = 0,
    statements: Mapping[str, str] | None = None,
) -> Manifest:
    """Write what is worth learning from into a new folder.

    Args:
        sources: Files of `gagar grader eval --out`, folders of `gagar run --out`.
        out: A folder that is not there yet.
        eval_share: Of the examples, for `eval.jsonl`, in [0, 1); whole tasks, so about that much.
        seed: Chooses the tasks of `eval.jsonl`.
        statements: Task -> problem statement, for runs.

    Raises:
        GradingError: If a source is broken, or nothing of it can be used.
        ValueError: If `eval_share` is out of range.
        OSError: If something cannot be read or written.
    """
    if not 0 <= eval_share < 1:
        raise ValueError(f"eval_share must be in [0, 1), got {eval_share}")
    found = collect((grading for source in sources for grading in read_gradings(source)), statements or {})
    if not found.sessions:
        why = "; ".join(f"{count} x {reason}" for reason, count in found.dropped.most_common())
        raise GradingError(f"there is no session to learn from: {why or 'no grading at all'}")
    texts = {session.task_id: session.statement for session in found.sessions}
    groups = clusters(texts)
    sizes = Counter(session.task_id for session in found.sessions)
    apart = held_out(groups, sizes, share=eval_share, seed=seed)
    splits: dict[Literal["train", "eval"], list[Session]] = {
        "train": [session for session in found.sessions if session.task_id not in apart],
        "eval": [session for session in found.sessions if session.task_id in apart],
    }
    manifest = Manifest(
        seed=seed,
        eval_share=eval_share,
        examples=tuple(
            Example(split=name, line=line, task_id=s.task_id, group_id=s.group_id, vote=s.vote)
            for name, sessions in splits.items()
            for line, s in enumerate(sessions, 1)
        ),
        tasks={name: tuple(sorted({s.task_id for s in sessions})) for name, sessions in splits.items()},
        alike=tuple(group for group in groups if len(group) > 1),
        dropped=dict(found.dropped),
    )
    _check(manifest, groups)
    out.mkdir(parents=True)
    for name, sessions in splits.items():
        lines = [json.dumps(_record(session), ensure_ascii=False) + "\n" for session in sessions]
        (out / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (out / "manifest.json").write_text(manifest.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return manifest


def _record(session: Session) -> dict[str, Any]:
    return {"messages": session.messages, "tools": session.tools}


def _check(manifest: Manifest, groups: Sequence[tuple[str, ...]]) -> None:
    """Nothing of one split is in the other.

    Raises:
        GradingError: If it is.
    """
    train, evaluation = (set(manifest.tasks[name]) for name in ("train", "eval"))
    for group in groups:
        if train.intersection(group) and evaluation.intersection(group):
            raise GradingError(f"tasks that are alike are in both splits: {', '.join(group)}")
