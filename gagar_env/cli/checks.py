"""`gagar check`: find bad tasks before they cost anything."""

from __future__ import annotations

from collections.abc import Sequence

from rich.padding import Padding
from rich.progress import MofNCompleteColumn, TextColumn
from rich.text import Text

from gagar_env.check import TaskCheck, check_tasks
from gagar_env.cli.output import console, need_git, print_json, progress_line
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.task import Task


def check(tasks: Sequence[Task], *, sandbox: str, repeats: int, jobs: int, as_json: bool) -> bool:
    """Check tasks and print the result of each; True when all are good."""
    need_git()
    kind = choose_kind(sandbox)
    results: list[TaskCheck] = []
    columns = (TextColumn("checking"), MofNCompleteColumn(), TextColumn("{task.description}"))
    with progress_line(*columns) as progress:
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
                console.print(Padding(Text(problem), (0, 0, 0, 6)))
    return all(result.ok for result in results)
