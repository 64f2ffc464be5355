"""A run on disk, that a killed process, a full disk or several writers do not spoil: `RunFolder`.

    <run>/run.json               what the run was made with; a folder that has it is a run
    <run>/tasks/<name>.json      the tasks that were worked on
    <run>/episodes/<id>.json     one file for each episode, whole or not there
    <run>/groups.jsonl           one line for each group, written after its episodes
    <run>/failures.jsonl         one line for each group that could not be run
    <run>/metrics.jsonl          one line for each step that was logged
    <run>/index.json             counts for listings; made again when it is missing or does not fit

Nothing in it is changed once it is written. What is torn is left out with a warning.
"""

from __future__ import annotations

from gagar_env.store.folder import RunFolder, find_runs
from gagar_env.store.records import FailureRecord, GroupRecord
from gagar_env.store.summary import RunSummary, summarize
from gagar_env.store.verifying import Fault, verify_run

__all__ = [
    "FailureRecord",
    "Fault",
    "GroupRecord",
    "RunFolder",
    "RunSummary",
    "find_runs",
    "summarize",
    "verify_run",
]
