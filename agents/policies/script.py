"""Actors that act by a list."""

from __future__ import annotations

from collections.abc import Iterable

from gagar_env.actions import ActionFormat
from gagar_env.actions.applying import apply_command as apply_command


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
