"""Every example runs as a user would run it, at its smoke size."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_example(script, tmp_path):
    done = subprocess.run(
        [sys.executable, str(script), "--smoke"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_examples_are_short():
    for script in EXAMPLES:
        assert len(script.read_text().splitlines()) <= 150, script
