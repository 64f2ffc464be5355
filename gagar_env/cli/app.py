"""The commands, one function each; what they do is in the modules beside this one."""

from __future__ import annotations

from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated

import typer

from gagar_env.cli import checks, demos, doctors, runs, tasklists

app = typer.Typer(
    name="gagar",
    help="Groupwise agentic grading and advantage redistribution for code agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    epilog="Any command takes --debug, which shows tracebacks.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gagar-env {version_of('gagar-env')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Groupwise agentic grading and advantage redistribution for code agents."""


tasks_app = typer.Typer(help="List and show tasks.", no_args_is_help=True)
app.add_typer(tasks_app, name="tasks")

Seed = Annotated[int, typer.Option(min=0, help="Same seed, same ranks and advantages.")]
GroupSize = Annotated[int, typer.Option(min=1, help="Episodes of one task that are compared: a group.")]
Sandbox = Annotated[str, typer.Option(help="auto, bwrap or process; auto takes the strongest that works.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TaskFile = Annotated[
    Path | None, typer.Option(help="A JSON or JSONL file of SWE-bench records or tasks, or a folder of tasks.")
]
Repo = Annotated[
    Path | None, typer.Option(help="Where the repositories of --task-file are: a clone, or a folder of them.")
]


@app.command()
def demo(
    task: Annotated[str, typer.Option(help="A task; `gagar tasks list` shows them.")] = demos.TASK,
    group_size: GroupSize = 8,
    seed: Seed = 0,
    sandbox: Sandbox = "auto",
    as_json: AsJson = False,
) -> None:
    """Run one group end to end: episodes, tests, ranking, redistribution."""
    if not demos.demo(task, group_size=group_size, seed=seed, sandbox=sandbox, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def run(
    groups: Annotated[int | None, typer.Option(min=1, help="How many groups; default one for each task.")] = None,
    group_size: GroupSize = 8,
    seed: Seed = 0,
    policy: Annotated[str, typer.Option(help="sample, reference, noop, replay, or module:Name of yours.")] = "sample",
    replay: Annotated[
        Path | None,
        typer.Option(
            help='For --policy replay: JSONL of {"task": ID, "patch": TEXT} or {"task": ID, "actions": [...]}.'
        ),
    ] = None,
    grader: Annotated[str, typer.Option(help="rule, none, or module:Name of yours.")] = "rule",
    tasks: Annotated[list[str] | None, typer.Option(help="A task; may be given again. Default: all.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    sandbox: Sandbox = "auto",
    out: Annotated[Path | None, typer.Option(help="Write episodes and groups into this folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run many groups, grade them, and write them down with --out."""
    whole = runs.run(
        runs.Settings(
            groups=groups,
            group_size=group_size,
            seed=seed,
            policy=policy,
            replay=replay,
            grader=grader,
            sandbox=sandbox,
            out=out,
        ),
        tasklists.select(tasks or [], task_file, repo),
        as_json=as_json,
    )
    if not whole:
        raise typer.Exit(1)


@app.command()
def check(
    tasks: Annotated[list[str] | None, typer.Argument(help="Tasks; default: all.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    sandbox: Sandbox = "auto",
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each; more find flaky tests.")] = 1,
    jobs: Annotated[int, typer.Option(min=1, help="Tasks at one time.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Check tasks: the reference earns 1, doing nothing earns 0, every time."""
    chosen = tasklists.select(tasks or [], task_file, repo)
    if not checks.check(chosen, sandbox=sandbox, repeats=repeats, jobs=jobs, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Show what works on this machine, and what to install for the rest. Exit code 1: nothing can run."""
    if not doctors.doctor(as_json=as_json):
        raise typer.Exit(1)


@tasks_app.command("list")
def tasks_list(task_file: TaskFile = None, repo: Repo = None, as_json: AsJson = False) -> None:
    """List tasks."""
    tasklists.show_list(tasklists.select([], task_file, repo), as_json=as_json)


@tasks_app.command("show")
def tasks_show(task: str, task_file: TaskFile = None, repo: Repo = None, as_json: AsJson = False) -> None:
    """Show one task: its problem statement and how it is judged."""
    tasklists.show(tasklists.select([task], task_file, repo)[0], as_json=as_json)
