"""Actors that act by a list, and the command that applies a patch from inside of a sandbox."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from gagar_env.actions import ActionFormat


class ScriptActor:
    """Does the given actions in order, whatever it reads, and submits when there are no more.

    Args:
        script: Texts of actions.
        actions: Says how to submit.
    """

    def __init__(self, script: Iterable[str], actions: ActionFormat) -> None:
        self._script = iter(tuple(script))
        self._submit = actions.submit()

    def act(self, observation: str) -> str:
        """The next action."""
        return next(self._script, self._submit)


def apply_command(patch: bytes) -> str:
    """A shell command that applies `patch` to the work tree; empty for an empty patch.

    A patch that is text stands in it as it is, any other as base64.
    """
    if not patch.strip():
        return ""
    patch = patch if patch.endswith(b"\n") else patch + b"\n"
    apply = "git apply --whitespace=nowarn"
    try:
        text = patch.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if any(ord(c) < 32 and c not in "\t\n" for c in text):
        return f"base64 -d <<'END' | {apply}\n{base64.encodebytes(patch).decode('ascii')}END"
    end, lines = "END_OF_PATCH", set(text.split("\n"))
    while end in lines:
        end += "_"
    return f"{apply} <<'{end}'\n{text}{end}"
