"""From the episodes of one group to their advantages: keep or drop, grade, redistribute.

Works on recorded episodes of any engine. Tests alone decide who passed. A grader can only move
credit between those that passed; whatever goes wrong with it, the group keeps its plain advantages
and the record says why.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from gagar_env.advantages import KeepReason, group_advantages, keep_reason, rank_weights, redistribute
from gagar_env.episode import Episode
from gagar_env.errors import GagarError, GradingError
from gagar_env.grading import Grader, Verdict, VerdictOutcome, check_grader, check_turn_marks, check_verdict
from gagar_env.group_result import BaseName, PreserveName, SchemeName
from gagar_env.group_result import GroupResult as GroupResult
from gagar_env.tasks.task import Task
from gagar_env.turn_credit import TurnMark, share_out
from gagar_env.workspace import Workspace

logger = logging.getLogger(__name__)


class TokensError(GagarError, ValueError):
    """The sum over tokens is to stay, and nobody counted those of an episode that passed."""


def grade_group(
    episodes: Sequence[Episode],
    grader: Grader | None,
    *,
    task: Task | None = None,
    base: BaseName = "grpo",
    scheme: SchemeName = "linear",
    strength: float = 0.5,
    preserve: PreserveName = "episode",
    tokens: Sequence[float | None] | None = None,
    turn_strength: float = 0.5,
    seed: int = 0,
    workspace_root: Path | None = None,
    deadline_s: float | None = None,
) -> GroupResult:
    """Turn the episodes of one group into advantages.

    Invalid episodes are left out first. A group without a learning signal is returned with its
    reason, not graded. Passing patches that are equal are one candidate for the grader (the shortest
    of these episodes stands for all) and share its rank. A grader that raises, is late or does not
    name an exact partition costs the group its ranking and nothing else.

    Args:
        episodes: All of one group and one task.
        grader: Ranks the passing candidates; None leaves the plain advantages. No base tree is needed then.
        task: By default the registered one of the episodes' `task_id`.
        base: How advantages are made from test results, see `group_advantages`.
        scheme: How ranks become weights, see `rank_weights`.
        strength: In [0, 1); 0 leaves the plain advantages.
        preserve: Which sum stays: over episodes, or over tokens.
        tokens: Trained tokens of each episode, for `preserve="token"`; by default the completion
            tokens of its turns. Those of an invalid episode do not count, and may be None.
        turn_strength: In [0, 1); how far marks of turns move an episode's advantage between its own turns.
        seed: For the labels.
        workspace_root: Where the workspace is made, and kept; by default it is temporary.
        deadline_s: Seconds for the grader; None sets no limit. What comes later is thrown away.

    Raises:
        TypeError: If they are no episodes, or `grader` is no grader.
        ValueError: If the episodes are not one group, or a setting is out of range; `TokensError` for missing tokens.
        TaskError: If the task is unknown, or its base tree cannot be made.
        EnvironmentBuildError: If this machine cannot make it.
    """
    check_grader(grader)
    members = tuple(episodes)
    _check_group(members, task)
    ids = tuple(episode.id for episode in members)
    valid = tuple(episode.valid for episode in members)
    passed = tuple(episode.passed for episode in members)
    if preserve == "token" and tokens is None:
        tokens = [float(sum(turn.completion_tokens for turn in episode.turns)) for episode in members]
        if bare := [e.id for e, n in zip(members, tokens, strict=True) if e.passed and not n]:
            raise TokensError(f"preserve='token' needs `tokens`: episode {bare[0]!r} has no completion tokens recorded")
    count = None if preserve == "episode" or tokens is None else _counts(tokens, members)
    before = group_advantages(passed, None, valid=valid, base=base)
    unranked: tuple[int | None, ...] = (None,) * len(members)

    def spread(ranks: Sequence[int | None], confidence: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
        tiers = [-1 if rank is None else rank for rank in ranks]
        weights = rank_weights(
            tiers, None, scheme=scheme, strength=strength, confidence=confidence, passed=passed, valid=valid
        )
        after = redistribute(before, weights, passed, None, valid=valid, preserve=preserve, tokens=count)
        return tuple(map(float, weights)), tuple(map(float, after))

    weights, after = spread(unranked, 1.0)  # also finds settings out of range, before anything costs
    reason = keep_reason(passed, valid)
    result = GroupResult(
        group_id=members[0].group_id,
        task_id=members[0].task_id,
        kept=reason is KeepReason.KEPT,
        reason=reason,
        episode_ids=ids,
        labels=(None,) * len(members),
        passed=passed,
        valid=valid,
        ranks=unranked,
        weights=weights,
        advantages_before=tuple(map(float, before)),
        advantages=after,
        base=base,
        scheme=scheme,
        strength=strength,
        preserve=preserve,
        tokens=count,
        turn_strength=turn_strength,
        seed=seed,
    )
    share_out((), (), strength=turn_strength)
    if grader is None or not result.kept:
        return result
    started = time.monotonic()
    standing = _representatives(members)
    if len(set(standing.values())) < 2:
        verdict = Verdict(grader=_name(grader), outcome=VerdictOutcome.SKIPPED)
        return result.model_copy(update={"verdict": verdict, "seconds": time.monotonic() - started})
    ready, tree = _base_of(members[0].task_id, task)
    chosen = [e for e in members if e.valid and standing.get(e.id, e.id) == e.id]
    labels: dict[str, str] = {}
    update: dict[str, object] = {}
    try:
        root = None if workspace_root is None else _new_folder(workspace_root, result.group_id)
        with Workspace.create(ready, tree, chosen, seed=seed, root=root) as workspace:
            labels = {episode_id: label for label, episode_id in workspace.episode_ids.items()}
            verdict = _ask(grader, workspace, deadline_s)
        ranks = tuple(verdict.rank(labels[standing[e.id]]) if e.passed else None for e in members)
        weights, after = spread(ranks, verdict.confidence)
        update = {"ranks": ranks, "weights": weights, "advantages": after, "graded": True}
        if verdict.turn_marks:
            marks = [_marks(verdict, labels.get(e.id, ""), len(e.turns)) for e in members]
            update["turn_advantages"] = share_out(
                after,
                marks,
                strength=turn_strength,
                preserve="turn" if count is None else "token",
                tokens=None if count is None else [_by_turn(e, n) for e, n in zip(members, count, strict=True)],
            )
    except Exception as error:
        said = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
        fault = " ".join(said.split())
        logger.warning("group %s keeps its plain advantages: %s", result.group_id, fault)
        verdict = error.verdict if isinstance(error, _Refused) else _failed(grader, fault)
        update = {"fallback": verdict.error or fault}
    update["labels"] = tuple(labels.get(standing.get(e.id, e.id)) for e in members)
    return result.model_copy(update={**update, "verdict": verdict, "seconds": time.monotonic() - started})


class _Refused(GradingError):
    """The grader itself says that it has no ranking."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.error or f"outcome {verdict.outcome.value}")
        self.verdict = verdict


def _counts(tokens: Sequence[float | None], members: Sequence[Episode]) -> tuple[float, ...]:
    if len(tokens) != len(members):
        raise ValueError(f"tokens must have one entry for each of {len(members)} episodes, got {len(tokens)}")
    if bare := [e.id for e, n in zip(members, tokens, strict=True) if e.valid and n is None]:
        raise ValueError(f"tokens of episode {bare[0]!r} must be a number, got None")
    return tuple(float(n) if e.valid and n is not None else 0.0 for e, n in zip(members, tokens, strict=True))


def _check_group(members: tuple[Episode, ...], task: Task | None) -> None:
    if not members:
        raise ValueError("a group needs at least one episode, got none")
    if strange := [type(member).__name__ for member in members if not isinstance(member, Episode)]:
        raise TypeError(f"a group is a sequence of Episode records, got {strange[0]}")
    for name in ("group_id", "task_id"):
        found = sorted({str(getattr(episode, name)) for episode in members})
        if len(found) > 1:
            raise ValueError(f"the episodes are not of one group: they have {name} {', '.join(map(repr, found))}")
    ids = [episode.id for episode in members]
    if twice := sorted({i for i in ids if ids.count(i) > 1}):
        raise ValueError(f"an episode is in its group twice: id {', '.join(map(repr, twice))}")
    if task is not None and task.id != members[0].task_id:
        raise ValueError(f"the episodes are of task {members[0].task_id!r}, not of {task.id!r}")


def _normal(patch: bytes) -> bytes:
    """A patch without the ids of its blobs, which depend on who made it."""
    if b"\nBinary files " in patch:  # then the ids are all there is
        return patch
    return b"\n".join(line for line in patch.rstrip(b"\n").split(b"\n") if not line.startswith(b"index "))


def _representatives(members: tuple[Episode, ...]) -> dict[str, str]:
    """Id of each passing episode -> id of the one that stands for all with its patch."""
    copies: dict[bytes, list[Episode]] = {}
    for episode in members:
        if episode.passed:
            copies.setdefault(_normal(episode.patch), []).append(episode)
    return {
        episode.id: min(same, key=lambda e: len(e.turns)).id  # the first of them, when there are several
        for same in copies.values()
        for episode in same
    }


def _base_of(task_id: str, task: Task | None) -> tuple[Task, Path]:
    # Late: what only computes advantages needs neither tasks nor base trees.
    from gagar_env.provision import provision_base
    from gagar_env.tasks.registry import load_task

    ready = load_task(task_id) if task is None else task
    return ready, provision_base(ready).tree


def _new_folder(root: Path, group_id: str) -> Path:
    """A folder that does not exist yet, named after the group as far as a file name can be."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in group_id)[:80]
    root.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        folder = root / (f"group-{kept}" if number == 1 else f"group-{kept}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


def _ask(grader: Grader, workspace: Workspace, deadline_s: float | None) -> Verdict:
    """The checked verdict; raises whatever is wrong with it."""
    verdict: object = _within(grader, workspace, deadline_s)
    if not isinstance(verdict, Verdict):
        raise GradingError(f"grader {_name(grader)!r} returned {type(verdict).__name__}, not a Verdict")
    try:
        Verdict.model_validate_json(verdict.model_dump_json())
    except ValueError as error:
        raise GradingError(f"the verdict of {_name(grader)!r} cannot be recorded as JSON: {error}") from error
    if verdict.outcome in (VerdictOutcome.FAILED, VerdictOutcome.SKIPPED):
        raise _Refused(verdict)
    check_turn_marks(verdict, {label: len(c.turns) for label, c in workspace.candidates.items()})
    return check_verdict(verdict, workspace.passing)


def _marks(verdict: Verdict, label: str, turns: int) -> list[TurnMark | None] | None:
    """A mark or None for each turn; None where no turn is marked."""
    marks = verdict.turn_marks.get(label)
    return [marks.get(number) for number in range(1, turns + 1)] if marks else None


def _by_turn(episode: Episode, tokens: float) -> list[float]:
    """An episode's trained tokens, over its turns as these have completion tokens; evenly where none are recorded."""
    counts = [float(turn.completion_tokens) for turn in episode.turns]
    if not any(counts):
        counts = [1.0] * len(counts)
    whole = math.fsum(counts)
    return [tokens * (count / whole) for count in counts]


def _within(grader: Grader, workspace: Workspace, deadline_s: float | None) -> object:
    if deadline_s is None:
        return grader.grade(workspace)
    answer: list[object] = []
    fault: list[BaseException] = []
    over = threading.Event()

    def work() -> None:
        try:
            answer.append(grader.grade(workspace))
        except BaseException as error:  # an interrupt in there is handed on as well
            fault.append(error)
        over.set()

    threading.Thread(target=work, name="gagar-grader", daemon=True).start()
    try:
        if not over.wait(min(deadline_s, threading.TIMEOUT_MAX)):
            raise TimeoutError(f"grader {_name(grader)!r} gave no verdict in {deadline_s:g} seconds")
    except BaseException:  # an interrupt as well
        cancel = getattr(grader, "cancel", None)
        if callable(cancel):
            cancel(workspace)
        raise
    if fault:
        raise fault[0]
    return answer[0]


def _name(grader: Grader) -> str:
    return str(getattr(grader, "name", type(grader).__name__))


def _failed(grader: Grader, error: str) -> Verdict:
    return Verdict(grader=_name(grader), outcome=VerdictOutcome.FAILED, error=error)
