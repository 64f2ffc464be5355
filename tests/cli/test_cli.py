"""The command `gagar`, run as a user runs it."""

import json
import shutil
import subprocess
import sys

import pytest

from gagar_env.tasks.builtin import FOLDER

TASK = "feed-missing-filter"


@pytest.fixture(scope="module")
def demos():
    def run(seed):
        command = [sys.executable, "-m", "gagar_env", "demo", "--json", "--seed", str(seed)]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=300).stdout)

    return run(0), run(0)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_run_writes_episodes_and_groups(gagar, one_line, tmp_path):
    out = tmp_path / "run"
    arguments = ("run", "--groups", 2, "--group-size", 2, "--tasks", TASK, "--out", out)
    done = gagar(*arguments, "--json")
    groups = json.loads(done.stdout)
    assert len(groups) == 2
    lines = map(json.loads, (out / "groups.jsonl").read_text().splitlines())  # in the order in which they ended
    in_order = sorted(lines, key=lambda line: line["attempt"])
    assert [line["group_id"] for line in in_order] == [g["group_id"] for g in groups]
    files = {path.stem for path in (out / "episodes").glob("*.json")}
    assert files == {e["id"] for g in groups for e in g["episodes"]}
    assert "holds a run already" in one_line(gagar(*arguments, expect=1))


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "reward"), [("reference", True), ("noop", False)])
def test_run_policies(gagar, policy, reward):
    done = gagar("run", "--group-size", 1, "--tasks", TASK, "--policy", policy, "--json")
    (group,) = json.loads(done.stdout)
    assert [e["passed"] for e in group["episodes"]] == [reward]
    assert group["kept"] is False


@pytest.mark.slow
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


@pytest.mark.slow
def test_check(gagar):
    (result,) = json.loads(gagar("check", TASK, "--json").stdout)
    assert result["ok"] is True


@pytest.mark.slow
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


@pytest.mark.slow
def test_group_without_a_signal_says_why(gagar):
    done = gagar("demo", "--task", TASK, "--group-size", 1)
    assert "fewer than two episodes have a result" in done.stdout
    assert "moved" not in done.stdout


@pytest.mark.parametrize("columns", ["80", "120"])
def test_tables_do_not_break_the_names_of_tasks(gagar, columns):
    done = gagar("tasks", "list", COLUMNS=columns)
    for name in ("config-api-deprecation", "units-parser-precedence"):
        assert name in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= int(columns)
