"""The command `gagar`."""

from __future__ import annotations

import logging
import sys

from gagar_env.cli.app import app
from gagar_env.cli.output import errors
from gagar_env.errors import GagarError


def main() -> None:
    """Run the command line. Errors are one line and exit code 1; `--debug`, anywhere, shows the traceback."""
    debug = "--debug" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--debug"]
    logging.basicConfig(level=logging.DEBUG if debug else logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        app()
    except (GagarError, OSError) as error:
        if debug:
            raise
        text = " ".join(str(error).split())
        errors.print(f"gagar: {text}", style="bold red", markup=False, highlight=False, soft_wrap=True)
        sys.exit(1)


__all__ = ["main"]
