"""Tasks: the record, the registry, loaders for formats of the field, and the built-in ones."""

from gagar_env.tasks.file import load_task_file
from gagar_env.tasks.folder import load_task_folder
from gagar_env.tasks.registry import load_task, load_tasks, register_task, register_tasks, task_ids, task_sets
from gagar_env.tasks.task import Task

__all__ = [
    "Task",
    "load_task",
    "load_task_file",
    "load_task_folder",
    "load_tasks",
    "register_task",
    "register_tasks",
    "task_ids",
    "task_sets",
]
