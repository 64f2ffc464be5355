"""JSON files with readable errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chores.errors import StoreError


def format_json(data: Any) -> str:
    """Return data as text that is easy to read and to compare."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def read_json(path: Path, default: Any) -> Any:
    """Return the data in a file, or ``default`` if there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise StoreError(f"{path} is not valid JSON: {error}") from error
