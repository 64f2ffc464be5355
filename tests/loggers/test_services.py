"""A run and its resumption in each service that is installed, without a network, read from the files that it leaves."""

import importlib.util
import json
import os
import struct
import subprocess
import sys

import pytest

LOG = """
import sys
from pathlib import Path
from gagar_env.loggers import get_logger
folder, first = Path(sys.argv[2]), int(sys.argv[3])
logger = get_logger(sys.argv[1], folder=folder, project="tests", settings={"group_size": 4}, first_step=first)
assert logger.names == (sys.argv[1],), logger.names
for step in (first, first + 2, first + 1):  # groups end out of order
    logger.log(step, {"pass_rate": step / 8, "seconds/steps": 1.5, "nothing": float("nan")})
assert logger.names == (sys.argv[1],), logger.names
logger.close()
"""
INSTALLED = ["tensorboard", *(name for name in ("wandb", "trackio") if importlib.util.find_spec(name))]
"""The other two are not part of the extra `test`: trainers report to them unasked wherever they find them."""


def log(name, folder, first, env):
    done = subprocess.run(
        [sys.executable, "-c", LOG, name, str(folder), str(first)],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", "standard output belongs to the results of the run"
    return done


def records(data):
    """Of wandb's file (LevelDB's log format): after 7 bytes, blocks of 32 kB with pieces of checksum, length, kind."""
    place, whole = 7, b""
    while place + 7 <= len(data):
        length, kind = struct.unpack_from("<HB", data, place + 4)
        if kind:
            whole += data[place + 7 : place + 7 + length]
            if kind in (1, 4):  # all of it, or its last piece
                yield whole
                whole = b""
            place += 7 + length
        if not kind or 32768 - place % 32768 < 7:
            place += 32768 - place % 32768


def from_wandb(folder, env):
    from wandb.proto import wandb_internal_pb2

    ids = {path.name.rsplit("-", 1)[1] for path in folder.glob("wandb/offline-run-*")}
    assert ids == {(folder / "wandb-id").read_text().strip()}, "one run, both times"
    for file in sorted(folder.glob("wandb/offline-run-*/*.wandb")):
        for data in records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                yield {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in items}


def from_trackio(folder, env):
    read = "import json; from trackio.sqlite_storage import SQLiteStorage as S; "
    read += "print(json.dumps([S.get_runs('tests'), S.get_logs('tests', 'first')]))"
    done = subprocess.run(
        [sys.executable, "-c", read], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    runs, rows = json.loads(done.stdout)
    assert runs == ["first"], "one run, both times"
    return rows


def from_tensorboard(folder, env):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(folder))
    board.Reload()
    rows = {}
    for name in board.Tags()["scalars"]:
        for place, event in enumerate(board.Scalars(name)):
            rows.setdefault(place, {"step": event.step})[name] = event.value
    return rows.values()


READERS = {"wandb": from_wandb, "trackio": from_trackio, "tensorboard": from_tensorboard}


@pytest.mark.slow
@pytest.mark.parametrize("name", INSTALLED)
def test_a_run_and_its_resumption(name, tmp_path):
    env = {"HOME": str(tmp_path), "WANDB_MODE": "offline", "WANDB_SILENT": "true", "HF_HUB_OFFLINE": "1"}
    env["TRACKIO_DIR"] = str(tmp_path / "tracks")
    log(name, tmp_path / "first", 0, env)
    log(name, tmp_path / "first", 3, env)
    rows = list(READERS[name](tmp_path / "first", env))
    assert [(row["step"], row["pass_rate"]) for row in rows] == [(step, step / 8) for step in (0, 2, 1, 3, 5, 4)]
    assert {row["seconds/steps"] for row in rows} == {1.5}
    assert all("nothing" not in row for row in rows)
