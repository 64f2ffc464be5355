"""`gagar demo`: one group, end to end."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.policies import SamplingPolicy
from gagar_env.cli.output import console, errors, print_json
from gagar_env.cli.tables import group_json, group_table, reason_lines
from gagar_env.group import grade_group
from gagar_env.provision import provision
from gagar_env.rollout import run_group
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.registry import load_task

TASK = "cron-month-end"


def demo(task_id: str, *, group_size: int, seed: int, sandbox: str, as_json: bool) -> None:
    """Run a group of sampled solutions, rank the passing ones by rules, and print what happened to the advantages."""
    task = load_task(task_id)
    kind = choose_kind(sandbox)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=as_json) as progress:
        bar = progress.add_task("preparing", total=None)
        provision(task, on_progress=lambda text: progress.update(bar, description=text))
        board = _Board(group_size)

        def on_step(member: int, info: Mapping[str, Any]) -> None:
            progress.update(bar, description=board.note(member, info))

        episodes = run_group(task, SamplingPolicy(), group_size=group_size, seed=seed, sandbox=kind, on_step=on_step)
        progress.update(bar, description="ranking the passing episodes")
        result = grade_group(episodes, RuleGrader(), task=task, seed=seed)
    if as_json:
        print_json(group_json(result, episodes, seed=seed, sandbox=kind))
        return
    console.print(group_table(result, episodes))
    for line in reason_lines(result):
        console.print(line, no_wrap=True, overflow="ellipsis", crop=True)
    if result.kept:
        console.print(
            f"{group_size} episodes in the {kind!r} sandbox, seed {seed}. Advantage moved from worse to better passing "
            "episodes; its sum stayed, and failing ones are untouched.",
            highlight=False,
        )
    else:
        console.print(f"The group was dropped: {result.reason}. Nothing to redistribute; try another --seed.")


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
