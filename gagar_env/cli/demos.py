"""`gagar demo`: one group, end to end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from gagar_env.advantages import KeepReason
from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.policies import SamplingPolicy
from gagar_env.cli.output import console, counted, need_git, one_line, print_json, progress_line
from gagar_env.cli.tables import group_json, group_table, reason_lines
from gagar_env.group import GroupResult, grade_group
from gagar_env.provision import kind_for, provision
from gagar_env.rollout import run_group
from gagar_env.tasks.registry import load_task


def demo(task_id: str, *, group_size: int, seed: int, sandbox: str, as_json: bool) -> bool:
    """Run a group of sampled solutions, rank the passing ones by rules, and print what happened to the advantages.

    Returns:
        Whether any episode has a result.
    """
    task = load_task(task_id)
    need_git()
    kind = kind_for(task, sandbox)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with progress_line(*columns) as progress:
        bar = progress.add_task("preparing", total=None)
        provision(task, sandbox=kind, on_progress=lambda text: progress.update(bar, description=text))
        board = _Board(group_size)

        def on_step(member: int, info: Mapping[str, Any]) -> None:
            progress.update(bar, description=board.note(member, info))

        episodes = run_group(task, SamplingPolicy(), group_size=group_size, seed=seed, sandbox=kind, on_step=on_step)
        progress.update(bar, description="ranking the passing episodes")
        result = grade_group(episodes, RuleGrader(), task=task, seed=seed)
    if as_json:
        print_json(group_json(result, episodes, seed=seed, sandbox=kind))
        return any(result.valid)
    console.print(group_table(result, episodes))
    for line in reason_lines(result):
        console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    for fault in dict.fromkeys(one_line(episode.error) for episode in episodes if episode.error):
        console.print(f"invalid: {fault}", markup=False, highlight=False)
    console.print(
        f"{counted(group_size, 'episode')} in the {kind!r} sandbox, seed {seed}. {_moral(result)}", highlight=False
    )
    return any(result.valid)


_DROPPED = {
    KeepReason.ALL_PASSED: "all passed, so there is no better and worse than the mean; try another --seed",
    KeepReason.ALL_FAILED: "all failed, so there is no better and worse than the mean; try another --seed",
    KeepReason.TOO_FEW_VALID: "fewer than two episodes have a result, and one has nothing to be compared with"
    "; `gagar eval` measures a policy",
}


def _moral(result: GroupResult) -> str:
    """What the table shows, in words."""
    if not result.kept:
        return f"The group is dropped: {_DROPPED[result.reason]}."
    if result.fallback:
        return f"The ranking failed, so the advantages are the plain ones: {result.fallback}"
    if not result.graded or len(set(result.ranks) - {None}) < 2:
        return "Nothing to rank: the advantages are the plain ones of the tests."
    labels = [label for label, rank in zip(result.labels, result.ranks, strict=True) if rank is not None]
    twins = " Episodes with one label made the same patch." if len(set(labels)) < len(labels) else ""
    return (
        "Advantage moved from worse to better passing episodes; its sum stayed, and failing ones are untouched. "
        f"Behind a label: its penalty by the rules, least is best.{twins}"
    )


class _Board:
    """How many episodes are in which state, for the progress line."""

    def __init__(self, size: int) -> None:
        self._states = ["starting"] * size
        self._turns = 0
        self._lock = threading.Lock()

    def note(self, member: int, info: Mapping[str, Any]) -> str:
        with self._lock:
            self._states[member] = str(info["status"])
            self._turns += 1
            counts = Counter(self._states)
        return f"{self._turns} steps: " + ", ".join(f"{n} {state}" for state, n in counts.items())
