"""SWE-agent's `.traj` files, one for each episode, in the folders that SWE-agent itself would make.

    <out>/attempt-001/<id>/<id>.traj      the first episode of each task
    <out>/attempt-002/<id>/<id>.traj      the second

Ours (advantages, ranks, a patch that is no text) is under `gagar`, which readers of the format pass over.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gagar_env.actions import RunCommand, Submit, ToolsFormat, get_format
from gagar_env.envs.observation import clean_text
from gagar_env.episode import Episode, EpisodeStatus, Turn
from gagar_env.exports.records import Exported, patch_text

_LONGEST: Final = 200
_FENCE = re.compile(r"```(?:bash|sh)[ \t]*\r?\n.*?(?:^```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_ENDED: Final = {
    EpisodeStatus.TURN_LIMIT: "exit_cost",
    EpisodeStatus.TIME_LIMIT: "exit_total_execution_time",
    EpisodeStatus.POLICY_LIMIT: "exit_context",
    EpisodeStatus.CUT: "early_exit",
    EpisodeStatus.ERROR: "exit_error",
}


def write_traj(episodes: Iterable[Exported], folder: Path) -> int:
    """Write the files and return how many there are."""
    seen: Counter[str] = Counter()
    total = 0
    for item in episodes:
        name = file_name(item.instance_id)
        seen[name] += 1
        place = folder / f"attempt-{seen[name]:03d}" / name
        place.mkdir(parents=True)
        text = json.dumps(traj_record(item), ensure_ascii=False, allow_nan=False, indent=1)
        (place / f"{name}.traj").write_text(text + "\n", encoding="utf-8")
        total += 1
    return total


def file_name(instance_id: str) -> str:
    """An id as a file name; that of SWE-bench's ids, and of any without odd characters, is the id itself."""
    name = quote(clean_text(instance_id), safe=" +@,=")
    if not name.strip("."):  # the folder itself, or the one above
        return name.replace(".", "%2E") or "%"
    if len(name) <= _LONGEST:
        return name
    return f"{name[:120]}+{hashlib.sha256(name.encode()).hexdigest()}"


def traj_record(item: Exported) -> dict[str, Any]:
    """The content of one file."""
    result, place, episode = item.result, item.position, item.episode
    text = patch_text(episode.patch)
    sent, received = (sum(getattr(t, f"{kind}_tokens") for t in episode.turns) for kind in ("prompt", "completion"))
    ours: dict[str, Any] = {
        "task_id": clean_text(episode.task_id),
        "group_id": clean_text(result.group_id),
        "episode_id": clean_text(episode.id),
        "policy": clean_text(episode.policy),
        "passed": result.passed[place],
        "reward": episode.reward,
        "mask": result.mask[place],
        "rank": result.ranks[place],
        "weight": result.weights[place],
        "advantage_before": result.advantages_before[place],
        "advantage": result.advantages[place],
    }
    if text is None:
        ours["patch"] = episode.model_dump(mode="json", include={"patch"})["patch"]
    tools = ToolsFormat().instructions() in episode.first_observation
    return {
        "trajectory": [_step(turn, tools) for turn in episode.turns],
        "history": _history(episode),
        "info": {
            "exit_status": _exit_status(episode),
            "submission": text,
            "model_stats": {
                "instance_cost": 0.0,
                "tokens_sent": sent,
                "tokens_received": received,
                "api_calls": len(episode.turns),
            },
        },
        "environment": clean_text(episode.image or episode.sandbox),
        "replay_config": None,
        "gagar": ours,
    }


def _exit_status(episode: Episode) -> str:
    if (reason := _ENDED.get(episode.status)) is None:
        return "submitted"
    return f"submitted ({reason})" if episode.patch and episode.status is not EpisodeStatus.ERROR else reason


def _step(turn: Turn, tools: bool) -> dict[str, Any]:
    action = get_format("tools" if tools else "bash").parse(turn.action)
    command = action.command if isinstance(action, RunCommand) else "submit" if isinstance(action, Submit) else ""
    if tools and not command:
        command = turn.action
    thought = "" if tools else _FENCE.sub("", turn.action).strip() if "```" in turn.action else ""
    return {
        "action": clean_text(command),
        "observation": clean_text(turn.observation),
        "response": clean_text(turn.action),
        "thought": clean_text(thought),
        "execution_time": turn.seconds if math.isfinite(turn.seconds) else 0.0,
        "state": {},
        "query": [],
        "extra_info": {} if turn.exit_code is None else {"exit_code": turn.exit_code},
    }


def _history(episode: Episode) -> list[dict[str, Any]]:
    found = [_said("user", "observation", episode.first_observation)]
    for number, turn in enumerate(episode.turns, 1):
        found.append(_said("assistant", "action", turn.action))
        if number < len(episode.turns):
            found.append(_said("user", "observation", turn.observation))
    return found


def _said(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": clean_text(text), "message_type": kind, "agent": "main"}
