"""The commands below `gagar runs`, `gagar tasks`, `gagar images` and `gagar grader`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gagar_env.cli.exporting import export
from gagar_env.cli.options import (
    AsJson,
    BudgetTokens,
    BudgetUsd,
    GraderModel,
    GraderNoSeed,
    GraderOrders,
    GraderOutput,
    GraderRubric,
    GraderTemperature,
    GraderUrl,
    Repo,
    Sandbox,
    Sessions,
    TaskFile,
    seconds,
)
from gagar_env.cli.runscommand import runs_list, runs_show, runs_verify

EVAL_GROUPS = 36

tasks_app = typer.Typer(help="Find, make and count tasks.", no_args_is_help=True)
grader_app = typer.Typer(help="Find out how good a grader is.", no_args_is_help=True)
images_app = typer.Typer(help="Pull, list and remove images of tasks.", no_args_is_help=True)
runs_app = typer.Typer(help="List, show, check and export runs of `gagar run --out`.", no_args_is_help=True)
runs_app.command("list")(runs_list)
runs_app.command("show")(runs_show)
runs_app.command("verify")(runs_verify)
runs_app.command("export")(export)


@tasks_app.command("list")
def tasks_list(
    names: Annotated[list[str] | None, typer.Argument(help="Tasks and sets; default: all.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="The same; see `gagar tasks sets`.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    as_json: AsJson = False,
) -> None:
    """List tasks."""
    from gagar_env.cli import tasklists

    tasklists.show_list(tasklists.rows([*(names or []), *(sets or [])], task_file, repo), as_json=as_json)


@tasks_app.command("sets")
def tasks_sets(as_json: AsJson = False) -> None:
    """List the sets of tasks: built-in, of packages, and public ones."""
    from gagar_env.cli import tasklists

    tasklists.show_sets(as_json=as_json)


@tasks_app.command("show")
def tasks_show(task: str, task_file: TaskFile = None, repo: Repo = None, as_json: AsJson = False) -> None:
    """Show one task: its problem statement and how it is judged."""
    from gagar_env.cli import tasklists

    tasklists.show(tasklists.select_one(task, task_file, repo), as_json=as_json)


@tasks_app.command("search")
def tasks_search(
    words: Annotated[list[str], typer.Argument(help="Words of ids, titles, tags or statements.")],
    limit: Annotated[int, typer.Option(min=1, help="Most tasks to show.")] = 20,
    task_file: TaskFile = None,
    repo: Repo = None,
    as_json: AsJson = False,
) -> None:
    """Find tasks by words, best first. Exit code 1: none has them."""
    from gagar_env.cli import tasklists, tasksearch

    tasks = tasklists.usable([], task_file, repo)
    if not tasksearch.search(words, tasks, limit=limit, as_json=as_json):
        raise typer.Exit(1)


@tasks_app.command("stats")
def tasks_stats(
    names: Annotated[list[str] | None, typer.Argument(help="Tasks and sets; default: all.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    as_json: AsJson = False,
) -> None:
    """Count tasks by set, repository, tag and mode; say how many have an environment and were checked."""
    from gagar_env.cli import tasklists, tasksearch

    tasksearch.stats(tasklists.usable(names or [], task_file, repo), as_json=as_json)


@tasks_app.command("new")
def tasks_new(
    name: Annotated[str, typer.Argument(help="Id of the task, and name of its folder.")],
    folder: Annotated[Path, typer.Option("--dir", help="Where to make the folder.")] = Path(),
) -> None:
    """Make a small whole task to start from. Nothing is overwritten."""
    from gagar_env.cli import tasklists

    tasklists.make_new(name, folder)


@tasks_app.command("make")
def tasks_make(
    out: Annotated[
        Path, typer.Option(help="A folder, or a .jsonl, .json or .parquet file; what is there is gone on with.")
    ],
    from_releases: Annotated[
        tuple[str, str, str] | None,
        typer.Option(metavar="NAME OLD NEW", help="What was fixed between two releases of a library."),
    ] = None,
    from_history: Annotated[
        str | None, typer.Option(metavar="REPO", help="Commits of a repository that touch code and tests.")
    ] = None,
    inject: Annotated[
        str | None, typer.Option(metavar="REPO", help="Bugs put into a folder, a clone, an archive or NAME==VERSION.")
    ] = None,
    recipe: Annotated[Path | None, typer.Option(help="A TOML file that names many of these.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Tasks that the set shall have; default: all.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Candidates at one time.")] = 2,
    runs: Annotated[int, typer.Option(min=1, help="Runs of the tests without and with the reference.")] = 3,
    longest_s: Annotated[float, typer.Option(min=1, help="Seconds that one run of the tests may take.")] = 120.0,
    sandbox: Sandbox = "auto",
    seed: Annotated[int, typer.Option(min=0, help="For --inject and --from-history: same seed, same candidates.")] = 0,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", help="For --inject: a kind of bug; may be given again. Default: all.")
    ] = None,
    model: Annotated[
        str, typer.Option(help="Writes the problem statements: a model, or provider:name without --model-url.")
    ] = "",
    model_url: GraderUrl = "",
    as_json: AsJson = False,
) -> None:
    """Make tasks from a repository or a library. Exit code 1: none could be made."""
    from gagar_env.cli import making

    wanted = making.Wanted(
        releases=from_releases, history=from_history, inject=inject, recipe=recipe, seed=seed, kinds=kinds or ()
    )
    settings = making.settings(sandbox, runs, longest_s, model=model, model_url=model_url)
    if not making.make_tasks(wanted, out, settings, limit=limit, jobs=jobs, as_json=as_json):
        raise typer.Exit(1)


@tasks_app.command("pin")
def tasks_pin(
    task_file: Annotated[Path, typer.Argument(help="A file of rows that do not say what they run in.")],
    repo: Repo = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Default: environments.json beside the file.")] = None,
    python: Annotated[str, typer.Option(help="A version, in place of the one that is known for a repository.")] = "",
    jobs: Annotated[int, typer.Option(min=1, help="Rows at one time.")] = 2,
    as_json: AsJson = False,
) -> None:
    """Write what the rows of SWE-bench run in: exact pins, or their set's image. Exit code 1: a row has neither."""
    from gagar_env.cli import pins

    if not pins.pin(task_file, repo, out, python=python, jobs=jobs, as_json=as_json):
        raise typer.Exit(1)


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
    grader_model: GraderModel = "",
    grader_url: GraderUrl = "",
    grader_output: GraderOutput = "",
    groups: Annotated[int, typer.Option(min=1, help="How many groups, spread over kinds and tasks.")] = EVAL_GROUPS,
    repeats: Annotated[
        int, typer.Option(min=1, help="Gradings of each group; the second has the labels reversed.")
    ] = 2,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same groups and labels.")] = 0,
    tasks: Annotated[list[str] | None, typer.Option(help="A task; may be given again. Default: all.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    sandbox: Sandbox = "auto",
    deadline_s: Annotated[
        float | None, typer.Option(min=0.0, callback=seconds, help="For one grading; default: no limit.")
    ] = None,
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
