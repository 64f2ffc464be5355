"""Loggers by name, and that none of them ends a run."""

import json
import logging
import math
import os
import threading

import numpy as np
import pytest

from gagar_env.errors import GagarError, MissingDependencyError, UnknownNameError
from gagar_env.loggers import JsonlLogger, Logger, MultiLogger, get_logger, known_numbers
from gagar_env.store import RunFolder


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line]


class Fails:
    """Works until `after` steps."""

    def __init__(self, after=0):
        self.steps, self.closed, self.after = [], 0, after

    def log(self, step, numbers):
        if len(self.steps) >= self.after:
            raise OSError(28, "No space left on device")
        self.steps.append(step)

    def close(self):
        self.closed += 1
        raise RuntimeError("broken pipe")


def test_only_what_a_curve_can_show_is_known():
    given = {"a": 1, "b": 0.5, "c": None, "d": math.nan, "e": -math.inf, "f": "text", "g": True, "h": 10**400}
    given |= {"i": np.float32(0.25), "j": np.array(2.0), "k": np.zeros(2), "l": np.int64(7), "m": [1], "n": b"1"}
    known = known_numbers(given)
    assert known == {"a": 1, "b": 0.5, "g": 1, "h": 10**400, "i": 0.25, "j": 2.0, "l": 7.0}
    assert type(known["a"]) is int
    assert json.loads(json.dumps(known)) == known


@pytest.mark.slow
def test_tensors_are_numbers_where_they_are_one():
    import torch

    given = {"a": torch.tensor(2.0, requires_grad=True), "b": torch.zeros(2), "c": torch.tensor(3), "d": torch.zeros(0)}
    assert known_numbers(given) == {"a": 2.0, "c": 3.0}


def test_one_that_fails_is_told_once_and_the_others_go_on(tmp_path, caplog):
    bad, good = Fails(after=1), JsonlLogger(tmp_path / "metrics.jsonl")
    assert isinstance(bad, Logger)
    assert isinstance(good, Logger)
    with caplog.at_level(logging.WARNING), MultiLogger({"bad": bad, "good": good}) as both:
        for step in range(4):
            both.log(step, {"a": step, "b": math.nan})
        assert both.names == ("good",)
    assert [(row["step"], row["a"]) for row in rows(tmp_path / "metrics.jsonl")] == [(n, n) for n in range(4)]
    assert [record.getMessage() for record in caplog.records] == [
        "logger bad failed and is left out from here on: OSError: [Errno 28] No space left on device"
    ]
    assert (bad.steps, bad.closed) == ([0], 1)


def test_a_logger_that_breaks_at_its_end_is_told_and_no_more(caplog):
    logger = MultiLogger([Fails(after=9)])
    logger.log(0, {"a": 1})
    logger.close()
    logger.close()
    logger.log(1, {"a": 1})
    assert len(caplog.records) == 1
    assert "broken pipe" in caplog.text


def test_threads_tear_no_line(tmp_path):
    logger = get_logger("jsonl", folder=tmp_path)
    threads = [
        threading.Thread(target=lambda n=n: [logger.log(n * 50 + i, {"x": 1}) for i in range(50)]) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    logger.close()
    assert sorted(row["step"] for row in rows(tmp_path / "metrics.jsonl")) == list(range(200))


def test_a_line_torn_by_a_kill_costs_only_itself(tmp_path):
    file = tmp_path / "metrics.jsonl"
    file.write_text('{"step": 0, "a": 1}\n{"step": 1, "a')
    logger = JsonlLogger(file)
    logger.log(1, {"a": 2})
    lines = file.read_text().splitlines()
    assert lines[1] == '{"step": 1, "a'
    assert json.loads(lines[2])["a"] == 2


def test_a_run_folder_has_its_metrics_whatever_is_named(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    with get_logger("none", run=folder) as logger:
        logger.log(3, {"pass_rate": 0.5, "nothing": math.nan})
    (row,) = folder.metrics()
    assert (row["step"], row["pass_rate"]) == (3, 0.5)
    assert "nothing" not in row


def test_a_run_folder_is_not_written_twice(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    with get_logger("jsonl,tensorboard", run=folder) as logger:
        assert logger.names == ("metrics.jsonl", "tensorboard")
        logger.log(0, {"pass_rate": 0.5})
    assert len(folder.metrics()) == 1
    assert list(folder.path.glob("events.out.tfevents.*"))


def test_wrong_names_and_missing_things_are_told_before_the_run(tmp_path, monkeypatch):
    with pytest.raises(UnknownNameError, match=r"no logger is called 'tensorbord'; there are tensorboard, wandb"):
        get_logger("tensorbord", folder=tmp_path)
    with pytest.raises(GagarError, match=r"logger tensorboard writes files and has no folder"):
        get_logger("tensorboard")
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(GagarError, match=r"logger jsonl: .* cannot be written"):
        get_logger("jsonl", folder=blocked)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("wandb", "trackio"):
        with pytest.raises(MissingDependencyError, match=rf"pip install 'gagar-env\[{name}\]'"):
            get_logger(name, folder=tmp_path)


def test_none_is_none(tmp_path):
    for names in ("", "none", " , ", []):
        with get_logger(names) as logger:
            assert logger.names == ()
            logger.log(0, {"a": 1})
    assert os.listdir(tmp_path) == []
