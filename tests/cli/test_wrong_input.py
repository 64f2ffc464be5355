"""What a user can get wrong: one clear line, exit code 1 or 2, no traceback, and nothing else is lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from gagar_env.tasks.builtin import FOLDER

TASK = "feed-missing-filter"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("demo", "--task", "ledger-roundin"), "did you mean 'ledger-rounding'"),
        (("tasks", "show", "nothing-like-it-at-all"), "gagar tasks list"),
        (("demo", "--sandbox", "vmware"), "unknown sandbox 'vmware'"),
        (("run", "--policy", "sampel", "--tasks", TASK), "sample"),
        (("run", "--grader", "rul", "--tasks", TASK), "rule"),
        (("run", "--task-file", "none.jsonl"), "none.jsonl"),
        (("run", "--policy", "replay", "--tasks", TASK), "file"),
        (("run", "--policy", "os:getcwd", "--tasks", TASK), "start("),
        (("run", "--grader", "os:getcwd", "--tasks", TASK), "grade("),
        (("check", "."), "file or folder of that name: `--task-file .`"),
        (("run", "--strength", 1.5, "--tasks", TASK, "--out", "none"), "strength must be in [0, 1), got 1.5"),
        (("run", "--base", "gpro", "--tasks", TASK), "base must be grpo, dr_grpo or rloo, got gpro"),
        (("run", "--deadline-s", 0, "--tasks", TASK), "--deadline-s 0"),
        (("run", "--repo", ".", "--tasks", TASK), "--task-file"),
        (("run", "--out", "/proc/nowhere", "--tasks", TASK), "--out /proc/nowhere"),
    ],
)
def test_bad_input_is_one_clear_line(gagar, one_line, arguments, says):
    assert says in one_line(gagar(*arguments, expect=1))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("demoo",), "gagar --help"),
        (("demo", "--seed", -1), "--seed"),
        (("run", "--group-size", "four"), "--group-size"),
        (("run", "--turns", 0), "--turns"),
        (("tasks", "show"), "gagar tasks show --help"),
    ],
)
def test_wrong_command_line_is_one_clear_line(gagar, one_line, arguments, says):
    assert says in one_line(gagar(*arguments, expect=2))


OURS = """
class Raises:
    name = "raises"

    def start(self, **_):
        return self

    def act(self, observation):
        raise RuntimeError("no\\nidea")


class NoVerdict:
    name = "no-verdict"

    def grade(self, workspace):
        raise RuntimeError("no ranking")
"""


@pytest.mark.slow
def test_policy_that_raises_is_invalid_episodes(gagar, tmp_path):
    (tmp_path / "ours.py").write_text(OURS)  # beside the user: found without PYTHONPATH
    done = gagar("run", "--tasks", TASK, "--group-size", 2, "--policy", "ours:Raises", expect=1)
    assert "policy raises: RuntimeError: no idea" in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_grader_that_raises_costs_the_ranking_only(gagar, tmp_path):
    (tmp_path / "ours.py").write_text(OURS)
    done = gagar("run", "--tasks", "ledger-rounding", "--group-size", 4, "--grader", "ours:NoVerdict")
    assert "1 kept, 1 without the ranking that was wanted" in done.stdout
    assert "advantages are the plain ones: RuntimeError: no ranking" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_broken_environment_is_said_once(gagar, tmp_path):
    folder = tmp_path / "no-python"
    shutil.copytree(FOLDER / TASK, folder)
    text = (folder / "task.toml").read_text().replace("[environment]", '[environment]\npython = "3.99"')
    (folder / "task.toml").write_text(text.replace(f'"{TASK}"', '"no-python"'))
    done = gagar("run", "--task-file", folder, "--group-size", 3, expect=1)
    assert done.stderr.count("Python 3.99 is not installed") == 1
    assert "Traceback" not in done.stderr
    assert "3.99" in done.stdout


@pytest.mark.slow
def test_cache_that_cannot_be_written(gagar, one_line, tmp_path):
    cache = tmp_path / "cache"
    cache.write_text("")
    found = json.loads(gagar("doctor", "--json", expect=1, GAGAR_CACHE=str(cache)).stdout)
    assert [row["works"] for row in found if row["what"] == "cache"] == [False]
    assert "set GAGAR_CACHE" in one_line(gagar("demo", "--task", TASK, expect=1, GAGAR_CACHE=str(cache)))


def test_ctrl_c_says_so_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "gagar_env", "demo", "--task", TASK]
    env = {**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "80"}
    demo = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, start_new_session=True)
    patience = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and time.monotonic() < patience:  # the first sandbox
        time.sleep(0.05)
    os.killpg(demo.pid, signal.SIGINT)
    _, said = demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert said.decode().strip().splitlines()[-1] == "gagar: interrupted"
    assert not list(tmp_path.iterdir())


def test_debug_shows_the_traceback(gagar):
    assert "Traceback" in gagar("demo", "--task", "nope", "--debug", expect=1).stderr


@pytest.mark.slow
def test_broken_task_folder_is_one_line(gagar, one_line, tmp_path):
    folder = tmp_path / "half-task"
    folder.mkdir()
    (folder / "task.toml").write_text("id = 'half-task'\n[tests]\nfiles = 3\n")
    line = one_line(gagar("run", "--task-file", folder, expect=1))
    assert "half-task" in line
    done = gagar("check", "--task-file", folder, expect=1)  # a bad task among others, were there any
    assert "BAD half-task" in done.stdout
    assert done.stderr == ""


def test_broken_json_names_the_line(gagar, one_line, tmp_path):
    (tmp_path / "tasks.jsonl").write_text('{"instance_id": "a"\n')
    assert "tasks.jsonl" in one_line(gagar("tasks", "list", "--task-file", "tasks.jsonl", expect=1))


def test_missing_git_is_one_line(gagar, one_line, tmp_path):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("bash", "bwrap", "cp", "true"):
        if found := shutil.which(name):
            (bin_folder / name).symlink_to(found)
    done = gagar("demo", "--task", TASK, expect=1, PATH=str(bin_folder), GAGAR_CACHE=str(tmp_path / "cache"))
    assert "git" in one_line(done)


def test_a_negative_seed_is_refused(gagar):
    done = gagar("demo", "--task", TASK, "--seed", -1, expect=2)
    assert "--seed" in done.stderr


@pytest.mark.slow
def test_a_broken_task_does_not_end_a_run(gagar, tmp_path):
    for name in (TASK, "broken-task"):
        shutil.copytree(FOLDER / TASK, tmp_path / "tasks" / name)
    broken = tmp_path / "tasks" / "broken-task"
    text = (broken / "task.toml").read_text().replace(f'"{TASK}"', '"broken-task"')
    (broken / "task.toml").write_text(text)
    (broken / "repo" / "away").symlink_to("/etc")
    arguments = ("run", "--task-file", "tasks", "--policy", "noop", "--group-size", 1, "--json")
    done = gagar(*arguments, expect=1)
    assert [group["task"] for group in json.loads(done.stdout)] == [TASK]
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("gagar: task broken-task is left out: repo of broken-task: the link 'away'")


@pytest.mark.slow
def test_repo_that_is_no_repo(gagar, one_line, tmp_path):
    row = {
        "instance_id": "a__b-1",
        "repo": "a/b",
        "base_commit": "0" * 40,
        "patch": "",
        "test_patch": (
            "diff --git a/t.py b/t.py\nnew file mode 100644\n--- /dev/null\n+++ b/t.py\n@@ -0,0 +1 @@\n+x = 1\n"
        ),
        "problem_statement": "x",
        "FAIL_TO_PASS": '["t.py::test_x"]',
        "PASS_TO_PASS": "[]",
        "version": "1",
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    (tmp_path / "rows-envs.json").write_text(json.dumps({"a__b-1": {"python": sys.executable, "requirements": []}}))
    (tmp_path / "empty").mkdir()
    arguments = ("run", "--task-file", "rows.jsonl", "--repo", "empty", "--policy", "noop", "--group-size", 1)
    line = one_line(gagar(*arguments, expect=1))
    assert "a__b-1" in line or "empty" in line
