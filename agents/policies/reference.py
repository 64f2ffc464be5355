"""`ReferencePolicy`: what a task is worth when it is solved as its author did."""

from __future__ import annotations

from gagar_env.actions import ActionFormat
from gagar_env.agents.policies.script import ScriptActor, apply_command
from gagar_env.errors import TaskError
from gagar_env.tasks.task import Task


class ReferencePolicy:
    """Applies the task's reference patch in one action and submits."""

    name = "reference"

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> ScriptActor:
        """See `gagar_env.rollout.Policy`.

        Raises:
            TaskError: If the task has no reference patch.
        """
        command = apply_command(task.solution_patch)
        if not command:
            raise TaskError(f"task {task.id} has no reference patch to apply")
        return ScriptActor((actions.bash(command),), actions)
