"""The everyday size of `benchmarks/soak.py`: episodes side by side, some of them killed, leave nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from gagar_env.sandbox import why_unavailable

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "bwrap",
        pytest.param("rootfs", marks=pytest.mark.docker),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
)
def test_soak(kind, request, tmp_path):
    image = "" if kind == "bwrap" else request.getfixturevalue("test_image")
    if reason := why_unavailable(kind):
        pytest.skip(f"{kind} does not work here: {reason}")
    command = [sys.executable, ROOT / "benchmarks/soak.py", "--episodes=20", "--threads=4", f"--sandbox={kind}"]
    if image:
        command.append(f"--image={image}")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "left behind" in done.stdout
