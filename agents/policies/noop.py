"""`NoopPolicy`: what a task is worth when nothing is done."""

from __future__ import annotations

from gagar_env.actions import ActionFormat
from gagar_env.agents.policies.script import ScriptActor
from gagar_env.tasks.task import Task


class NoopPolicy:
    """Submits at once."""

    name = "noop"

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> ScriptActor:
        """See `gagar_env.rollout.Policy`."""
        return ScriptActor((), actions)
