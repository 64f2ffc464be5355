"""The command `gagar`."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import NoReturn

from gagar_env.cli.app import app
from gagar_env.cli.output import errors, print_anything
from gagar_env.errors import GagarError

INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended."""


def main() -> None:
    """Run the command line. An error is one line; `--debug`, anywhere, shows the traceback.

    Exit codes: 0 it worked, 1 it did not, 2 the command line is wrong, 130 interrupted.
    """
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    _log(debug)
    print_anything()
    try:
        code = app(prog_name="gagar", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has gone, as `head` does: nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error; its class depends on the version of typer
            _usage(error)
        if type(error).__name__ == "Abort":
            _fail("interrupted", INTERRUPTED)
        if debug:
            raise
        if isinstance(error, OSError) and error.filename is not None:
            _fail(f"{error.filename}: {error.strerror}", 1)
        if isinstance(error, (GagarError, OSError)):
            _fail(str(error), 1)
        _fail(f"unexpected {type(error).__name__}: {error} (--debug shows where)", 1)
    except KeyboardInterrupt:
        _fail("interrupted", INTERRUPTED)
    if code == INTERRUPTED:  # what typer makes of it, by its version: this, Abort, or nothing
        _fail("interrupted", INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Exception) -> NoReturn:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        sys.exit(2)
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    _fail(f"{error.format_message().rstrip('.')}{hint}", 2)  # type: ignore[attr-defined]


def _fail(text: str, code: int) -> NoReturn:
    line = " ".join(text.split())
    errors.print(f"gagar: {line}", style="bold red", markup=False, highlight=False, soft_wrap=True)
    sys.exit(code)


def _log(debug: bool) -> None:
    """Warnings as one line each, and each once: the members of a group often say the same."""
    handler = logging.StreamHandler(sys.stderr)
    if not debug:
        handler.setFormatter(_OneLine())
        handler.addFilter(_Once())
        warnings.showwarning = _as_log
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, handlers=[handler])


def _as_log(message: Warning | str, *_: object, **__: object) -> None:
    """Python's own warnings as the others, without file and source line."""
    logging.getLogger(__name__).warning("%s", message)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return "warning: " + " ".join(record.getMessage().split())


class _Once(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        new = text not in self._seen
        self._seen.add(text)
        return new


__all__ = ["main"]
