"""What an evaluation keeps of an episode: a small row, enough for every number of the report."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict
from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchedFile, PatchSet

from gagar_env.agents.graders.rule_sources import is_scratch, kind_of
from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.errors import GagarError
from gagar_env.patch import patch_paths
from gagar_env.tasks.digest import task_digest
from gagar_env.tasks.task import Task

SCHEMA_VERSION: Final = 1


class EpisodeRow(BaseModel):
    """One episode in numbers.

    Attributes:
        digest: Of the task, so that numbers of a task that was changed are not mixed; empty where it is not known.
        sample: Number of the episode among those of its task.
        attempt: 0, or how often it had been tried before without a result.
        error: Why there is no result.
        added: Lines added to source, without tests and documentation; None for a patch that cannot be read.
        removed: Lines removed from it.
        out_of_scope_files: Changed source files that the task does not concern, and new scratch files; None where the
            task says neither by `concerns` nor by a reference what it concerns.
        out_of_scope_lines: Added and removed lines in these.
        prompt_tokens, completion_tokens: Over all turns; None where the policy counts none.
        seconds: Wall clock, verification included.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    schema_version: Literal[1] = SCHEMA_VERSION
    task_id: str
    digest: str = ""
    sample: int = 0
    attempt: int = 0
    episode_id: str = ""
    policy: str = ""
    seed: int | None = None
    sandbox: str = ""
    status: EpisodeStatus
    valid: bool
    passed: bool
    error: str = ""
    added: int | None = None
    removed: int | None = None
    out_of_scope_files: int | None = None
    out_of_scope_lines: int | None = None
    turns: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float = 0.0

    @property
    def lines(self) -> int | None:
        """Size of the patch: lines added and removed."""
        return None if self.added is None or self.removed is None else self.added + self.removed


def row_of(
    episode: Episode, task: Task | None = None, *, sample: int = 0, attempt: int = 0, digest: str | None = None
) -> EpisodeRow:
    """The row of an episode of any engine.

    Args:
        episode: The record.
        task: Its task, for the scope; without it that is not known.
        sample: Number of the episode among those of its task.
        attempt: How often it had been tried before.
        digest: Of the task; by default it is worked out, which reads the task's files.
    """
    files = _files(episode.patch)
    source = [file for file in files or () if kind_of(file.path) == "source"]
    concerns = None if task is None else concerned(task)
    outside = None if concerns is None or files is None else [file for file in files if _is_outside(file, concerns)]
    prompt = sum(turn.prompt_tokens for turn in episode.turns)
    completion = sum(turn.completion_tokens for turn in episode.turns)
    counted = bool(prompt or completion)
    reason = episode.error or (episode.report.reason if episode.report is not None else "was not verified")
    return EpisodeRow(
        task_id=episode.task_id,
        digest=(digest_of(task) if task is not None else "") if digest is None else digest,
        sample=sample,
        attempt=attempt,
        episode_id=episode.id,
        policy=episode.policy,
        seed=episode.seed,
        sandbox=episode.sandbox,
        status=episode.status,
        valid=episode.valid,
        passed=episode.passed,
        error="" if episode.valid else " ".join(reason.split())[:500],
        added=None if files is None else sum(file.added for file in source),
        removed=None if files is None else sum(file.removed for file in source),
        out_of_scope_files=None if outside is None else len(outside),
        out_of_scope_lines=None if outside is None else sum(file.added + file.removed for file in outside),
        turns=len(episode.turns),
        prompt_tokens=prompt if counted else None,
        completion_tokens=completion if counted else None,
        seconds=sum(episode.timings.model_dump().values()),
    )


def digest_of(task: Task) -> str:
    """Of the task as it is now; empty for one whose files cannot be read."""
    try:
        return task_digest(task)
    except (OSError, ValueError):
        return ""


def concerned(task: Task) -> frozenset[str] | None:
    """Files that a task concerns, as the rule grader has it: `concerns`, or what its reference touches."""
    if task.concerns:
        return frozenset(task.concerns)
    return _touched(task.solution_patch) if task.solution_patch.strip() else None


@lru_cache(maxsize=256)
def _touched(patch: bytes) -> frozenset[str] | None:
    try:
        return frozenset(patch_paths(patch))
    except GagarError:
        return None


def _files(patch: bytes) -> list[PatchedFile] | None:
    try:
        return list(PatchSet(patch.decode("latin-1")))
    except (UnidiffParseError, ValueError):  # a head with more digits than a number may have, say
        return None


def _is_outside(file: PatchedFile, concerns: Iterable[str]) -> bool:
    """Added tests and documentation are in scope; so are changes of these that are there."""
    if file.path in concerns:
        return False
    return kind_of(file.path) == "source" or (file.is_added_file and is_scratch(file.path))
