"""`gagar run` with loggers and an endpoint that is read while it runs."""

import json
import subprocess
import sys
import time
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

RUN = ["--groups", "3", "--group-size", "2", "--tasks", "ledger-rounding", "--seed", "3", "--parallel", "1"]


@pytest.mark.slow
def test_a_run_is_logged_and_can_be_scraped(tmp_path):
    out = tmp_path / "run"
    command = [sys.executable, "-m", "gagar_env", "run", *RUN, "--out", str(out), "--prometheus", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said = process.stderr.readline()
        assert said.startswith("numbers for Prometheus: http://127.0.0.1:"), said
        address = said.split()[-1]
        seen, levels = {}, set()
        while process.poll() is None and sum(seen.values()) < 1:  # until the first group has ended
            try:
                text = urllib.request.urlopen(address, timeout=30).read().decode()
            except OSError:  # the run is over
                break
            families = {family.name: family for family in text_string_to_metric_families(text)}
            seen = {
                sample.labels["reason"]: sample.value
                for sample in families["gagar_groups"].samples
                if "reason" in sample.labels and sample.name.endswith("_total")
            }
            levels |= {sample.labels["name"] for sample in families["gagar_level"].samples}
            assert families["gagar_live_sandboxes"].samples[0].value >= 0
            time.sleep(0.05)
        stdout, stderr = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, stderr
    assert "Prometheus" not in stdout
    assert sum(seen.values()) >= 1, "no group was seen while the run was on"
    assert {"waiting", "acting", "to_grade", "verifying"} <= levels, "what the pipeline is at"
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert rows[-1]["total/groups"] == 3
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(out))
    board.Reload()
    for name in ("pass_rate", "total/episodes", "seconds/verify"):
        shown = [(event.step, event.value) for event in board.Scalars(name)]
        assert shown == [(row["step"], pytest.approx(row[name])) for row in rows]
