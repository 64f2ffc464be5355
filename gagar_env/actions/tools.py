"""The `tools` format: the action is one tool call, written as a JSON object."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from gagar_env.actions.base import BadAction, RunCommand, Submit
from gagar_env.actions.files import Create, Edit, View

_FENCE = re.compile(r"^[ \t]*```[ \t]*(?:\w+[ \t]*)?\r?$", re.MULTILINE)
_MAX_LINE = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tool:
    make: Callable[..., object]
    what: str
    form: str
    """A call of it as an agent would write it."""
    arguments: Mapping[str, type]
    optional: frozenset[str] = frozenset()


_TOOLS: Mapping[str, _Tool] = {
    "bash": _Tool(
        make=RunCommand,
        what="Run a bash script in the work tree.",
        form='{"tool": "bash", "command": "ls -l"}',
        arguments={"command": str},
    ),
    "view": _Tool(
        make=View,
        what="Show a file with line numbers, or list a folder.",
        form='{"tool": "view", "path": "src/a.py", "start": 1, "end": 40}',
        arguments={"path": str, "start": int, "end": int},
        optional=frozenset({"start", "end"}),
    ),
    "edit": _Tool(
        make=Edit,
        what="Replace a text that occurs exactly once in a file.",
        form='{"tool": "edit", "path": "src/a.py", "old": "x = 1", "new": "x = 2"}',
        arguments={"path": str, "old": str, "new": str},
    ),
    "create": _Tool(
        make=Create,
        what="Write a new file.",
        form='{"tool": "create", "path": "src/b.py", "content": "x = 1\\n"}',
        arguments={"path": str, "content": str},
    ),
    "submit": _Tool(make=Submit, what="End the work: it is done.", form='{"tool": "submit"}', arguments={}),
}
_TYPE_NAMES = {str: "a string", int: "a whole number"}
_JSON_TYPES = {str: "string", int: "integer"}


class ToolsFormat:
    """`tools`: one JSON object that calls a tool, alone or in the only code fence of the text."""

    name = "tools"

    def instructions(self) -> str:
        """See `ActionFormat.instructions`."""
        forms = "\n".join(f"  {tool.form}" for tool in _TOOLS.values())
        return (
            f"Each of your answers is one JSON object that calls a tool:\n{forms}\n"
            "bash runs a script. view shows a file with line numbers, or lists a folder; start and end "
            "may be left out. edit replaces a text that occurs exactly once in the file. create "
            "writes a new file. submit ends the work."
        )

    def schemas(self) -> list[dict[str, Any]]:
        """The tools for a model that calls tools itself: name, description and JSON schema of the arguments."""
        return [
            {
                "name": name,
                "description": tool.what,
                "parameters": {
                    "type": "object",
                    "properties": {key: {"type": _JSON_TYPES[kind]} for key, kind in tool.arguments.items()},
                    "required": [key for key in tool.arguments if key not in tool.optional],
                    "additionalProperties": False,
                },
            }
            for name, tool in _TOOLS.items()
        ]

    def parse(self, text: str) -> object:
        """See `ActionFormat.parse`."""
        try:
            call = json.loads(_payload(text), object_pairs_hook=_no_repeats, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            problem = " ".join(str(error).split())[:200]
            return _bad(f"The action is not one JSON object: {problem}", "bash")
        if not isinstance(call, dict):
            return _bad("The action is JSON but not an object", "bash")
        arguments = dict(call)
        name = arguments.pop("tool", None)
        tool = _TOOLS.get(name) if isinstance(name, str) else None
        if tool is None or not isinstance(name, str):
            said = "no tool is named" if name is None else f"there is no tool {_short(name)}"
            return _bad(f"{said}; the tools are {', '.join(_TOOLS)}".capitalize(), "bash")
        if problem := _fault(tool, arguments):
            return _bad(f"{name}: {problem}", name)
        return tool.make(**arguments)

    def bash(self, command: str) -> str:
        """See `ActionFormat.bash`."""
        return json.dumps({"tool": "bash", "command": command})

    def submit(self) -> str:
        """See `ActionFormat.submit`."""
        return _TOOLS["submit"].form


def _payload(text: str) -> str:
    """The inside of the code fence, if there is exactly one; else the text."""
    fences = list(_FENCE.finditer(text))
    if len(fences) == 2 and not text.lstrip().startswith("{"):
        return text[fences[0].end() : fences[1].start()]
    return text


def _fault(tool: _Tool, arguments: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a call; empty when nothing is."""
    if missing := [n for n in tool.arguments if n not in arguments and n not in tool.optional]:
        return f"missing {', '.join(missing)}"
    if extra := [n for n in arguments if n not in tool.arguments]:
        return f"unknown argument {', '.join(map(_short, extra))}"
    for name, value in arguments.items():
        kind = tool.arguments[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            return f"{name} must be {_TYPE_NAMES[kind]}"
        if isinstance(value, int) and not 1 <= value <= _MAX_LINE:
            return f"{name} must be a line number, 1 or more"
        if isinstance(value, str) and name != "command" and _lone_surrogate(value):
            return f"{name} holds half of a surrogate pair, which is no character"
    if arguments.get("end", _MAX_LINE) < arguments.get("start", 1):
        return "end is before start"
    if "path" in arguments and (not arguments["path"].strip() or "\0" in arguments["path"]):
        return "path must name a file, without NUL"
    if arguments.get("old") == "":
        return "old must not be empty"
    return ""


def _lone_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _bad(problem: str, tool: str) -> BadAction:
    return BadAction(problem=f"{problem}. Write for example: {_TOOLS[tool].form}")
