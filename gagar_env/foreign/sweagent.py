"""Reads `.traj` files of SWE-agent, and of this package's own export."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from gagar_env.envs.observation import clean_text
from gagar_env.episode import EpisodeStatus, Turn
from gagar_env.foreign.trajectory import (
    Trajectory,
    TrajectoryError,
    action_text,
    blob,
    items,
    mapping,
    patch_of,
    policy_name,
    said,
    seconds,
)

NAME: Final = "swe-agent"
_LIMITS = {
    "exit_cost": EpisodeStatus.TURN_LIMIT,
    "exit_context": EpisodeStatus.POLICY_LIMIT,
    "exit_format": EpisodeStatus.POLICY_LIMIT,
    "exit_forfeit": EpisodeStatus.POLICY_LIMIT,
    "exit_command_timeout": EpisodeStatus.TIME_LIMIT,
    "exit_total_execution_time": EpisodeStatus.TIME_LIMIT,
}

_CRASHED = ("exit_error", "exit_environment_error", "exit_api", "early_exit")
"""The harness, its sandbox or the model's server failed, or somebody ended it: no fault of the agent."""


def is_swe_agent(data: Mapping[str, Any]) -> bool:
    """Whether a file has the shape of SWE-agent's."""
    return isinstance(data.get("trajectory"), list) and isinstance(data.get("info"), Mapping)


def read_swe_agent(data: Mapping[str, Any]) -> Trajectory:
    """The trajectory in a file.

    Raises:
        TrajectoryError: If the attempt did not end, or its infrastructure failed.
    """
    info, ours = mapping(data.get("info")), mapping(data.get("gagar"))
    ended = info.get("exit_status")
    reason = clean_text(ended) if isinstance(ended, str) else ""
    patch = patch_of(info.get("submission")) if info.get("submission") is not None else None
    if "patch" in ours:  # one that is no text
        patch = blob(ours["patch"])
    status = _status(reason)
    if status is None:
        what = f"it ended with {reason[:60]}" if reason else "it has not ended"
        raise TrajectoryError(f"{what}: there is no work to judge")
    limited = status is not EpisodeStatus.SUBMITTED
    if patch is None and limited:
        patch = b""  # it reached a limit before anything was submitted
    steps = items(data.get("trajectory"))
    model = ours.get("policy") or _replay(data, "agent", "model", "name")
    return Trajectory(
        harness=NAME,
        names=_names(data, ours),
        turns=tuple(_turn(step) for step in steps if said(step.get("response")) or said(step.get("action"))),
        first_observation=_first(data, steps),
        patch=patch,
        status=status,
        error=reason if limited else "",
        policy=policy_name(NAME, model),
    )


def _status(reason: str) -> EpisodeStatus | None:
    """`submitted`, `exit_cost`, or both: `submitted (exit_cost)`, where a limit submitted what was there."""
    if reason == "submitted":
        return EpisodeStatus.SUBMITTED
    inner = reason.removeprefix("submitted (").removesuffix(")") if reason.startswith("submitted (") else reason
    if inner in _CRASHED:  # what was there was submitted all the same
        return None
    found = _LIMITS.get(inner)
    return EpisodeStatus.POLICY_LIMIT if found is None and inner != reason else found


def _turn(step: Mapping[str, Any]) -> Turn:
    response, action = said(step.get("response")), said(step.get("action"))
    text = response or said(step.get("thought"))
    lasted = step.get("execution_time")
    return Turn(
        action=action_text(text, [("bash", {"command": action.strip()})] if action.strip() else []),
        observation=said(step.get("observation")),
        seconds=seconds(lasted),
    )


def _first(data: Mapping[str, Any], steps: list[Mapping[str, Any]]) -> str:
    """What the user said before the agent's first answer, demonstrations left out."""
    history = items(data.get("history")) or (items(steps[0].get("query")) if steps else [])
    texts = []
    for message in history:
        if message.get("is_demo"):
            continue
        if message.get("role") == "assistant":
            break
        if message.get("role") == "user":
            texts.append(said(message.get("content")))
    return "\n".join(texts)


def _names(data: Mapping[str, Any], ours: Mapping[str, Any]) -> tuple[str, ...]:
    named = (ours.get("task_id"), _replay(data, "problem_statement", "id"))
    return tuple(clean_text(name) for name in named if isinstance(name, str) and name)


def _replay(data: Mapping[str, Any], *keys: str) -> object:
    """A value of the configuration that the file keeps as text."""
    kept = data.get("replay_config")
    if isinstance(kept, str):
        try:
            kept = json.loads(kept)
        except (ValueError, RecursionError):
            return None
    value: object = kept
    for key in keys:
        value = mapping(value).get(key)
    return value
