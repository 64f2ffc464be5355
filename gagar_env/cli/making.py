"""`gagar tasks make`: tasks from releases, from history, and from bugs that are put in."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from gagar_env.cli.output import console, counted, need_git, print_json, progress_line
from gagar_env.errors import GagarError
from gagar_env.making.candidate import Made
from gagar_env.making.feed import Source
from gagar_env.making.make import Summary, make
from gagar_env.making.recipe import Settings, read_recipe, release_source, repo_source

_SAID = 60


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is made from, as the options say it."""

    releases: tuple[str, str, str] | None = None
    history: str | None = None
    inject: str | None = None
    recipe: Path | None = None
    seed: int = 0
    kinds: Sequence[str] = ()


def settings(sandbox: str, runs: int, longest_s: float, *, model: str = "", model_url: str = "") -> Settings:
    """The settings of all makers.

    Raises:
        GagarError: If a model is named that is not to be had.
    """
    if not model:
        if model_url:
            raise GagarError("--model-url is where a model answers: name the model with --model")
        return Settings(sandbox=sandbox, runs=runs, longest_s=longest_s)
    from gagar_env.making.statement import BugStatement

    written = BugStatement(model, base_url=model_url)
    return Settings(sandbox=sandbox, runs=runs, longest_s=longest_s, statement=written)


def make_tasks(wanted: Wanted, out: Path, settings: Settings, *, limit: int | None, jobs: int, as_json: bool) -> bool:
    """Make tasks and print what came of it; True when the set has a task.

    Raises:
        GagarError: If not exactly one source is named.
        TaskError: If `out` or the recipe is wrong.
    """
    need_git()
    columns = (SpinnerColumn(), TextColumn("making"), MofNCompleteColumn(), TextColumn("{task.description}"))
    with progress_line(*columns) as progress:
        bar = progress.add_task("", total=limit)

        def say(line: str) -> None:
            progress.update(bar, description=escape(line[:_SAID]))

        sources = _sources(wanted, dataclasses.replace(settings, on_progress=say), limit)
        summary = make(
            sources,
            out,
            limit=limit,
            jobs=jobs,
            sandbox=settings.sandbox,
            runs=settings.runs,
            longest_s=settings.longest_s,
            on_result=lambda made: _show(made, progress, as_json=as_json, bar=bar),
        )
    if as_json:
        shown = dataclasses.asdict(summary) | {"tried": summary.tried, "flake_rate": summary.flake_rate}
        print_json(shown)
    else:
        print_summary(summary, out)
    return bool(summary.tasks)


def _sources(wanted: Wanted, settings: Settings, limit: int | None) -> list[Source]:
    named = [wanted.releases, wanted.history, wanted.inject, wanted.recipe]
    if sum(name is not None for name in named) != 1:
        raise GagarError("say what to make tasks from: one of --from-releases, --from-history, --inject, --recipe")
    if wanted.recipe is not None:
        return read_recipe(wanted.recipe, settings)
    if wanted.releases is not None:
        return [release_source(*wanted.releases, settings)]
    given: dict[str, object] = {"seed": wanted.seed}
    if wanted.kinds:
        given["kinds"] = tuple(wanted.kinds)
    if limit is not None:
        given["limit"] = limit
    if wanted.history is not None:
        return [repo_source("history", wanted.history, given, settings)]
    return [repo_source("inject", str(wanted.inject), given, settings)]


def _show(made: Made, progress: Progress, *, as_json: bool, bar: object) -> None:
    if made.task is not None:
        progress.update(bar, advance=1, description=made.id)  # type: ignore[arg-type]
    if as_json:
        return
    if made.task is None:
        progress.console.print(
            f"[yellow]no  [/] {escape(f'{made.id}: {made.detail}')}", highlight=False, soft_wrap=True
        )
        return
    flaky = f", {made.flaky and len(made.flaky)} flaky left out" if made.flaky else ""
    progress.console.print(
        f"[green]task[/] {made.id}  ({counted(made.fail_to_pass, 'test')} to fix, {made.pass_to_pass} to keep{flaky}; "
        f"{made.seconds:.0f} s)",
        highlight=False,
    )


def print_summary(summary: Summary, out: Path) -> None:
    """Print what a set has and what was refused."""
    for source, why in summary.explained.items():
        console.print(f"[yellow]refused[/] {escape(f'{source}: {why}')}", highlight=False, soft_wrap=True)
    libraries = ", ".join(f"{name or 'other'} {count}" for name, count in summary.libraries.items())
    made = f"{counted(len(summary.tasks), 'task')} in {out}" + (f": {libraries}" if libraries else "")
    console.print(made, markup=False, soft_wrap=True)
    refused = {**summary.refused}
    for reason, count in summary.sources.items():
        refused[reason] = refused.get(reason, 0) + count
    if refused:
        console.print("refused: " + ", ".join(f"{count} {reason}" for reason, count in refused.items()))
    console.print(
        f"{summary.seconds:.1f} s of checking for a task; flaky: {summary.flaky} of {counted(summary.tests, 'test')} "
        f"({summary.flake_rate:.2%}); {summary.wall_seconds:.0f} s in all",
        highlight=False,
    )
    if summary.tasks:
        console.print(f"next: gagar check --task-file {out}", highlight=False, markup=False)
