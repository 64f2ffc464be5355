"""Options that several commands take."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gagar_env.errors import GagarError

if TYPE_CHECKING:
    from gagar_env.flag_policy import FlagPolicy


def finite(value: float | None) -> float | None:
    """Refuse a number that is infinite, or none at all."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value:g} is no number: give a finite one")
    return value


def seconds(value: float | None) -> float | None:
    """Refuse more seconds than can be waited for."""
    if value is not None and not value <= threading.TIMEOUT_MAX:
        raise typer.BadParameter(f"{value:g} seconds cannot be waited for: give fewer, or leave it out for no limit")
    return value


Seed = Annotated[int, typer.Option(min=0, help="Same seed, same groups, with a policy that depends on its seed alone.")]
GroupSize = Annotated[int, typer.Option(min=1, help="Episodes of one task that are compared: a group.")]
Sandbox = Annotated[
    str,
    typer.Option(
        help="bwrap, process (isolates nothing), rootfs or docker; auto: the first of bwrap and process that works, "
        "for a task with an image the first of rootfs and docker."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
TaskFile = Annotated[
    Path | None,
    typer.Option(
        help="Rows of a public set, or tasks: .jsonl, .json, .parquet, a folder of tasks, or the name of a data set,"
        " org/name:split."
    ),
]
Skip = Annotated[Path | None, typer.Option(help="A file of `check --quarantine`, or of ids: these are left out.")]
Repo = Annotated[
    Path | None,
    typer.Option(
        help="Where the repositories of --task-file are: a clone, a folder of them, or a URL before owner/name."
    ),
]
Grader = Annotated[str, typer.Option(help="rule, agentic, listwise, none, or module:Name of yours.")]
GraderModel = Annotated[
    str, typer.Option(help="For --grader agentic or listwise: a model, or provider:name without --grader-url.")
]
GraderUrl = Annotated[str, typer.Option(help="Its OpenAI-compatible endpoint.")]
GraderOutput = Annotated[
    str, typer.Option(help="For --grader agentic: tool, or json_schema or prompted where tools cannot be called.")
]
GraderFallback = Annotated[str, typer.Option(help="Ranks where --grader fails: rule, say.")]
Sessions = Annotated[
    bool,
    typer.Option("--grader-sessions", help="Record the conversations of --grader agentic, for `gagar grader export`."),
]
Temperature = Annotated[
    str, typer.Option("--temperature", help="For --policy chat: a number, or none to send none; default 1.")
]
NoSeed = Annotated[bool, typer.Option("--no-seed", help="For --policy chat: send no seeds.")]
GraderNoSeed = Annotated[bool, typer.Option("--grader-no-seed", help="Send a grader's model no seeds.")]
GraderTemperature = Annotated[
    str, typer.Option("--grader-temperature", help="Of a grader's model: a number, or none to send none; default 0.")
]
GraderOrders = Annotated[
    int | None, typer.Option("--grader-orders", min=1, help="Most votes of a grader's model on one group.")
]
GraderRubric = Annotated[
    Path | None, typer.Option("--grader-rubric", help="For --grader agentic: a file that says what is good.")
]
BudgetTokens = Annotated[
    int | None,
    typer.Option("--budget-tokens", min=1, help="Of the grader's model over the whole run; then advantages are plain."),
]
BudgetUsd = Annotated[
    float | None, typer.Option("--budget-usd", min=0.0, help="The same in USD, where the price of the model is known.")
]
Policy = Annotated[str, typer.Option(help="sample, reference, noop, replay, chat, or module:Name of yours.")]
Replay = Annotated[
    Path | None,
    typer.Option(help='For --policy replay: JSONL of {"task": ID, "patch": TEXT} or {"task": ID, "actions": [...]}.'),
]
Model = Annotated[str, typer.Option(help="For --policy chat: name of the model. Key: OPENAI_API_KEY.")]
ModelUrl = Annotated[str, typer.Option(help="For --policy chat: an OpenAI-compatible endpoint; default OpenAI's.")]
ContextTokens = Annotated[
    int | None, typer.Option(min=1, help="For --policy chat: what the model can read and write; default 32768.")
]
NativeTools = Annotated[bool, typer.Option("--native-tools", help="For --policy chat: let the model call tools.")]
Turns = Annotated[
    int | None, typer.Option(min=1, help="Commands of an episode at the most; default: what each task says.")
]
Base = Annotated[
    str, typer.Option(help="Advantages from test results: grpo, dr_grpo or rloo. Default: grpo, or as in the run.")
]
Scheme = Annotated[
    str, typer.Option(help="Weights from ranks: linear, geometric or tiers. Default: linear, or as in the run.")
]
Strength = Annotated[
    float | None, typer.Option(help="How far weights move, in [0, 1). Default: 0.5, or as in the run.")
]
Preserve = Annotated[str, typer.Option(help="Which sum stays, episode or token. Default: episode, or as in the run.")]
Flags = Annotated[
    str, typer.Option(help="What a flag does to a pass: flag, zero or mask; or by kind: always_equal=zero,*=flag.")
]


def given_grading(options: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `grade_group` among options of a command: those that were given.

    Raises:
        GagarError: If one is none, or out of range.
    """
    from gagar_env.group_checks import check_grading

    given = {name: options[name] for name in ("base", "scheme", "strength", "preserve")}
    given = {name: value for name, value in given.items() if value not in ("", None)}
    try:
        check_grading(given)
    except ValueError as error:
        raise error if isinstance(error, GagarError) else GagarError(str(error)) from error
    return given


def given_flags(text: str) -> FlagPolicy:
    """What `--flags` says.

    Raises:
        GagarError: If that is none.
    """
    from gagar_env.flag_policy import read_flag_policy

    try:
        return read_flag_policy(text)
    except ValueError as error:
        raise GagarError(f"--flags {text}: {error}") from error
