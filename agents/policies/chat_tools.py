"""Tools as a model calls them itself, and the action that a call stands for."""

from __future__ import annotations

import json
from typing import Any

from gagar_env.actions import ActionFormat
from gagar_env.agents.policies.chat_client import Call
from gagar_env.agents.policies.chat_history import Message

_SCRIPT = {
    "name": "bash",
    "description": "Run a bash script in the work tree.",
    "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
_SUBMIT = {
    "name": "submit",
    "description": "End the work: it is done.",
    "parameters": {"type": "object", "properties": {}},
}


def tools_of(actions: ActionFormat) -> list[dict[str, Any]]:
    """The tools of a format: its own if it has `schemas()`, as `tools` does, else `bash` and `submit`."""
    schemas = getattr(actions, "schemas", None)
    found = [_SCRIPT, _SUBMIT] if schemas is None else schemas()
    return [{"type": "function", "function": tool} for tool in found]


def action_of(call: Call, actions: ActionFormat) -> str:
    """The text of the action that a call stands for. A call that is none becomes a text that is no action."""
    arguments = _arguments(call)
    if hasattr(actions, "schemas"):
        if arguments is None:
            return call.arguments
        return json.dumps({"tool": call.name, **{key: arguments[key] for key in arguments if key != "tool"}})
    if arguments is not None and call.name == "submit":
        return actions.submit()
    command = (arguments or {}).get("command")
    return actions.bash(command) if call.name == "bash" and isinstance(command, str) else ""


def call_message(text: str, calls: tuple[Call, ...]) -> Message:
    """What the model wrote, for the history. Arguments that are no JSON are left out: servers read them again."""
    made = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": "{}" if _arguments(call) is None else call.arguments or "{}"},
        }
        for call in calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": made}


def _arguments(call: Call) -> dict[str, Any] | None:
    """The arguments; None when they are no JSON object."""
    try:
        found = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
