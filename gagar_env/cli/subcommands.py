"""The commands below `gagar tasks`, `gagar images` and `gagar grader`, one function each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gagar_env.cli.options import (
    AsJson,
    BudgetTokens,
    BudgetUsd,
    GraderNoSeed,
    GraderOrders,
    GraderRubric,
    GraderTemperature,
    Repo,
    Sandbox,
    Sessions,
    TaskFile,
)

EVAL_GROUPS = 36

tasks_app = typer.Typer(help="List and show tasks.", no_args_is_help=True)
grader_app = typer.Typer(help="Find out how good a grader is.", no_args_is_help=True)
images_app = typer.Typer(help="Pull, list and remove images of tasks.", no_args_is_help=True)


@tasks_app.command("list")
def tasks_list(task_file: TaskFile = None, repo: Repo = None, as_json: AsJson = False) -> None:
    """List tasks."""
    from gagar_env.cli import tasklists

    tasklists.show_list(tasklists.select([], task_file, repo), as_json=as_json)


@tasks_app.command("show")
def tasks_show(task: str, task_file: TaskFile = None, repo: Repo = None, as_json: AsJson = False) -> None:
    """Show one task: its problem statement and how it is judged."""
    from gagar_env.cli import tasklists

    tasklists.show(tasklists.select([task], task_file, repo)[0], as_json=as_json)


@images_app.command("pull")
def images_pull(
    tasks: Annotated[list[str] | None, typer.Argument(help="Tasks; default: all that have an image.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    as_json: AsJson = False,
) -> None:
    """Pull, load or build the images of tasks ahead, so that no episode waits for one."""
    from gagar_env.cli import images, tasklists

    if not images.pull(tasklists.select(tasks or [], task_file, repo), named=bool(tasks), as_json=as_json):
        raise typer.Exit(1)


@images_app.command("list")
def images_list(as_json: AsJson = False) -> None:
    """List the images that this package made in the container engine."""
    from gagar_env.cli import images

    images.show_list(as_json=as_json)


@images_app.command("prune")
def images_prune(as_json: AsJson = False) -> None:
    """Remove the images that this package made and no container uses. They are made again when they are needed."""
    from gagar_env.cli import images

    images.prune(as_json=as_json)


@grader_app.command("eval")
def grader_eval(
    grader: Annotated[str, typer.Option(help="rule, agentic, listwise, or module:Name of yours.")] = "rule",
    grader_model: Annotated[
        str, typer.Option(help="For --grader agentic or listwise: a model, or provider:name without --grader-url.")
    ] = "",
    grader_url: Annotated[str, typer.Option(help="Its OpenAI-compatible endpoint.")] = "",
    grader_output: Annotated[
        str, typer.Option(help="For --grader agentic: tool, or json_schema or prompted where tools cannot be called.")
    ] = "",
    groups: Annotated[int, typer.Option(min=1, help="How many groups, spread over kinds and tasks.")] = EVAL_GROUPS,
    repeats: Annotated[
        int, typer.Option(min=1, help="Gradings of each group; the second has the labels reversed.")
    ] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same groups and labels.")] = 0,
    tasks: Annotated[list[str] | None, typer.Option(help="A task; may be given again. Default: all.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    sandbox: Sandbox = "auto",
    deadline_s: Annotated[float | None, typer.Option(min=0.0, help="For one grading; default: no limit.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Groups at one time.")] = 2,
    grader_sessions: Sessions = False,
    grader_temperature: GraderTemperature = "",
    grader_no_seed: GraderNoSeed = False,
    grader_orders: GraderOrders = None,
    grader_rubric: GraderRubric = None,
    budget_tokens: BudgetTokens = None,
    budget_usd: BudgetUsd = None,
    out: Annotated[Path | None, typer.Option(help="Write every grading into this file, as JSONL.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a grader on groups whose right order is known: known flaws, equals, and attacks on the judge."""
    from gagar_env.cli import graders, models, tasklists

    actors = models.Actors(
        policy="noop",
        grader=grader,
        grader_model=grader_model,
        grader_url=grader_url,
        grader_output=grader_output,
        grader_sessions=grader_sessions,
        grader_temperature=grader_temperature,
        grader_no_seed=grader_no_seed,
        grader_orders=grader_orders,
        grader_rubric=grader_rubric,
        budget_tokens=budget_tokens,
        budget_usd=budget_usd,
    )
    settings = graders.EvalSettings(
        actors=actors,
        groups=groups,
        seed=seed,
        repeats=repeats,
        deadline_s=deadline_s,
        sandbox=sandbox,
        jobs=jobs,
        out=out,
    )
    if not graders.evaluate_grader(settings, tasklists.select(tasks or [], task_file, repo), as_json=as_json):
        raise typer.Exit(1)


@grader_app.command("export")
def grader_export(
    sources: Annotated[list[Path], typer.Argument(help="Files of `grader eval --out`, folders of `run --out`.")],
    out: Annotated[Path, typer.Option(help="A new folder for train.jsonl, eval.jsonl and manifest.json.")],
    eval_share: Annotated[float, typer.Option(min=0.0, max=0.99, help="Of the examples, in whole tasks.")] = 0.2,
    seed: Annotated[int, typer.Option(min=0, help="Chooses the tasks of eval.jsonl.")] = 0,
    task_file: TaskFile = None,
    repo: Repo = None,
    as_json: AsJson = False,
) -> None:
    """Write conversations of the agentic grader as chat records for fine-tuning: right ones, on which votes agree."""
    from gagar_env.cli import graders, tasklists

    known = tasklists.select([], task_file, repo)
    graders.export_sessions(sources, out, known, eval_share=eval_share, seed=seed, as_json=as_json)
