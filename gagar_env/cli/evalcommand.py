"""The command `gagar eval`; what it does is in `evaluating`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gagar_env.cli.options import (
    AsJson,
    ContextTokens,
    Flags,
    Model,
    ModelUrl,
    NativeTools,
    NoSeed,
    Policy,
    Replay,
    Repo,
    Sandbox,
    Skip,
    TaskFile,
    Temperature,
    Turns,
    seconds,
)


def evaluation(
    samples: Annotated[int, typer.Option(min=1, help="Episodes of each task.")] = 8,
    k: Annotated[
        list[int] | None,
        typer.Option("--k", min=1, help="For pass@k, up to --samples; may be given again. Default: 1, 4."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Sample i of every task has the seed SEED + i.")] = 0,
    policy: Policy = "sample",
    replay: Replay = None,
    model: Model = "",
    model_url: ModelUrl = "",
    temperature: Temperature = "",
    no_seed: NoSeed = False,
    context_tokens: ContextTokens = None,
    native_tools: NativeTools = False,
    tasks: Annotated[list[str] | None, typer.Option(help="A task or set; may be given again. Default: all.")] = None,
    task_file: TaskFile = None,
    repo: Repo = None,
    skip: Skip = None,
    sandbox: Sandbox = "auto",
    flags: Flags = "flag",
    turns: Turns = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Episodes at one time; default: one for each processor.")
    ] = None,
    retries: Annotated[int, typer.Option(min=0, help="How often an episode without a result is run again.")] = 1,
    deadline_s: Annotated[
        float | None, typer.Option(min=0.0, callback=seconds, help="For one episode; default: no limit.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="A folder for episodes.jsonl and report.json; what it has is not run again.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a policy without groups: pass@k, patch size, turns, tokens.

    Size, scope, turns and tokens are those of what passes.
    Exit code 1: a task has no result.
    """
    from gagar_env.cli import evaluating, models, tasklists

    broken: list[tuple[str, str]] = []
    chosen = tasklists.select(
        tasks or [], task_file, repo, skip=skip, on_broken=lambda task_id, why: broken.append((task_id, why))
    )
    settings = evaluating.Settings(
        actors=models.Actors(
            policy=policy,
            replay=replay,
            model=model,
            model_url=model_url,
            temperature=temperature,
            no_seed=no_seed,
            context_tokens=context_tokens,
            native_tools=native_tools,
        ),
        samples=samples,
        k=k or (),
        seed=seed,
        jobs=jobs,
        retries=retries,
        deadline_s=deadline_s,
        sandbox=sandbox,
        flags=flags,
        turns=turns,
        out=out,
    )
    if not evaluating.run_evaluation(settings, chosen, tasks or [], broken=broken, as_json=as_json):
        raise typer.Exit(1)
