"""Where the commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import shutil
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.progress import Progress, ProgressColumn

from gagar_env.errors import GagarError

console = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """Print one JSON document, strict: numbers that JSON does not have are an error, and lone surrogates replaced."""
    from gagar_env.store.exact import clean  # late: every command prints, few print this

    text = clean(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))
    if (sys.stdout.encoding or "").lower().replace("-", "") != "utf8":
        text = json.dumps(json.loads(text), indent=2)
    print(text)  # noqa: T201 - the command's result


def print_anything() -> None:
    """Write what the encoding of standard output does not have as escapes: no name of a file ends a command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def progress_line(*columns: ProgressColumn) -> Progress:
    """A line that tells how far a command is, on a terminal only, and gone when it ends."""
    return Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)


@contextlib.contextmanager
def errors_only(logger: str) -> Iterator[None]:
    """Leave the warnings of a part of the package to the command, which says at its end what became of everything."""
    chosen = logging.getLogger(logger)
    before = chosen.level
    chosen.setLevel(logging.ERROR)
    try:
        yield
    finally:
        chosen.setLevel(before)


def need_git() -> None:
    """Say so at once if git is missing, and not once for each episode.

    Raises:
        GagarError: If it is.
    """
    if shutil.which("git") is None:
        raise GagarError("git is not on PATH, and everything needs it: install it (apt-get install git)")


def one_line(text: str) -> str:
    """A message of somebody else, without its line ends."""
    return " ".join(text.split())


def counted(number: int, what: str) -> str:
    """`1 group`, `2 groups`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
