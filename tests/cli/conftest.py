"""`gagar` as a user runs it, in a folder of its own."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def gagar(tmp_path):
    def run(*arguments, expect=0, **env):
        done = subprocess.run(
            [sys.executable, "-m", "gagar_env", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "120", **env},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def one_line():
    """The single line of an error: no traceback, nothing else."""
    return _one_line


def _one_line(done):
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("gagar: ")
    assert done.stdout == ""
    return lines[0]
