"""The command `gagar runs export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer
from rich.progress import TextColumn, TimeElapsedColumn

from gagar_env.cli.options import AsJson
from gagar_env.cli.output import console, counted, errors, print_json, progress_line
from gagar_env.errors import GagarError


def export(
    run: Annotated[Path, typer.Argument(help="A folder of `gagar run --out`.")],
    format: Annotated[str, typer.Option(help="parquet, datasets, openai, traj or predictions.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A file or folder that is not there yet.")],
    only: Annotated[
        str, typer.Option(help="all episodes, kept ones (what a learner trains on), or those that passed.")
    ] = "all",
    pick: Annotated[
        str, typer.Option(help="Of the episodes of each task: all, the first, or the best by tests and rank.")
    ] = "all",
    force: Annotated[bool, typer.Option("--force", help="Replace what an earlier export has written there.")] = False,
    model_name: Annotated[str, typer.Option(help="For predictions, in place of the policy's name.")] = "",
    system: Annotated[
        Path | None, typer.Option(help="For openai: a file with the system prompt, which a record does not have.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a run as Parquet, as a data set, as chats, as .traj files, or as predictions for SWE-bench's harness."""
    from gagar_env.exports import export_run
    from gagar_env.exports.records import Only, Pick

    for given, flag, fits in ((model_name, "--model-name", "predictions"), (system, "--system", "openai")):
        if given and format != fits:
            raise GagarError(f"{flag} is for --format {fits}, not for --format {format}")
    prompt = _text(system) if system is not None else ""
    with progress_line(TextColumn("{task.completed} episodes"), TimeElapsedColumn()) as progress:
        bar = progress.add_task("", total=None)
        summary = export_run(
            run,
            out,
            format=format,
            only=cast(Only, only),
            pick=cast(Pick, pick),
            force=force,
            model_name=model_name,
            system_prompt=prompt,
            on_episode=lambda _: progress.update(bar, advance=1),
        )
    if as_json:
        left_out = list(summary.left_out)
        print_json({"format": format, "path": str(out), "episodes": summary.episodes, "left_out": left_out})
    else:
        console.print(f"{counted(summary.episodes, 'episode')} written to {out}", markup=False, highlight=False)
    for line in summary.left_out:
        errors.print(f"gagar: {line}", style="yellow", markup=False, highlight=False, soft_wrap=True)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise GagarError(f"--system {path}: is not valid UTF-8") from None
