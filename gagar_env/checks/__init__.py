"""Checking many tasks: in parallel, within a time, resumable; and the file of those that are not to be trained on."""

from gagar_env.checks.many import BrokenTask, check_tasks
from gagar_env.checks.quarantine import read_quarantine, update_quarantine

__all__ = ["BrokenTask", "check_tasks", "read_quarantine", "update_quarantine"]
