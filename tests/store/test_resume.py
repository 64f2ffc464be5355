"""`gagar run --resume`: real runs, killed for real, end as if nothing had happened."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import NamedTuple

import pytest

from gagar_env.jobs import group_seed
from gagar_env.store import RunFolder, summarize, verify_run
from gagar_env.store.lock import is_driven

pytestmark = pytest.mark.slow

POLICY = """
from gagar_env.agents.policies import NoopPolicy, ReferencePolicy, SamplingPolicy

class Mixed:
    name = "mixed"

    def start(self, *, task, actions, seed):
        kind = (ReferencePolicy, NoopPolicy, SamplingPolicy)[seed % 3]
        return kind().start(task=task, actions=actions, seed=seed)
"""
TASKS = ("--tasks", "feed-missing-filter", "--tasks", "ledger-rounding")
BASE = ("run", *TASKS, "--policy", "ours:Mixed", "--group-size", 3, "--seed", 5)
GROUPS = 10


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    place = tmp_path_factory.mktemp("resume")
    (place / "ours.py").write_text(POLICY)

    def start(*arguments, where=place):
        return subprocess.Popen(
            [sys.executable, "-m", "gagar_env", *map(str, arguments)],
            cwd=where,
            env={**os.environ, "COLUMNS": "120"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    start.place = place
    return start


@pytest.fixture(scope="module")
def gagar(start):
    def run(*arguments, code=0, **options):
        each = start(*arguments, **options)
        out, err = each.communicate(timeout=300)
        assert each.returncode == code, out + err
        return out + err

    return run


def content(path):
    """All that a run has come to, by number of the group, without ids and times."""
    folder = RunFolder.open(path)
    found = {}
    for record in folder.records():
        assert record.attempt not in found, f"group {record.attempt} is there twice"
        result = record.result
        assert result.group_id == f"{folder.id}-{record.attempt:06d}"
        members = [folder.episode(episode_id) for episode_id in result.episode_ids]
        assert [e.id for e in members] == [f"{result.group_id}-{place}" for place in range(len(members))]
        found[record.attempt] = {
            "numbers": result.model_dump(exclude={"group_id", "episode_ids", "verdict", "seconds"}),
            "tiers": None if result.verdict is None else result.verdict.tiers,
            "members": [(e.seed, e.status, e.patch, [t.action for t in e.turns], e.report.outcome) for e in members],
        }
    assert {file.stem for file in (path / "episodes").glob("*.json")} == {
        f"{folder.id}-{number:06d}-{place}" for number in found for place in range(len(found[number]["members"]))
    }
    return found


class Whole(NamedTuple):
    """What a run comes to that nobody disturbs, and how long it takes."""

    content: dict
    seconds: float


@pytest.fixture(scope="module")
def whole(gagar, start):
    started = time.monotonic()
    gagar(*BASE, "--groups", GROUPS, "--out", "whole")
    return Whole(content(start.place / "whole"), time.monotonic() - started)


def wait_until_driven(path, process):
    """Until a process works on the run, or has ended."""
    deadline = time.monotonic() + 60
    while process.poll() is None and not is_driven(path):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_disk_2_runs_that_are_killed_twenty_times_end_as_one_that_is_not(gagar, start, whole):
    chance, kills, runs = random.Random(1), 0, 0
    while kills < 20:
        path = start.place / f"killed-{runs}"
        runs += 1
        code = None
        while code != 0:
            there = (path / "run.json").exists()
            each = start("run", "--resume", path) if there else start(*BASE, "--groups", GROUPS, "--out", path)
            if chance.random() < 0.8:  # else it is killed before it has begun, mostly
                wait_until_driven(path, each)
            try:
                each.wait(timeout=chance.uniform(0, 3 * whole.seconds / GROUPS) if kills < 20 else None)
            except subprocess.TimeoutExpired:
                os.killpg(each.pid, signal.SIGKILL)
                kills += 1
            out, err = each.communicate(timeout=60)
            code = each.returncode
            assert code in (0, -signal.SIGKILL), out + err
        assert content(path) == whole.content
        folder = RunFolder.open(path)
        assert summarize(folder).state == "complete"
        assert [fault for fault in verify_run(folder) if not fault.harmless] == []


def test_disk_2_what_a_kill_leaves_is_done_again_and_counted_once(gagar, start, whole, tmp_path):
    shutil.copytree(start.place / "whole", path := tmp_path / "run")
    lines = (path / "groups.jsonl").read_bytes().splitlines(keepends=True)
    (path / "groups.jsonl").write_bytes(b"".join(lines[:7]) + lines[7][:99])  # in the middle of a line
    (next((path / "episodes").iterdir()).with_name(".1-abc.part")).write_bytes(b"half")
    assert "10 groups" not in gagar("runs", "verify", path, code=1)
    said = gagar("run", "--resume", path, where=tmp_path)  # from elsewhere: it finds its policy
    assert "10 groups" in said
    assert content(path) == whole.content
    assert "2 left over" in gagar("runs", "verify", path)


def test_a_curriculum_goes_on_as_it_would_have(gagar, start, tmp_path):
    arguments = (*BASE, "--curriculum", "--groups", 7, "--parallel", 2)
    gagar(*arguments, "--out", "drawn")
    expected = content(start.place / "drawn")
    assert len({group["numbers"]["task_id"] for group in expected.values()}) == 2
    for kept in (0, 3, 7):
        shutil.copytree(start.place / "drawn", path := tmp_path / f"run-{kept}")
        lines = (path / "groups.jsonl").read_bytes().splitlines(keepends=True)
        (path / "groups.jsonl").write_bytes(b"".join(lines[:kept]))
        gagar("run", "--resume", path)
        assert content(path) == expected
    assert "--parallel 2, not 3" in gagar("run", "--resume", path, "--parallel", 3, code=1)


def test_a_run_that_is_complete_is_only_shown(gagar, start, whole):
    path = start.place / "whole"
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*") if file.suffix in (".json", ".jsonl")}
    shown = json.loads(gagar("run", "--resume", path, "--json"))
    assert [group["seed"] for group in shown] == [group_seed(5, number) for number in range(GROUPS)]
    finals = [{e["id"][-1]: e["advantage_after"] for e in group["episodes"]} for group in shown]
    assert finals == [
        dict(zip("012", whole.content[number]["numbers"]["advantages"], strict=True)) for number in range(GROUPS)
    ]
    assert {file: file.stat().st_mtime_ns for file in before} == before


@pytest.mark.usefixtures("whole")
def test_two_do_not_go_on_with_one_run(gagar, start, tmp_path):
    shutil.copytree(start.place / "whole", path := tmp_path / "run")
    (path / "groups.jsonl").write_bytes(b"")
    first = start("run", "--resume", path)
    wait_until_driven(path, first)
    assert summarize(RunFolder.open(path)).state == "running"
    assert "another process is working on this run" in gagar("run", "--resume", path, code=1)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=60)
