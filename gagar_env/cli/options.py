"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Seed = Annotated[int, typer.Option(min=0, help="Same seed, same ranks and advantages.")]
GroupSize = Annotated[int, typer.Option(min=1, help="Episodes of one task that are compared: a group.")]
Sandbox = Annotated[
    str, typer.Option(help="auto, bwrap, rootfs, docker or process; auto takes the strongest that works.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TaskFile = Annotated[
    Path | None, typer.Option(help="A JSON or JSONL file of SWE-bench records or tasks, or a folder of tasks.")
]
Repo = Annotated[
    Path | None, typer.Option(help="Where the repositories of --task-file are: a clone, or a folder of them.")
]
Sessions = Annotated[
    bool,
    typer.Option("--grader-sessions", help="Record the conversations of --grader agentic, for `gagar grader export`."),
]
