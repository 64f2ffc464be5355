"""`benchmarks/scale.py`: the real scheduler under a simulated clock."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scale.py"
REAL = {"driver_us_per_event", "driver_events_per_s", "driver_busy"}


def simulated(*words):
    command = [sys.executable, SCRIPT, "--nodes", "4", "--slots", "16", "--hours", "1", "--no-sweep", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


@pytest.mark.slow
def test_a_small_cluster_is_full_loses_nothing_and_is_the_same_each_time():
    first, second = (json.loads(simulated("--json", "--loss-a-day", "0")) for _ in range(2))
    found = first["result"]
    assert {k: v for k, v in found.items() if k not in REAL} == {
        k: v for k, v in second["result"].items() if k not in REAL
    }
    assert 0.8 < found["sandbox_utilisation"] <= 1
    assert 0 < found["group_latency_p50_s"] < found["group_latency_p99_s"]
    assert (found["nodes_lost"], found["retried"], found["masked"]) == (0, 0, 0)
    assert found["groups"] > 20
    assert first["driver"]["running"] == 64
    assert first["driver"]["driver_mb_at_most"] > 0


@pytest.mark.slow
def test_lost_nodes_cost_attempts_and_no_group():
    found = json.loads(simulated("--json", "--loss-a-day", "12"))["result"]
    assert found["nodes_lost"] > 0
    assert found["retried"] > 0
    assert found["groups"] > 20


@pytest.mark.slow
def test_the_table_names_what_was_asked_for():
    text = simulated("--leg", "grade_median_s=600")
    assert text.startswith("4 nodes of 16 sandboxes and 32 processors, 1 hours")
    assert "64 sandboxes" in text
    assert "driver's memory, measured" in text
