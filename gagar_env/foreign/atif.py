"""Reads trajectories in ATIF (the Agent Trajectory Interchange Format), versions 1.0 to 1.8, of any agent.

ATIF has no place for the work itself. It is taken from `extra` (`patch`, `model_patch`, `submission`, or our own
record under `gagar`), of the file or of its final metrics; else a patch file beside it is looked for, see `read`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gagar_env.envs.observation import clean_text
from gagar_env.episode import Episode, EpisodeStatus, Turn
from gagar_env.foreign.trajectory import (
    Trajectory,
    TrajectoryError,
    action_text,
    count,
    exit_code,
    items,
    mapping,
    patch_of,
    policy_name,
    said,
)
from gagar_env.store.exact import read_exact

NAME: Final = "atif"
_PATCHES = ("patch", "model_patch", "submission")
_NAMES = ("instance_id", "task_id", "task", "task_name")


def is_atif(data: Mapping[str, Any]) -> bool:
    """Whether a file says that it is in ATIF."""
    return str(data.get("schema_version", "")).startswith("ATIF-v1")


def read_atif(data: Mapping[str, Any]) -> Trajectory:
    """The trajectory in a file.

    Raises:
        TrajectoryError: If it is one of ours that was cut, or whose infrastructure failed.
    """
    if (ours := _ours(mapping(data.get("extra")))) is not None:
        return _of_ours(ours)
    extras = list(_extras(data))
    agent = mapping(data.get("agent"))
    first, turns = _turns(items(data.get("steps")))
    patches = [patch_of(extra[key]) for extra in extras for key in _PATCHES if key in extra]
    names = [extra.get(key) for extra in extras for key in _NAMES]
    return Trajectory(
        harness=NAME,
        names=tuple(dict.fromkeys(clean_text(name) for name in names if isinstance(name, str) and name)),
        turns=turns,
        first_observation=first,
        patch=next((found for found in patches if found is not None), None),
        status=EpisodeStatus.SUBMITTED,  # ATIF does not say how it ended
        error="",
        policy=policy_name(clean_text(str(agent.get("name") or NAME)), agent.get("model_name")),
    )


def _extras(data: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield mapping(data.get("extra"))
    yield mapping(mapping(data.get("final_metrics")).get("extra"))
    yield mapping(mapping(data.get("agent")).get("extra"))


def _ours(extra: Mapping[str, Any]) -> Episode | None:
    """The whole record that this package keeps with its own, see `gagar_env.store.atif`."""
    try:
        exact = extra.get("gagar_exact")
        return Episode.model_validate(read_exact(exact) if exact else extra.get("gagar"))
    except (ValueError, TypeError, RecursionError):
        return None


def _of_ours(episode: Episode) -> Trajectory:
    if episode.status in (EpisodeStatus.ERROR, EpisodeStatus.CUT):
        raise TrajectoryError(f"it ended with {episode.status.value}: there is no work to judge")
    return Trajectory(
        harness=NAME,
        names=(episode.task_id,),
        turns=episode.turns,
        first_observation=episode.first_observation,
        patch=episode.patch,
        status=episode.status,
        error=episode.error,
        policy=episode.policy,
    )


@dataclass(slots=True)
class _Open:
    step: Mapping[str, Any]
    read: list[str] = field(default_factory=list)
    code: int | None = None

    def turn(self) -> Turn:
        metrics = mapping(self.step.get("metrics"))
        calls = [
            (clean_text(str(call.get("function_name", ""))), call.get("arguments"))
            for call in items(self.step.get("tool_calls"))
        ]
        return Turn(
            action=action_text(said(self.step.get("message")), calls),
            observation="\n".join(self.read),
            exit_code=exit_code(mapping(self.step.get("extra")).get("exit_code")) if self.code is None else self.code,
            prompt_tokens=count(metrics.get("prompt_tokens")),
            completion_tokens=count(metrics.get("completion_tokens")),
        )


def _turns(steps: list[Mapping[str, Any]]) -> tuple[str, tuple[Turn, ...]]:
    first: list[str] = []
    found: list[_Open] = []
    for step in steps:
        if step.get("is_copied_context"):
            continue
        source, results = step.get("source"), items(mapping(step.get("observation")).get("results"))
        if source == "agent":
            found.append(_Open(step))
        elif text := said(step.get("message")) if source == "user" or found else "":
            (found[-1].read if found else first).append(text)
        for result in results:
            text = said(result.get("content"))
            (found[-1].read if found else first).append(text)
            if found and (code := exit_code(mapping(result.get("extra")).get("exit_code"))) is not None:
                found[-1].code = code
    return "\n".join(first), tuple(turn.turn() for turn in found)
