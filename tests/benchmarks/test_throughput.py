"""`benchmarks/throughput.py` at its smallest: what this machine can run earns its rewards and has its line."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(tmp_path, *arguments):
    out = tmp_path / "found.json"
    script = ROOT / "benchmarks/throughput.py"
    command = [sys.executable, script, "--quick", "--json", out, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads(out.read_text("utf-8"))


@pytest.mark.slow
def test_local_work_is_measured_and_the_goals_are_printed(tmp_path):
    text, found = run(tmp_path, "--parts", "local", "own", "concurrent", "tree")
    for leg in ("gagar/bwrap", "gagar/bwrap:cold"):
        assert found["local"][leg]["rate"] > 0, found["left_out"]
        assert found["local"][leg]["cpu_ms"] > 0
    for leg in ("mini/local", "rex/local"):  # the peers are installed by hand
        assert (leg in found["local"]) != (leg in found["left_out"])
    assert found["own"].keys() >= {"gagar/bwrap:script", "bare/script", "gagar/bwrap:unverified", "bare/all"}
    assert list(found["concurrent"]["gagar/bwrap"]) == ["1", "2"]
    assert list(found["tree"]["gagar/bwrap"]) == ["100", "200"]
    goals = {goal["goal"]: goal for goal in found["goals"]}
    assert goals["our own CPU ms an episode"]["value"] is not None
    assert goals["images, episodes a second"]["met"] is None
    assert found["left_out"]["images"] == "not asked for"
    assert "not measured" in text


def test_the_page_names_options_that_there_are():
    lines = re.findall(r"^python (benchmarks/\S+)(.*)$", (ROOT / "docs/performance.md").read_text("utf-8"), re.M)
    assert lines
    for script, options in lines:
        text = (ROOT / script).read_text("utf-8")
        assert all(f'"{option}"' in text for option in re.findall(r"--[a-z-]+", options)), options


@pytest.mark.docker
@pytest.mark.slow
def test_images_are_measured(tmp_path, test_image):
    _, found = run(tmp_path, "--image", test_image, "--parts", "image")
    assert {"gagar/rootfs", "gagar/docker", "gagar/docker:pool"} <= found["image"].keys(), found["left_out"]
    assert all(row["cpu_ms"] > 0 for row in found["image"].values())
    assert "concurrent" not in found
