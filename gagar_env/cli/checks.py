"""`gagar check`: find bad tasks before they cost anything."""

from __future__ import annotations

from collections.abc import Sequence

from rich.progress import MofNCompleteColumn, Progress, TextColumn

from gagar_env.check import TaskCheck, check_tasks
from gagar_env.cli.output import console, errors, print_json
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.task import Task


def check(tasks: Sequence[Task], *, sandbox: str, repeats: int, jobs: int, as_json: bool) -> bool:
    """Check tasks and print the result of each; True when all are good."""
    kind = choose_kind(sandbox)
    results: list[TaskCheck] = []
    columns = (TextColumn("checking"), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=errors, transient=True, disable=as_json) as progress:
        bar = progress.add_task("", total=len(tasks))

        def done(result: TaskCheck) -> None:
            progress.update(bar, advance=1, description=result.task_id)

        results = check_tasks(tasks, sandbox=kind, repeats=repeats, jobs=jobs, on_result=done)
    if as_json:
        print_json([result.model_dump(mode="json") for result in results])
    else:
        for result in results:
            mark = "[green]ok [/]" if result.ok else "[red]BAD[/]"
            console.print(f"{mark} {result.task_id}  ({result.seconds:.1f} s in {kind})", highlight=False)
            for problem in result.problems:
                console.print(f"      {problem}", markup=False, highlight=False)
    return all(result.ok for result in results)
