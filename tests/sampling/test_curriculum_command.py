"""`gagar run --curriculum`, as a user runs it."""

import json
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from gagar_env.tasks.builtin import FOLDER


def gagar(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "gagar_env", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


POLICY = """
from gagar_env.agents.policies import NoopPolicy, ReferencePolicy

class Mixed:
    name = "mixed"

    def start(self, *, task, actions, seed):
        solves = task.id == "ledger-rounding" or seed % 2
        return (ReferencePolicy if solves else NoopPolicy)().start(task=task, actions=actions, seed=seed)
"""


@pytest.mark.slow
def test_a_run_favours_the_task_whose_groups_are_mixed(tmp_path):
    (tmp_path / "ladder.py").write_text(POLICY)
    options = ["--policy", "ladder:Mixed", "--grader", "none", "--group-size", 2, "--groups", 9, "--json"]
    names = ["--tasks", "ledger-rounding", "--tasks", "csv-quoting-roundtrip"]
    done = gagar(tmp_path, "run", "--curriculum", *options, *names)
    assert done.returncode == 0, done.stderr
    drawn = Counter(group["task"] for group in json.loads(done.stdout))
    assert drawn["csv-quoting-roundtrip"] > drawn["ledger-rounding"] >= 2
    assert drawn.total() == 9


@pytest.mark.slow
def test_a_broken_task_is_left_out_and_said_once(tmp_path):
    folder = tmp_path / "tasks" / "broken-task"
    shutil.copytree(FOLDER / "ledger-rounding", folder)
    text = (folder / "task.toml").read_text().replace('"ledger-rounding"', '"broken-task"')
    (folder / "task.toml").write_text(text)
    shutil.rmtree(folder / "repo")
    (folder / "repo").mkdir()
    done = gagar(tmp_path, "run", "--curriculum", "--groups", 3, "--policy", "noop", "--tasks", folder)
    assert done.returncode == 1
    assert "broken-task" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_group_of_one_is_refused(tmp_path):
    done = gagar(tmp_path, "run", "--curriculum", "--group-size", 1, "--tasks", "ledger-rounding")
    assert done.returncode != 0
    assert "--curriculum needs --group-size 2 or more" in done.stderr
