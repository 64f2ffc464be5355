"""Reads `.traj.json` files of mini-swe-agent: texts, tool calls, and items of OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gagar_env.envs.observation import clean_text
from gagar_env.episode import EpisodeStatus, Turn
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
    seconds,
)

NAME: Final = "mini-swe-agent"
_STATUS = {
    "Submitted": EpisodeStatus.SUBMITTED,
    "LimitsExceeded": EpisodeStatus.TURN_LIMIT,
    "TimeExceeded": EpisodeStatus.TIME_LIMIT,
    "RepeatedFormatError": EpisodeStatus.POLICY_LIMIT,
    "ContextWindowExceededError": EpisodeStatus.POLICY_LIMIT,
}


def is_mini(data: Mapping[str, Any]) -> bool:
    """Whether a file says that it is of mini-swe-agent."""
    return str(data.get("trajectory_format", "")).startswith("mini-swe-agent")


def read_mini(data: Mapping[str, Any]) -> Trajectory:
    """The trajectory in a file.

    Raises:
        TrajectoryError: If the attempt did not end, or its infrastructure failed.
    """
    info = mapping(data.get("info"))
    ended = info.get("exit_status")
    patch = patch_of(info.get("submission"))
    status = _STATUS.get(ended) if isinstance(ended, str) else None
    if status is None:
        what = f"it ended with {clean_text(ended)[:60]}" if isinstance(ended, str) and ended else "it has not ended"
        raise TrajectoryError(f"{what}: there is no work to judge")
    if patch is None and status is not EpisodeStatus.SUBMITTED:
        patch = b""  # it reached a limit before anything was submitted
    first, turns = _turns(data.get("messages"))
    config = mapping(info.get("config"))
    named = data.get("instance_id")
    return Trajectory(
        harness=NAME,
        names=(clean_text(named),) if isinstance(named, str) and named else (),
        turns=turns,
        first_observation=first,
        patch=patch,
        status=status,
        error="" if status is EpisodeStatus.SUBMITTED else str(ended),
        policy=policy_name(NAME, mapping(config.get("model")).get("model_name")),
    )


@dataclass(slots=True)
class _Open:
    """A turn that is being read."""

    action: str
    tokens: tuple[int, int]
    since: float
    read: list[str] = field(default_factory=list)
    code: int | None = None
    until: float = 0.0

    def turn(self) -> Turn:
        lasted = self.until - self.since if self.since and self.until else 0.0
        prompt, completion = self.tokens
        return Turn(
            action=self.action,
            observation="\n".join(self.read),
            exit_code=self.code,
            seconds=seconds(lasted),
            prompt_tokens=prompt,
            completion_tokens=completion,
        )


def _turns(messages: object) -> tuple[str, tuple[Turn, ...]]:
    first: list[str] = []
    found: list[_Open] = []
    for message in items(messages):
        role, extra = message.get("role"), mapping(message.get("extra"))
        if role == "exit":
            break
        if role == "system":
            continue
        if role == "assistant" or message.get("object") == "response":
            found.append(_Open(_action(message), _tokens(message), seconds(extra.get("timestamp"))))
            continue
        text = said(message.get("content", message.get("output")))
        if not found:
            first.append(text)
            continue
        last = found[-1]
        last.read.append(text)
        last.until = seconds(extra.get("timestamp"))
        last.code = exit_code(extra.get("returncode")) if "returncode" in extra else last.code
    return "\n".join(first), tuple(turn.turn() for turn in found)


def _action(message: Mapping[str, Any]) -> str:
    texts = [said(message.get("content"))]
    texts += [said(item.get("content")) for item in items(message.get("output")) if item.get("type") == "message"]
    return action_text("\n".join(text for text in texts if text), _calls(message))


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """What the model called; the commands as they were read where they are recorded."""
    actions = items(mapping(message.get("extra")).get("actions"))
    if actions:
        for action in actions:
            yield "bash", action
        return
    for call in items(message.get("tool_calls")):
        function = mapping(call.get("function"))
        yield clean_text(str(function.get("name", ""))), function.get("arguments")
    for item in items(message.get("output")):
        if item.get("type") == "function_call":
            yield clean_text(str(item.get("name", ""))), item.get("arguments")


def _tokens(message: Mapping[str, Any]) -> tuple[int, int]:
    response = mapping(mapping(message.get("extra")).get("response"))
    usage = mapping(response.get("usage")) or mapping(message.get("usage"))
    return (
        count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        count(usage.get("completion_tokens", usage.get("output_tokens"))),
    )
