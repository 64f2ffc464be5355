from pathlib import Path
from typing import Any

import pytest

TOML = """\
schema_version = 1
id = "tiny-add"
title = "add subtracts"
tags = ["bug"]

[tests]
files = ["tests/test_calc.py"]
fail_to_pass = ["tests/test_calc.py::test_add"]
pass_to_pass = ["tests/test_calc.py::test_zero"]
timeout_s = 30

[environment]
requirements = ["pytest==9.2.0"]
pythonpath = ["src"]
"""
FILES = {
    "task.toml": TOML,
    "issue.md": "add(1, 2) gives -1.\n",
    "solution.patch": "diff --git a/src/calc.py b/src/calc.py\n",
    "solutions/clean-plus.patch": "p1",
    "solutions/wrong-minus.patch": "p2",
    "repo/src/calc.py": "def add(a, b):\n    return a - b\n",
    "tests/tests/test_calc.py": "def test_add(): ...\n",
}


@pytest.fixture
def make_folder(tmp_path: Path):
    """Writes a small task folder; a value of None leaves that file out."""

    def make(name: str = "tiny-add", **changed: str | None) -> Path:
        folder = tmp_path / name
        files: dict[str, Any] = {**FILES, **{k.replace("__", "/"): v for k, v in changed.items()}}
        for path, text in files.items():
            if text is not None:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text, "utf-8")
        return folder

    return make


@pytest.fixture
def toml() -> str:
    return TOML


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch):
    """A registry of this test alone, without plug-ins."""
    from gagar_env.tasks import registry as module

    fresh = module._Registry()
    monkeypatch.setattr(module, "_registry", fresh)
    return module
