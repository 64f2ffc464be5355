"""Temporary folders of workers: those of dead ones are removed, whoever looks, and no others. No cluster is needed."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gagar_env.errors import SandboxError
from gagar_env.integrations import ray_rooms

ROOT = Path(__file__).parents[2]
WORKER = """
import sys, tempfile
from gagar_env.integrations.ray_rooms import Room
room = Room()
open(tempfile.mkdtemp() + "/workspace", "w").close()
print(room.path, flush=True)
sys.stdin.read()
room.close()
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(ray_rooms, "_containers", list)  # an engine's are those of other tests
    return tmp_path


def worker():
    program = [sys.executable, "-c", WORKER]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(program, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_dist_1_a_room_is_reaped_once_its_worker_is_dead_and_not_before():
    with worker() as living, worker() as dying:
        rooms = [Path(process.stdout.readline().strip()) for process in (living, dying)]
        assert ray_rooms.reap() == ([], 2)
        assert all(list(room.iterdir()) for room in rooms)
        dying.send_signal(signal.SIGKILL)
        dying.wait()
        assert ray_rooms.reap() == ([str(rooms[1])], 1)
        assert (rooms[0].exists(), rooms[1].exists()) == (True, False)
        living.communicate()
    assert list(ray_rooms.rooms_root().iterdir()) == []
    assert ray_rooms.reap() == ([], 0)


def test_a_room_is_where_temporary_files_go_until_it_is_closed(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    room = ray_rooms.Room()
    try:
        assert Path(tempfile.mkdtemp()).parent == room.path
    finally:
        room.close()
        room.close()
    assert not room.path.exists()
    assert ray_rooms.reap() == ([], 0)


def test_what_somebody_else_put_there_is_not_used(place):
    (place / "elsewhere").mkdir()
    (place / f"gagar-rooms-{os.geteuid()}").symlink_to(place / "elsewhere")
    with pytest.raises(SandboxError, match="is no folder of this user: remove it"):
        ray_rooms.Room()
