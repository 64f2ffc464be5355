"""Verdicts that were given before, on disk under `<cache>/verdicts`, named by everything that matters for them."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gagar_env.grading import Usage, Verdict
from gagar_env.workspace import Workspace

logger = logging.getLogger(__name__)


def question_of(workspace: Workspace) -> dict[str, Any]:
    """What a group asks: the task, and all that its candidates did, by label."""
    return {
        "task": workspace.task.id,
        "statement": workspace.task.problem_statement,
        "repo": workspace.task.repo.model_dump_json(),
        "seed": workspace.seed,
        "candidates": {
            label: [
                digest(candidate.patch),
                digest("\n".join(turn.model_dump_json() for turn in candidate.turns)),
                digest(candidate.report.model_dump_json()),
            ]
            for label, candidate in workspace.candidates.items()
        },
    }


def key_of(settings: Mapping[str, Any], workspace: Workspace) -> str:
    """Name of the verdict on this group with these settings."""
    return digest(json.dumps([settings, question_of(workspace)], sort_keys=True, default=str))


def digest(data: bytes | str) -> str:
    """Names a content."""
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")).hexdigest()


def load(folder: Path, key: str) -> Verdict | None:
    """The verdict that was kept; None if there is none that can be read. It costs nothing now, and says so."""
    try:
        verdict = Verdict.model_validate_json((folder / f"{key}.json").read_bytes())
    except (OSError, ValueError):
        return None
    return verdict.model_copy(update={"cached": True, "usage": Usage()})


def save(folder: Path, key: str, verdict: Verdict) -> None:
    """Keep a verdict: whole or not at all. A cache that cannot be written is said, and no failure."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file, name = tempfile.mkstemp(prefix=f".{key}.", dir=folder)
        try:
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                stream.write(verdict.model_dump_json())
            os.replace(name, folder / f"{key}.json")
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        logger.warning("a verdict is not kept: %s cannot be written: %s", folder, error.strerror)
