"""Chat records in OpenAI's format, one episode a line: for supervised fine-tuning, and for learners that take rows.

    {"messages": [...], "tools": [...], "advantage": 0.4, ...}

A conversation ends with the agent's last answer: what came back after it, nobody read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gagar_env.actions import BadAction, ToolsFormat
from gagar_env.envs.observation import clean_text
from gagar_env.episode import Episode
from gagar_env.exports.records import Exported

_TOOLS = ToolsFormat()


def write_chat(episodes: Iterable[Exported], path: Path, *, system_prompt: str = "") -> int:
    """Write a JSONL file and return the number of lines."""
    total = 0
    with path.open("w", encoding="utf-8") as file:
        for item in episodes:
            file.write(json.dumps(chat_record(item, system_prompt), ensure_ascii=False, allow_nan=False) + "\n")
            total += 1
    return total


def chat_record(item: Exported, system_prompt: str = "") -> dict[str, Any]:
    """The line of one episode.

    `tools` is there for an episode whose actions were tool calls, then with native `tool_calls`; each answer that is no
    call stays text. `turn_advantages` has one number for each `assistant` message, where turns were told apart.
    """
    result, place, episode = item.result, item.position, item.episode
    native = _TOOLS.instructions() in episode.first_observation
    record: dict[str, Any] = {"messages": _messages(episode, native, system_prompt)}
    if native:
        record["tools"] = [{"type": "function", "function": schema} for schema in _TOOLS.schemas()]
    if item.turn_advantages is not None:
        record["turn_advantages"] = list(item.turn_advantages)
    return record | {
        "advantage": result.advantages[place],
        "advantage_before": result.advantages_before[place],
        "weight": result.weights[place],
        "rank": result.ranks[place],
        "mask": result.mask[place],
        "reward": episode.reward,
        "passed": result.passed[place],
        "status": episode.status.value,
        "task_id": clean_text(episode.task_id),
        "group_id": clean_text(result.group_id),
        "episode_id": clean_text(episode.id),
    }


def _messages(episode: Episode, native: bool, system_prompt: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if system_prompt:
        found.append({"role": "system", "content": system_prompt})
    found.append({"role": "user", "content": clean_text(episode.first_observation)})
    for number, turn in enumerate(episode.turns, 1):
        call = _call(turn.action, number) if native else None
        if call is None:
            found.append({"role": "assistant", "content": clean_text(turn.action)})
        else:
            found.append({"role": "assistant", "content": None, "tool_calls": [call]})
        if number < len(episode.turns):
            answer = {"role": "user"} if call is None else {"role": "tool", "tool_call_id": call["id"]}
            found.append({**answer, "content": clean_text(turn.observation)})
    return found


def _call(action: str, number: int) -> dict[str, Any] | None:
    """The tool call that an action is; None for a text that is none, or more than one."""
    if isinstance(_TOOLS.parse(action), BadAction):
        return None
    try:
        arguments = json.loads(action)
    except (ValueError, RecursionError):  # with words or a fence around it, which a call has no place for
        return None
    name = arguments.pop("tool")
    text = clean_text(json.dumps(arguments, ensure_ascii=False))
    return {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": text}}
