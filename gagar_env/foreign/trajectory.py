"""What every reader makes of a file, and the few rules that they share."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from gagar_env.envs.observation import clean_text
from gagar_env.episode import EpisodeStatus, Turn
from gagar_env.errors import GagarError
from gagar_env.tasks.fields import Blob

_BLOB: TypeAdapter[bytes] = TypeAdapter(Blob)
_SURROGATES = re.compile("[\ud800-\udfff]")
_SHELLS = ("bash", "execute_bash", "bash_command", "shell", "terminal", "run_shell_command")
_SCRIPTS = ("command", "cmd", "keystrokes", "script")
_DIFF = re.compile(r"^(diff --git |--- |Index: )", re.MULTILINE)


class TrajectoryError(GagarError, ValueError):
    """A file is no trajectory of a known kind, or it lacks what an episode needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One attempt of another harness.

    Attributes:
        harness: `mini-swe-agent`, `swe-agent` or `atif`.
        names: What the task may be called, the surest first.
        turns: Every answer of the model with what came back.
        first_observation: What the agent saw first, its system prompt left out.
        patch: Its work as a patch; None where the file holds none.
        status: How it ended.
        error: Which limit, or what failed; empty after a submission.
        policy: Harness and model.
    """

    harness: str
    names: tuple[str, ...]
    turns: tuple[Turn, ...]
    first_observation: str
    patch: bytes | None
    status: EpisodeStatus
    error: str
    policy: str


def mapping(value: object) -> Mapping[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Mapping[str, Any]]:
    """The objects of a list; nothing for anything else."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def said(value: object) -> str:
    """A text, or the texts of a list of content parts; what is no text is named in brackets."""
    if isinstance(value, str):
        return clean_text(value)
    if not isinstance(value, list):
        return ""
    parts = []
    for part in value:
        if isinstance(part, str):
            parts.append(clean_text(part))
        elif isinstance(part, Mapping):
            kind = part.get("type")
            text = part.get("text")
            parts.append(clean_text(text) if isinstance(text, str) else f"[{clean_text(str(kind))[:40]}]")
    return "\n".join(parts)


def count(value: object) -> int:
    """A number of tokens; 0 where there is none."""
    return value if type(value) is int and value >= 0 else 0


def seconds(value: object) -> float:
    """A duration, finite and not negative; 0 where there is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    number = float(value)
    return number if math.isfinite(number) and number > 0 else 0.0


def exit_code(value: object) -> int | None:
    """The exit code of a command, where one is recorded."""
    return value if type(value) is int and -(2**31) <= value < 2**31 else None


def action_text(text: str, calls: Iterable[tuple[str, object]]) -> str:
    """What the model wrote, with the calls that its text does not hold already.

    Args:
        text: The text of the answer.
        calls: Name and arguments of each tool call: an object, or text that should have been one.
    """
    parts = [text] if text.strip() else []
    for name, arguments in calls:
        made, script = _call_text(name, arguments)
        if script.strip() and script.strip() in text:
            continue
        parts.append(made)
    return "\n\n".join(parts)


def _call_text(name: str, arguments: object) -> tuple[str, str]:
    """How a call is shown, and what of it a text may hold already."""
    if isinstance(arguments, str):
        try:
            read = json.loads(arguments)
        except (ValueError, RecursionError):
            read = None
        if not isinstance(read, Mapping):
            return (f"```bash\n{clean_text(arguments)}\n```" if name in _SHELLS else clean_text(arguments)), clean_text(
                arguments
            )
        arguments = read
    given = mapping(arguments)
    if name in _SHELLS:
        for key in _SCRIPTS:
            if isinstance(script := given.get(key), str):
                return f"```bash\n{clean_text(script)}\n```", clean_text(script)
    shown = clean_text(
        json.dumps({"tool": name, **{str(k): v for k, v in given.items() if k != "tool"}}, ensure_ascii=False)
    )
    return shown, shown


def patch_of(value: object) -> bytes | None:
    """A patch out of a text; empty for no change, None where the text is no patch."""
    if not isinstance(value, str):
        return None
    if not value.strip():
        return b""
    if not _DIFF.search(value):
        return None
    text = value if value.endswith("\n") else value + "\n"
    return text.encode("utf-8", "surrogateescape") if _escapes(text) else clean_text(text).encode()


def _escapes(text: str) -> bool:
    """Whether its lone surrogates stand for bytes that are no text."""
    return all("\udc80" <= c <= "\udcff" for c in _SURROGATES.findall(text))


def blob(value: object) -> bytes | None:
    """Bytes as our records hold them, text or base64; None for anything else."""
    try:
        return _BLOB.validate_python(value)
    except ValidationError:
        return None


def policy_name(harness: str, model: object) -> str:
    """`harness:model`, or the harness alone."""
    return f"{harness}:{clean_text(model)}" if isinstance(model, str) and model else harness
