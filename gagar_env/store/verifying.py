"""Whether a run is whole, and whether its numbers follow from what is recorded: `verify_run`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gagar_env.advantages import KeepReason, group_advantages, keep_reason, rank_weights, redistribute
from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.group_result import GroupResult
from gagar_env.store.files import file_name, read_lines
from gagar_env.store.folder import RunFolder
from gagar_env.store.records import GroupRecord, read_group
from gagar_env.store.summary import summarize

TOLERANCE: Final = 1e-9
"""How far a number may be from the one that is computed again; the sums by this, times the number of members."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong, or a harmless rest of a process that was killed.

    Attributes:
        text: What, on one line.
        harmless: Nothing that counts is touched by it.
    """

    text: str
    harmless: bool = False


def verify_run(run: RunFolder, *, on_line: Callable[[], None] | None = None) -> Iterator[Fault]:
    """Read all of a run and tell what is wrong with it, in the order of its groups.

    Every episode of a group is there, readable and the one that the group says; ids come once; advantages and weights
    are those that follow from outcomes and ranks, to `TOLERANCE`; the sum over the passing episodes is kept. Torn lines
    and files that belong to no group are told too: they are harmless rests of a killed process, but for lines that are
    torn while groups are missing.

    Args:
        run: The run.
        on_line: Called for each group, for a display of progress.

    Raises:
        GagarError: If a newer version of this package wrote it.
    """
    path = run.path / "groups.jsonl"
    groups: Counter[str] = Counter()
    members: Counter[str] = Counter()
    attempts: Counter[int] = Counter()
    torn: list[int] = []
    for number, line in read_lines(path, on_torn=torn.append):
        if on_line is not None:
            on_line()
        where = f"{path}: line {number}"
        record = read_group(line, where)
        if record is None:
            torn.append(number)
            continue
        result = record.result
        groups[result.group_id] += 1
        members.update(result.episode_ids)
        attempts.update(() if record.attempt is None else (record.attempt,))
        yield from _episodes(run, record, where)
        yield from (Fault(f"{where}: {fault}") for fault in _numbers(result))
    yield from _twice("group", groups)
    yield from _twice("episode", members)
    yield from _twice("number", attempts)
    complete = summarize(run).state == "complete"
    for number in torn:
        rest = ", and no group is missing for it" if complete else ""
        yield Fault(f"{path}: line {number} is torn or no group{rest}", harmless=complete)
    yield from _orphans(run.path / "episodes", {f"{file_name(name)}.json" for name in members})


def _twice(what: str, counts: Counter[str] | Counter[int]) -> Iterator[Fault]:
    for name, count in counts.items():
        if count > 1:
            yield Fault(f"{what} {name!r} is there {count} times")


def _orphans(folder: Path, known: set[str]) -> Iterator[Fault]:
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.endswith(".part"):
            yield Fault(f"{path}: the rest of a file that was not written whole", harmless=True)
        elif path.name not in known:
            yield Fault(f"{path}: belongs to no group, and does not count", harmless=True)


def _episodes(run: RunFolder, record: GroupRecord, where: str) -> Iterator[Fault]:
    result = record.result
    there = [run.has_episode(episode_id) for episode_id in result.episode_ids]
    if not any(there) and not record.task_digest and _is_of_another_environment(result):
        return  # its episodes are of another kind and are not kept
    for place, episode_id in enumerate(result.episode_ids):
        if not there[place]:
            yield Fault(f"{where}: episode {episode_id!r} is not there")
            continue
        try:
            episode = run.episode(episode_id)
        except (GagarError, OSError) as error:
            yield Fault(f"{where}: episode {episode_id!r} cannot be read: {' '.join(str(error).split())}")
            continue
        said = {
            "id": (episode_id, episode.id),
            "group": (result.group_id, episode.group_id),
            "task": (result.task_id, episode.task_id),
            "valid": (result.valid[place], episode.valid),
            "passed": (result.passed[place], episode.passed),
        }
        for name, (by_group, by_episode) in said.items():
            if by_group != by_episode:
                yield Fault(f"{where}: episode {episode_id!r} has {name} {by_episode!r}, its group says {by_group!r}")
        if fault := _turns(result, place, episode):
            yield Fault(f"{where}: episode {episode_id!r} has {fault}")


def _turns(result: GroupResult, place: int, episode: Episode) -> str:
    """What is wrong with the advantages of its turns: their mean, by tokens if those count, is the episode's own."""
    own = None if result.turn_advantages is None else result.turn_advantages[place]
    if own is None:
        return ""
    if len(own) != len(episode.turns):
        return f"{len(episode.turns)} turns, its group has advantages of {len(own)}"
    count = [1.0 if result.tokens is None else float(turn.completion_tokens) for turn in episode.turns]
    if not any(count):
        count = [1.0] * len(own)
    right = result.advantages[place]
    try:
        mean = math.fsum(n * a for n, a in zip(count, own, strict=True)) / math.fsum(count)
    except OverflowError:
        mean = math.inf
    return "" if abs(mean - right) <= TOLERANCE else f"advantages of turns of mean {mean!r}, and its own is {right!r}"


def _is_of_another_environment(result: GroupResult) -> bool:
    """Whether its advantages are of returns, which are not recorded, and not of outcomes."""
    kinds = (KeepReason.EQUAL_RETURNS, KeepReason.TOO_FEW_VALID)
    return result.reason in kinds or (result.verdict is not None and result.verdict.grader == "none")


def _numbers(result: GroupResult) -> Iterator[str]:
    if not _is_of_another_environment(result) or result.reason is KeepReason.TOO_FEW_VALID:
        reason = keep_reason(result.passed, result.valid)
        if reason is not result.reason or result.kept is not (reason is KeepReason.KEPT):
            yield f"group {result.group_id!r} says {result.reason.value}, its outcomes say {reason.value}"
        before = group_advantages(result.passed, None, valid=result.valid, base=result.base)
        yield from _differ("advantage before", result.advantages_before, before, result)
    confidence = 1.0 if result.verdict is None or not result.graded else result.verdict.confidence
    tiers = [-1 if rank is None else rank for rank in result.ranks]
    try:
        weights = rank_weights(
            tiers,
            None,
            scheme=result.scheme,
            strength=result.strength,
            confidence=confidence,
            passed=result.passed,
            valid=result.valid,
        )
        after = redistribute(
            result.advantages_before,
            result.weights,
            result.passed,
            None,
            valid=result.valid,
            preserve=result.preserve,
            tokens=result.tokens,
        )
    except ValueError as error:
        yield f"group {result.group_id!r}: its numbers cannot be computed again: {' '.join(str(error).split())}"
        return
    yield from _differ("weight", result.weights, weights, result)
    yield from _differ("advantage", result.advantages, after, result)
    scale = max(1.0, sum(result.tokens or ())) * len(result.passed)
    try:
        kept = abs(result.sum_before - result.sum_after) <= TOLERANCE * scale
    except OverflowError:
        yield f"group {result.group_id!r}: its sum is larger than any number"
        return
    if not kept:
        yield f"group {result.group_id!r}: the sum was {result.sum_before!r} and is {result.sum_after!r}"


def _differ(what: str, found: Sequence[float], right: Sequence[float], result: GroupResult) -> Iterator[str]:
    for episode_id, one, other in zip(result.episode_ids, found, map(float, right), strict=True):
        if not abs(one - other) <= TOLERANCE:  # NaN is no equal either
            yield f"episode {episode_id!r} has {what} {one!r}, and {other!r} follows from its group"
