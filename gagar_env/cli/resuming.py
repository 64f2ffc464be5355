"""`gagar run --resume`: what a run was begun with is in its folder, and flags may repeat it, not contradict it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import typer
from pydantic import TypeAdapter, ValidationError

from gagar_env.errors import GagarError
from gagar_env.store import RunFolder

FREE: Final = frozenset({"parallel", "as_json", "log", "prometheus", "model_url", "grader_url"})
"""Options that may be others: no group depends on them. A model may have moved."""
_NOT_KEPT: Final = frozenset({"as_json", "out", "resume"})
_PATHS: Final = frozenset({"replay", "task_file", "repo", "skip", "grader_rubric"})
_COMMAND: Final = "run"
_USER: Final = re.compile("://[^/?#]*@")


def stored(options: Mapping[str, Any]) -> dict[str, Any]:
    """What a folder shall say of the options of its run, as plain JSON; without passwords of addresses."""
    kept = {name: _plain(value) for name, value in options.items() if name not in _NOT_KEPT}
    return {"command": _COMMAND, "cwd": os.getcwd(), **kept}


def go_on(context: typer.Context, options: Mapping[str, Any]) -> tuple[RunFolder, dict[str, Any]]:
    """The run that `options["resume"]` names, and the options that it was begun with.

    The working folder is the one that it was begun in, if that is still there: files and modules are found as then.

    Raises:
        GagarError: If there is no such run, or a flag contradicts it.
    """
    path = Path(options["resume"]).absolute()
    folder = RunFolder.open(path)
    settings = folder.settings
    if settings.get("command") != _COMMAND or "graded_from" in settings or "task_ids" not in settings:
        raise GagarError(f"--resume {path}: it does not say what it was made with; `gagar run --out` writes such runs")
    out = options.get("out")
    if out is not None and Path(out).absolute() != path:
        raise GagarError(f"--resume {path} goes on there: leave out --out {out}")
    found = dict(options)
    hints = get_type_hints(context.command.callback, include_extras=True)
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in _NOT_KEPT or name not in options:
            continue
        then = settings.get(name, _plain(parameter.default))  # an older run had no such option
        if name in settings and not _fits(hints[name], then):
            raise GagarError(f"--resume {path}: run.json is damaged: {parameter.opts[0]} cannot be {_said(then)}")
        free = name in FREE and not (name == "parallel" and settings.get("curriculum"))
        given = context.get_parameter_source(name)
        if given is not None and given.name == "COMMANDLINE":
            if free:
                continue
            if _plain(options[name]) != then:
                raise GagarError(
                    f"--resume {path}: the run was begun with {parameter.opts[0]} {_said(then)}, "
                    f"not {_said(_plain(options[name]))}: leave it out"
                )
        found[name] = Path(then) if name in _PATHS and then is not None else then
    cwd = settings.get("cwd")
    if isinstance(cwd, str) and Path(cwd).is_dir():
        os.chdir(cwd)
    return folder, found


def _fits(hint: Any, value: Any) -> bool:
    """Whether a value that a file holds is one that the option of that annotation can have."""
    kind, option = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
    try:
        TypeAdapter(kind).validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return False
    low, high = (getattr(option, name, None) for name in ("min", "max"))
    return value is None or ((low is None or value >= low) and (high is None or value <= high))


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _without_password(value) if isinstance(value, str) else value


def _without_password(text: str) -> str:
    return _USER.sub("://", text)


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "unset" if value in (None, "") else str(value)
