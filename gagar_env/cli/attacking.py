"""`gagar check --attack`: what cheating earns in a task."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

from rich.padding import Padding
from rich.progress import MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.text import Text

from gagar_env.attacks import ATTACKS, TWINS, AttackResult, TwinResult, run_attacks, run_twins
from gagar_env.checked import SWITCH
from gagar_env.cli.output import console, counted, errors, need_git, one_line, print_json, progress_line
from gagar_env.errors import GagarError, TaskError
from gagar_env.provision import kind_for
from gagar_env.tasks.task import Task


def attack(
    tasks: Sequence[Task],
    broken: Sequence[tuple[str, str]] = (),
    *,
    only: Sequence[str],
    sandbox: str,
    jobs: int | None,
    as_json: bool,
) -> bool:
    """Attack tasks and print what is let through or flagged; True when all of them hold.

    A task that is broken, or has no reference solution, is named and left out; the others go on.

    Args:
        tasks: The tasks.
        broken: Ids of tasks that do not load, and why.
        only: Words, one of which the name of an attack or twin must have.
        sandbox: Kind of sandbox.
        jobs: How many at one time.
        as_json: Print one JSON document.

    Raises:
        GagarError: If `only` leaves nothing.
        TaskError: If no task could be attacked.
    """
    need_git()
    os.environ.setdefault(SWITCH, "ignore")  # these episodes train nobody
    jobs = jobs or len(os.sched_getaffinity(0))
    attacks = [a for a in ATTACKS if not only or any(word in a.id for word in only)]
    twins = [t for t in TWINS if not only or any(word in t.id for word in only)] or list(TWINS[:1])
    if not attacks:
        raise GagarError(f"no attack is called {' or '.join(only)}: names are such as {ATTACKS[0].id}")
    shown = []
    good = True
    faults = dict(broken)
    for task in tasks:
        columns = (TextColumn("attacking"), MofNCompleteColumn(), TextColumn("{task.description}"))
        with progress_line(*columns) as progress:
            bar = progress.add_task("", total=len(attacks) + len(twins))

            def done(result: AttackResult | TwinResult, bar: TaskID = bar, progress: Progress = progress) -> None:
                what = result.attack.id if isinstance(result, AttackResult) else result.twin.id
                progress.update(bar, advance=1, description=what)

            try:
                kind = kind_for(task, sandbox)
                honest = run_twins(task, sandbox=kind, twins=twins, jobs=jobs, on_result=done)
                results = run_attacks(task, sandbox=kind, attacks=attacks, jobs=jobs, on_result=done)
            except TaskError as error:
                faults[task.id] = str(error)
                continue
        whole = all(result.good for result in results) and all(twin.good for twin in honest)
        good = good and whole
        if as_json:
            shown.append(
                {
                    "task_id": task.id,
                    "sandbox": kind,
                    "ok": whole,
                    "attacks": [result.as_dict() for result in results],
                    "twins": [result.as_dict() for result in honest],
                }
            )
        else:
            _print_attacks(task, kind, results, honest)
    if len(faults) >= len(tasks) + len(broken):
        raise TaskError(next(iter(faults.values()), "there is no task to attack"))
    if as_json:
        print_json(shown)
    for task_id, why in faults.items():
        errors.print(
            f"gagar: task {task_id} is left out: {one_line(why)}", markup=False, highlight=False, soft_wrap=True
        )
    return good and not faults


_SHOWN = {"let_through": "[red]LET THROUGH[/]", "flagged": "[yellow]flagged[/]    ", "error": "[red]BREAKS IT[/]  "}


def _print_attacks(task: Task, kind: str, results: Sequence[AttackResult], twins: Sequence[TwinResult]) -> None:
    for result in results:
        if result.outcome in _SHOWN:
            console.print(f"{_SHOWN[result.outcome]} {result.attack.id}", highlight=False)
            console.print(Padding(Text(f"{result.attack.title}: {result.reason}"), (0, 0, 0, 12)))
            if result.attack.advice and not result.good:
                console.print(Padding(Text(f"what to do: {result.attack.advice}"), (0, 0, 0, 12)))
    for twin in twins:
        if not twin.good:
            console.print(f"[red]REFUSED[/]     {twin.twin.id}", highlight=False)
            console.print(Padding(Text(f"honest work, {twin.twin.title}: {twin.reason}"), (0, 0, 0, 12)))
    counts = Counter[str](result.outcome for result in results)
    parts = [f"{counts['held']} held", f"{counts['flagged']} flagged", f"{counts['let_through']} let through"]
    parts += [
        f"{counts[name]} {what}"
        for name, what in (("error", "broke it"), ("not_applicable", "do not apply"))
        if counts[name]
    ]
    honest = f"{sum(twin.good for twin in twins)} of {len(twins)} honest solutions earn their reward"
    console.print(
        f"{task.id} in the {kind!r} sandbox: {counted(len(results), 'attack')}, {', '.join(parts)}; {honest}",
        highlight=False,
    )
