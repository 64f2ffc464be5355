"""The command `gagar`, run as a user runs it."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from gagar_env.tasks.builtin import FOLDER

TASK = "feed-missing-filter"


@pytest.fixture
def gagar(tmp_path):
    def run(*arguments, expect=0, **env):
        done = subprocess.run(
            [sys.executable, "-m", "gagar_env", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "120", **env},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done

    return run


def one_line(done):
    """The single line of an error: no traceback, nothing else."""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("gagar: ")
    assert done.stdout == ""
    return lines[0]


@pytest.fixture(scope="module")
def demos():
    def run(seed):
        command = [sys.executable, "-m", "gagar_env", "demo", "--json", "--seed", str(seed)]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)

    return run(0), run(0)


def test_demo_json_has_the_documented_shape(demos):
    demo = demos[0]
    keys = {"seed", "task", "sandbox", "group_id", "kept", "reason", "sum_before", "sum_after", "episodes"}
    assert set(demo) == keys
    assert (demo["kept"], demo["reason"], len(demo["episodes"])) == (True, "kept", 8)
    episode_keys = {
        *("id", "label", "passed", "valid", "turns", "patch_lines"),
        *("rank", "weight", "advantage_before", "advantage_after"),
    }
    assert all(set(episode) == episode_keys for episode in demo["episodes"])


def test_demo_keeps_the_sum_and_the_failures(demos):
    demo = demos[0]
    passing = [e for e in demo["episodes"] if e["passed"]]
    failing = [e for e in demo["episodes"] if not e["passed"]]
    assert passing
    assert failing
    assert abs(demo["sum_before"] - demo["sum_after"]) < 1e-9
    assert abs(sum(e["advantage_after"] for e in passing) - demo["sum_after"]) < 1e-9
    assert all(e["advantage_before"] == e["advantage_after"] and e["rank"] is None for e in failing)
    assert len({e["rank"] for e in passing}) > 1
    by_rank = sorted(passing, key=lambda e: e["rank"])
    after = [e["advantage_after"] for e in by_rank]
    assert after == sorted(after, reverse=True)
    assert after[0] > by_rank[0]["advantage_before"]


def test_demo_is_the_same_for_a_seed(demos):
    def core(demo):
        kept = ("label", "passed", "turns", "patch_lines", "rank", "weight", "advantage_before", "advantage_after")
        return [[episode[key] for key in kept] for episode in demo["episodes"]]

    assert core(demos[0]) == core(demos[1])
    assert demos[0]["group_id"] != demos[1]["group_id"]


def test_demo_table(gagar):
    done = gagar("demo", "--task", TASK, "--group-size", 4, "--seed", 3)
    for word in ("episode", "turns", "rank", "weight", "advantage", "sum"):
        assert word in done.stdout
    assert "passed" in done.stdout or "failed" in done.stdout


def test_run_writes_episodes_and_groups(gagar, tmp_path):
    out = tmp_path / "run"
    arguments = ("run", "--groups", 2, "--group-size", 2, "--tasks", TASK, "--out", out)
    done = gagar(*arguments, "--json")
    groups = json.loads(done.stdout)
    assert len(groups) == 2
    lines = (out / "groups.jsonl").read_text().splitlines()
    assert [json.loads(line)["group_id"] for line in lines] == [g["group_id"] for g in groups]
    files = {path.stem for path in (out / "episodes").glob("*.json")}
    assert files == {e["id"] for g in groups for e in g["episodes"]}
    assert "holds a run already" in one_line(gagar(*arguments, expect=1))


@pytest.mark.parametrize(("policy", "reward"), [("reference", True), ("noop", False)])
def test_run_policies(gagar, policy, reward):
    done = gagar("run", "--group-size", 1, "--tasks", TASK, "--policy", policy, "--json")
    (group,) = json.loads(done.stdout)
    assert [e["passed"] for e in group["episodes"]] == [reward]
    assert group["kept"] is False


def test_run_replay(gagar, tmp_path):
    patch = (FOLDER / TASK / "solution.patch").read_text()
    file = tmp_path / "replay.jsonl"
    file.write_text(json.dumps({"task": TASK, "patch": patch}) + "\n")
    arguments = ("run", "--group-size", 1, "--tasks", TASK, "--policy", "replay", "--replay", file, "--json")
    (group,) = json.loads(gagar(*arguments).stdout)
    assert group["episodes"][0]["passed"] is True


def test_tasks_list_and_show(gagar):
    rows = json.loads(gagar("tasks", "list", "--json").stdout)
    assert len(rows) >= 12
    assert TASK in {row["id"] for row in rows}
    shown = gagar("tasks", "show", TASK, "--json").stdout
    secret = (FOLDER / TASK / "solution.patch").read_text().splitlines()
    added = [line[1:].strip() for line in secret if line.startswith("+") and len(line) > 30]
    assert added
    assert not any(line in shown for line in added), "the reference is printed"
    assert json.loads(shown)["id"] == TASK


def test_check(gagar):
    (result,) = json.loads(gagar("check", TASK, "--json").stdout)
    assert result["ok"] is True


def test_check_finds_a_bad_task(gagar, tmp_path):
    folder = tmp_path / "broken-task"
    shutil.copytree(FOLDER / TASK, folder)
    (folder / "task.toml").write_text((folder / "task.toml").read_text().replace(f'"{TASK}"', '"broken-task"'))
    (folder / "solution.patch").write_text("")
    done = gagar("check", "--task-file", folder, expect=1)
    assert "BAD broken-task" in done.stdout


def test_doctor(gagar):
    found = {row["what"]: row["works"] for row in json.loads(gagar("doctor", "--json").stdout)}
    assert found["git"]
    assert found["sandbox process"]


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
    ],
)
def test_bad_input_is_one_clear_line(gagar, arguments, says):
    assert says in one_line(gagar(*arguments, expect=1))


def test_debug_shows_the_traceback(gagar):
    assert "Traceback" in gagar("demo", "--task", "nope", "--debug", expect=1).stderr


def test_broken_task_folder_is_one_line(gagar, tmp_path):
    folder = tmp_path / "half-task"
    folder.mkdir()
    (folder / "task.toml").write_text("id = 'half-task'\n[tests]\nfiles = 3\n")
    line = one_line(gagar("check", "--task-file", folder, expect=1))
    assert "half-task" in line


def test_broken_json_names_the_line(gagar, tmp_path):
    (tmp_path / "tasks.jsonl").write_text('{"instance_id": "a"\n')
    assert "tasks.jsonl" in one_line(gagar("tasks", "list", "--task-file", "tasks.jsonl", expect=1))


def test_missing_git_is_one_line(gagar, tmp_path):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name in ("bash", "bwrap", "cp", "true"):
        if found := shutil.which(name):
            (bin_folder / name).symlink_to(found)
    done = gagar("demo", "--task", TASK, expect=1, PATH=str(bin_folder), GAGAR_CACHE=str(tmp_path / "cache"))
    assert "git" in one_line(done)


def test_repo_that_is_no_repo(gagar, tmp_path):
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
