"""The command `gagar grade`; what it does is in `regrading`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gagar_env.cli.options import (
    AsJson,
    Base,
    BudgetTokens,
    BudgetUsd,
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
    Preserve,
    Repo,
    Sandbox,
    Scheme,
    Sessions,
    Strength,
    TaskFile,
    given_grading,
    seconds,
)


def grade(
    run: Annotated[Path | None, typer.Argument(help="A folder of `gagar run --out`.")] = None,
    foreign: Annotated[
        list[Path] | None,
        typer.Option("--from", help="In place of RUN: trajectories of mini-swe-agent, SWE-agent or in ATIF; again."),
    ] = None,
    task: Annotated[str, typer.Option(help="For --from: what all of them are of. Default: by their ids.")] = "",
    task_file: TaskFile = None,
    repo: Repo = None,
    trust_results: Annotated[
        Path | None, typer.Option(help="For --from: results to take in place of running the tests.")
    ] = None,
    group_size: Annotated[
        int | None, typer.Option(min=2, help="For --from: attempts of a group; default: all at one task.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="For --from: same seed, same labels.")] = 0,
    sandbox: Sandbox = "auto",
    flags: Flags = "flag",
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
    base: Base = "",
    scheme: Scheme = "",
    strength: Strength = None,
    preserve: Preserve = "",
    deadline_s: Annotated[
        float | None, typer.Option(min=0.0, callback=seconds, help="For one grading; default: no limit.")
    ] = None,
    parallel: Annotated[int, typer.Option(min=1, help="Groups that are graded at one time.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Write a new run with the episodes and their new grades.")] = None,
    as_json: AsJson = False,
) -> None:
    """Grade stored episodes again, or those of other harnesses.

    No episode is run again; patches of other harnesses are verified, stored ones were.
    Exit code 1: something was left out, or the grader failed on every group.
    """
    from gagar_env.cli import models, regrading

    settings = regrading.Settings(
        run=run,
        foreign=tuple(foreign or ()),
        task=task,
        task_file=task_file,
        repo=repo,
        trust_results=trust_results,
        group_size=group_size,
        seed=seed,
        sandbox=sandbox,
        flags=flags,
        actors=models.Actors(
            policy="noop",
            grader=grader,
            grader_model=grader_model,
            grader_url=grader_url,
            grader_output=grader_output,
            grader_fallback=grader_fallback,
            grader_sessions=grader_sessions,
            grader_temperature=grader_temperature,
            grader_no_seed=grader_no_seed,
            grader_orders=grader_orders,
            grader_rubric=grader_rubric,
            budget_tokens=budget_tokens,
            budget_usd=budget_usd,
        ),
        grading=given_grading({"base": base, "scheme": scheme, "strength": strength, "preserve": preserve}),
        deadline_s=deadline_s,
        parallel=parallel,
        out=out,
    )
    if not regrading.grade(settings, as_json=as_json):
        raise typer.Exit(1)
