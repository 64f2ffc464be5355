"""Built-in tasks, as data: one folder each. Their tests fail at base on purpose and are not this package's tests."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parent
