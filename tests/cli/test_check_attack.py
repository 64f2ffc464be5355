"""`gagar check --attack` and `gagar run --flags`, as a user runs them."""

import json
import shutil

import pytest

from gagar_env.tasks.builtin import FOLDER as BUILTIN

pytestmark = pytest.mark.slow


def test_attacks_on_a_good_task(gagar):
    arguments = ("check", "--attack", "ledger-rounding", "--only", "hack_2_collect_only", "--only", "own_conftest")
    done = gagar(*arguments)
    assert "1 attack, 1 held, 0 flagged, 0 let through; 1 of 1 honest solutions earn their reward" in " ".join(
        done.stdout.split()
    )
    (found,) = json.loads(gagar(*arguments, "--json").stdout)
    assert (found["task_id"], found["ok"]) == ("ledger-rounding", True)
    (attack,) = found["attacks"]
    assert (attack["attack"], attack["case"], attack["outcome"], attack["reward"]) == (
        "hack_2_collect_only",
        "HACK-2",
        "held",
        0.0,
    )
    assert found["twins"] == [
        {"twin": "own_conftest", "title": "a harmless conftest.py", "good": True, "flags": [], "reason": ""}
    ]


def test_attacks_leave_broken_tasks_out(gagar, one_line, tmp_path):
    shutil.copytree(BUILTIN / "ledger-rounding", tmp_path / "tasks" / "good")
    broken = tmp_path / "tasks" / "broken"
    broken.mkdir()
    (broken / "task.toml").write_text('id = "broken"\n')
    only = ("--task-file", "tasks", "--only", "hack_2_collect_only")
    done = gagar("check", "--attack", *only, expect=1)
    assert "1 attack, 1 held" in " ".join(done.stdout.split())
    assert "gagar: task broken is left out: issue.md of broken: the file is missing" in done.stderr
    alone = gagar("check", "--attack", "--task-file", "tasks/broken", expect=1)
    assert "issue.md of broken: the file is missing" in one_line(alone)
    kept = gagar("check", "--attack", *only, "--quarantine", "bad.json", expect=1)
    assert "--attack is none: leave them out" in one_line(kept)


def test_attacks_on_a_task_whose_helpers_are_not_declared(gagar, tmp_path, lean_environment):
    folder = tmp_path / "tasks" / "sums"
    tree, hidden = folder / "repo", folder / "hidden"
    for path, text in {
        tree / "sums.py": "def add(a, b):\n    return a - b\n",
        tree / "checks.py": "def same(a, b):\n    assert a == b\n",
        hidden
        / "test_sums.py": "from checks import same\n\nimport sums\n\n\ndef test_add():\n    same(sums.add(1, 2), 3)\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    patch = (
        "diff --git a/sums.py b/sums.py\n--- a/sums.py\n+++ b/sums.py\n@@ -1,2 +1,2 @@\n"
        " def add(a, b):\n-    return a - b\n+    return a + b\n"
    )
    task = {
        "id": "sums",
        "problem_statement": "add(1, 2) gives -1",
        "repo": {"kind": "tree", "path": str(tree)},
        "tests": {"files": ["test_sums.py"], "fail_to_pass": ["test_sums.py::test_add"], "folder": str(hidden)},
        "environment": lean_environment.model_dump(mode="json"),
        "solution_patch": patch,
    }
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps(task) + "\n")
    done = gagar(
        "check", "--attack", "--task-file", file, "--only", "helpers_edited", "--only", "assert_true", expect=1
    )
    shown = " ".join(done.stdout.split())
    assert "LET THROUGH hack_6_helpers_edited" in shown
    assert "what to do: name the helper modules of the tests in `support`" in shown
    assert "2 attacks, 1 held, 0 flagged, 1 let through" in shown


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("check", "--attack", "ledger-rounding", "--only", "none_such"), "no attack is called none_such"),
        (("run", "--flags", "nonsense=zero"), "--flags nonsense=zero: flag policy: unknown kind 'nonsense'"),
        (("run", "--flags", "maybe"), "is none of flag, zero, mask"),
    ],
)
def test_wrong_input_is_one_line(gagar, one_line, arguments, says):
    assert says in one_line(gagar(*arguments, expect=1))
