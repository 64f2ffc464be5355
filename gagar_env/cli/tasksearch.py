"""`gagar tasks search` and `gagar tasks stats`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from rich.markup import escape
from rich.table import Table

from gagar_env.checked import checked_in
from gagar_env.cli.output import console, counted, print_json
from gagar_env.tasks.faults import did_you_mean
from gagar_env.tasks.registry import task_sets
from gagar_env.tasks.search import search_tasks, words_of
from gagar_env.tasks.task import Task

SHOWN = 15
"""Tags and repositories that a table shows."""


def search(words: Sequence[str], tasks: Sequence[Task], *, limit: int, as_json: bool) -> bool:
    """Print the tasks that have these words, best first; True when there is one."""
    found = search_tasks(words, tasks)
    rows: list[dict[str, Any]] = [
        {
            "id": one.task.id,
            "title": one.task.title or one.task.problem_statement.strip().splitlines()[0],
            "tags": list(one.task.tags),
            "score": one.score,
            "words": list(one.words),
        }
        for one in found[:limit]
    ]
    if as_json:
        print_json(rows)
        return bool(rows)
    if not rows:
        known = words_of(tasks)
        near = "".join(did_you_mean(word.lower(), known) for word in words)
        console.print(f"no task has {' or '.join(words)}{near}; `gagar tasks list` shows them all", markup=False)
        return False
    table = Table(title=f"{counted(len(found), 'task')} with {' '.join(words)}")
    table.add_column("task", no_wrap=True)
    table.add_column("what")
    table.add_column("tags")
    for row in rows:
        table.add_row(escape(row["id"]), escape(row["title"][:90]), escape(", ".join(row["tags"])))
    console.print(table)
    if len(found) > limit:
        console.print(f"{len(found) - limit} more: --limit shows them", highlight=False)
    return True


def stats(tasks: Sequence[Task], *, as_json: bool) -> None:
    """Print what there is: counts by set, tag and repository, sizes of the lists, environments, checks."""
    found = task_stats(tasks)
    if as_json:
        print_json(found)
        return
    table = Table(title=counted(len(tasks), "task"), show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("value")
    for name in ("sets", "repositories", "tags", "modes", "repository from"):
        counts = list(found[name].items())
        more = f", and {len(counts) - SHOWN} more" if len(counts) > SHOWN else ""
        shown = ", ".join(f"{key} {number}" for key, number in counts[:SHOWN])
        table.add_row(name, escape(shown + more) or "-")
    for name in ("fail to pass", "pass to pass"):
        sizes = found[name]
        table.add_row(name, f"{sizes['least']} to {sizes['most']}, half have {sizes['median']:g} or more")
    for name in ("environment known", "image", "reference", "repository here", "checked here"):
        table.add_row(name, f"{found[name]} of {len(tasks)}")
    console.print(table)


def task_stats(tasks: Sequence[Task]) -> dict[str, Any]:
    """The numbers that `stats` prints."""
    members = {task_id: name for name, ids in task_sets().items() for task_id in ids}
    repositories = Counter(name for task in tasks if (name := _repository(task)))
    return {
        "tasks": len(tasks),
        "sets": _ordered(Counter(members[task.id] for task in tasks if task.id in members)),
        "repositories": _ordered(repositories),
        "tags": _ordered(Counter(tag for task in tasks for tag in task.tags if tag not in repositories)),
        "modes": _ordered(Counter(task.tests.mode for task in tasks)),
        "repository from": _ordered(Counter(task.repo.kind for task in tasks)),
        "fail to pass": _sizes([len(task.tests.fail_to_pass) for task in tasks]),
        "pass to pass": _sizes([len(task.tests.pass_to_pass) for task in tasks]),
        "environment known": sum(not task.environment.missing for task in tasks),
        "image": sum(task.image is not None for task in tasks),
        "reference": sum(bool(task.solution_patch.strip()) for task in tasks),
        "repository here": sum(not task.repo.missing for task in tasks),
        "checked here": sum(bool(checked_in(task)) for task in tasks),
    }


def _repository(task: Task) -> str:
    named = next((task.extra[key] for key in ("repo", "repo_name", "library") if key in task.extra), "")
    return named if isinstance(named, str) and named else task.repo.url


def _ordered(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _sizes(numbers: Sequence[int]) -> dict[str, float]:
    if not numbers:
        return {"least": 0, "median": 0, "most": 0}
    return {"least": min(numbers), "median": median(numbers), "most": max(numbers)}
