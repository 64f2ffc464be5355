"""Faults of task files as one line: what is wrong, in which field, and the nearest right name."""

from __future__ import annotations

import difflib
from collections import Counter
from pathlib import PurePosixPath
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from gagar_env.errors import TaskError
from gagar_env.tasks.task import Tests

Model = TypeVar("Model", bound=BaseModel)


def validated(model: type[Model], data: object, where: str) -> Model:
    """Build `model` from `data`.

    Raises:
        TaskError: One line that names `where`, each wrong field (at most three) and its fault.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise TaskError(f"{where}: {_faults(error, model)}") from None


def did_you_mean(name: str, known: list[str]) -> str:
    """` (did you mean 'x'?)` with up to three near names; empty when none is near."""
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""


def check_relative(path: str, where: str) -> str:
    """Return `path` if it is relative and stays inside the repository.

    Raises:
        TaskError: Naming `where` if it is not.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise TaskError(f"{where}: {path!r} is not a path inside the repository")
    return path


def check_tests(tests: Tests, where: str) -> None:
    """Find what is wrong with tests whatever they run on: a test that is listed twice, a path that leads elsewhere.

    Raises:
        TaskError: Naming the field.
    """
    named = (*tests.fail_to_pass, *tests.pass_to_pass)
    if twice := sorted(test for test, times in Counter(named).items() if times > 1):
        raise TaskError(f"{where}: tests: {twice[0]!r} is listed twice")
    for field, paths in (("files", tests.files), ("support", tests.support)):
        for path in paths:
            check_relative(path, f"{where}: tests.{field}")


def _faults(error: ValidationError, model: type[BaseModel]) -> str:
    faults = error.errors(include_url=False)
    shown = [_fault(fault["loc"], fault["type"], fault["msg"], model) for fault in faults[:3]]
    more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""
    return "; ".join(shown) + more


def _fault(loc: tuple[int | str, ...], kind: str, message: str, model: type[BaseModel]) -> str:
    field = ".".join(map(str, loc)) or "the record"
    if kind == "extra_forbidden":
        return f"{field}: unknown field{did_you_mean(str(loc[-1]), _names(model, loc[:-1]))}"
    if kind == "string_pattern_mismatch" and field == "id":
        message = "must be letters, digits and . _ + -, with / between parts"
    message = message.removeprefix("Value error, ")
    return f"{field}: {message[:1].lower()}{message[1:]}"


def _names(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    for part in loc:
        field = model.model_fields.get(str(part))
        if field is None or not isinstance(field.annotation, type):
            return []
        if not issubclass(field.annotation, BaseModel):
            return []
        model = field.annotation
    return list(model.model_fields)
