"""The commands `gagar runs list`, `show` and `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gagar_env.cli.options import AsJson

Run = Annotated[Path, typer.Argument(help="A folder of `gagar run --out`.")]


def runs_list(
    folder: Annotated[Path, typer.Argument(help="Where to look: there and in all folders below.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """List runs: how many groups they have, how many episodes passed, and whether they are complete."""
    from gagar_env.cli import runfolders

    runfolders.show_list(folder, as_json=as_json)


def runs_show(run: Run, as_json: AsJson = False) -> None:
    """Show a run: its summary and its groups; with --json every final advantage."""
    from gagar_env.cli import runfolders

    runfolders.show(run, as_json=as_json)


def runs_verify(run: Run, as_json: AsJson = False) -> None:
    """Check a run: every episode is there, and every advantage follows from what is recorded. Exit code 1: not so."""
    from gagar_env.cli import runfolders

    if not runfolders.verify(run, as_json=as_json):
        raise typer.Exit(1)
