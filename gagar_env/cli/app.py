"""The commands, one function each; what they do is in the modules beside this one, of which each imports its own."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated

import typer

from gagar_env.cli.caches import cache_app
from gagar_env.cli.evalcommand import evaluation
from gagar_env.cli.gradecommand import grade
from gagar_env.cli.options import (
    AsJson,
    Base,
    BudgetTokens,
    BudgetUsd,
    ContextTokens,
    Flags,
    Grader,
    GraderFallback,
    GraderModel,
    GraderNoSeed,
    GraderOrders,
    GraderOutput,
    GraderRubric,
    GraderTemperature,
    GraderUrl,
    GroupSize,
    Model,
    ModelUrl,
    NativeTools,
    NoSeed,
    Policy,
    Preserve,
    Replay,
    Repo,
    Sandbox,
    Scheme,
    Seed,
    Sessions,
    Skip,
    Strength,
    TaskFile,
    Temperature,
    Turns,
    given_grading,
    seconds,
)
from gagar_env.cli.subcommands import grader_app, images_app, runs_app, tasks_app
from gagar_env.cli.viewing import view
from gagar_env.errors import GagarError

DEMO_TASK = "cron-month-end"


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


app.add_typer(runs_app, name="runs")
app.add_typer(tasks_app, name="tasks")
app.add_typer(grader_app, name="grader")
app.add_typer(images_app, name="images")
app.add_typer(cache_app, name="cache")


@app.command()
def demo(
    task: Annotated[str, typer.Option(help="A task; `gagar tasks list` shows them.")] = DEMO_TASK,
    group_size: GroupSize = 8,
    seed: Seed = 0,
    sandbox: Sandbox = "auto",
    as_json: AsJson = False,
) -> None:
    """Run one group end to end: episodes, tests, ranking, redistribution."""
    from gagar_env.cli import demos

    if not demos.demo(task, group_size=group_size, seed=seed, sandbox=sandbox, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def run(
    context: typer.Context,
    groups: Annotated[int | None, typer.Option(min=1, help="How many groups; default one for each task.")] = None,
    group_size: GroupSize = 8,
    seed: Seed = 0,
    policy: Policy = "sample",
    replay: Replay = None,
    model: Model = "",
    model_url: ModelUrl = "",
    temperature: Temperature = "",
    no_seed: NoSeed = False,
    context_tokens: ContextTokens = None,
    native_tools: NativeTools = False,
    grader: Grader = "rule",
    grader_model: GraderModel = "",
    grader_url: GraderUrl = "",
    grader_output: GraderOutput = "",
    grader_fallback: GraderFallback = "",
    grader_sessions: Sessions = False,
    grader_temperature: GraderTemperature = "",
    grader_no_seed: GraderNoSeed = False,
    grader_orders: GraderOrders = None,
    grader_rubric: GraderRubric = None,
    budget_tokens: BudgetTokens = None,
    budget_usd: BudgetUsd = None,
    tasks: Annotated[list[str] | None, typer.Option(help="A task or set; may be given again. Default: all.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    skip: Skip = None,
    sandbox: Sandbox = "auto",
    flags: Flags = "flag",
    base: Base = "",
    scheme: Scheme = "",
    strength: Strength = None,
    preserve: Preserve = "",
    turns: Turns = None,
    deadline_s: Annotated[
        float | None,
        typer.Option(min=0.0, callback=seconds, help="For a group to act; members that still act then have no result."),
    ] = None,
    curriculum: Annotated[
        bool, typer.Option("--curriculum", help="Favour tasks whose groups are mixed, by measured pass rate.")
    ] = False,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="Groups that act at one time; default 2, or 1 with --curriculum.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write episodes and groups into this folder.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with a run of --out that was stopped. It knows its other options.")
    ] = None,
    log: Annotated[
        str | None,
        typer.Option(help="tensorboard, wandb, trackio, jsonl, by commas, or none; default tensorboard with --out."),
    ] = None,
    prometheus: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve numbers for Prometheus on this port; 0 picks one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run many groups, grade them, and write them down with --out."""
    options = {name: value for name, value in locals().items() if name != "context"}
    from gagar_env.cli import models, resuming, runs, tasklists

    folder = None
    if resume is not None:
        folder, options = resuming.go_on(context, options)
    broken: list[tuple[str, str]] = []
    chosen = tasklists.select(
        options["tasks"] or [],
        options["task_file"],
        options["repo"],
        skip=options["skip"],
        on_broken=lambda task_id, why: broken.append((task_id, why)),
    )
    of_actors = {field.name for field in dataclasses.fields(models.Actors)}
    of_run = {field.name for field in dataclasses.fields(runs.Settings)} & options.keys() - {"out", "resume"}
    settings = runs.Settings(
        **{name: options[name] for name in of_run},
        grading=given_grading(options),
        actors=models.Actors(**{name: value for name, value in options.items() if name in of_actors}),
        out=out if folder is None else None,
        resume=folder,
        stored=resuming.stored(options),
    )
    if not runs.run(settings, chosen, broken=broken, as_json=as_json):
        raise typer.Exit(1)


app.command("eval")(evaluation)
app.command()(view)
app.command("grade")(grade)


@app.command()
def check(
    tasks: Annotated[list[str] | None, typer.Argument(help="Tasks and sets; default: all.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    skip: Skip = None,
    sandbox: Sandbox = "auto",
    repeats: Annotated[int, typer.Option(min=1, help="Runs of each; more find flaky tests.")] = 1,
    solutions: Annotated[bool, typer.Option("--solutions", help="Verify the known solutions too.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Tasks at one time; default: one for each processor.")] = None,
    task_s: Annotated[
        float | None, typer.Option(min=0.0, callback=seconds, help="Seconds for one task; slower ones are bad.")
    ] = None,
    budget_s: Annotated[
        float | None, typer.Option(min=0.0, callback=seconds, help="Seconds for all; the rest is not checked.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Append results to this JSONL file; those that it has are not run again.")
    ] = None,
    quarantine: Annotated[
        Path | None, typer.Option(help="Keep bad tasks and why in this file, .json or .jsonl, for --skip.")
    ] = None,
    attack: Annotated[
        bool, typer.Option("--attack", help="Try to cheat in each task instead, and say what gets through.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="For --attack: only attacks and twins whose name has this in it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check tasks: the reference earns 1, doing nothing earns 0.

    Every time, with --repeats. With --attack: cheating earns nothing.
    Exit code 0: all are good. 1: some are bad. 3: none is bad, but some could not be checked here.
    """
    from gagar_env.cli import checks, tasklists

    if attack and (out is not None or quarantine is not None):
        raise GagarError("--out and --quarantine keep what a check finds, and --attack is none: leave them out")
    broken: list[tuple[str, str]] = []
    chosen = tasklists.select(
        tasks or [], task_file, repo, skip=skip, on_broken=lambda task_id, why: broken.append((task_id, why))
    )
    if attack:
        from gagar_env.cli import attacking

        held = attacking.attack(chosen, broken, only=only or [], sandbox=sandbox, jobs=jobs, as_json=as_json)
        code = 0 if held else 1
    else:
        settings = checks.Settings(
            sandbox=sandbox,
            repeats=repeats,
            solutions=solutions,
            jobs=jobs,
            task_s=task_s,
            budget_s=budget_s,
            out=out,
            quarantine=quarantine,
        )
        code = checks.check(chosen, broken, settings, as_json=as_json)
    if code:
        raise typer.Exit(code)


@app.command()
def doctor(
    prune: Annotated[bool, typer.Option("--prune", help="Remove containers whose trainers are dead.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what works here, and what to install for the rest.

    Exit code 1: nothing can run.
    """
    from gagar_env.cli import doctors

    if not doctors.doctor(as_json=as_json, remove=prune):
        raise typer.Exit(1)
