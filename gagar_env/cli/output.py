"""Where the commands print: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

console = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """Print one JSON document, strict: numbers that JSON does not have are an error."""
    print(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))  # noqa: T201 - the command's result
