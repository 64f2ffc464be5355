"""Action formats: how the text that an agent wrote becomes a command, an edit or a submission.

Two formats are built in, `bash` and `tools`; `register_format` adds others. Whatever an action
does, it does inside of the sandbox, by `bash` and coreutils: images need no Python, and no link in
the work tree is ever followed on the host.
"""

from __future__ import annotations

from gagar_env.actions.base import ActionFormat, Answer, BadAction, RunCommand, SandboxAction, Submit
from gagar_env.actions.bash import BashFormat
from gagar_env.actions.files import Create, Edit, View
from gagar_env.actions.tools import ToolsFormat

__all__ = [
    "ActionFormat",
    "Answer",
    "BadAction",
    "BashFormat",
    "Create",
    "Edit",
    "RunCommand",
    "SandboxAction",
    "Submit",
    "ToolsFormat",
    "View",
    "format_names",
    "get_format",
    "register_format",
]

_FORMATS: dict[str, ActionFormat] = {}


def register_format(action_format: ActionFormat) -> None:
    """Make a format known by its name; replaces one of the same name."""
    _FORMATS[action_format.name] = action_format


def format_names() -> tuple[str, ...]:
    """The names that `get_format` knows."""
    return tuple(_FORMATS)


def get_format(name: str) -> ActionFormat:
    """The format of that name.

    Raises:
        ValueError: Naming the known formats, if there is none.
    """
    try:
        return _FORMATS[name]
    except KeyError:
        known = ", ".join(_FORMATS)
        raise ValueError(f"there is no action format {name!r}; known are: {known}") from None


register_format(BashFormat())
register_format(ToolsFormat())
