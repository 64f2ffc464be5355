"""A row of a task file that makes no task does not hide the others."""

import json

import pytest

PATCH = "diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"
ROW = {
    "repo": "owner/name",
    "base_commit": "0" * 40,
    "patch": PATCH,
    "test_patch": PATCH.replace("x.py", "test_x.py"),
    "problem_statement": "It is wrong.",
    "FAIL_TO_PASS": '["test_x.py::test_a"]',
    "PASS_TO_PASS": "[]",
}


@pytest.fixture
def rows(tmp_path):
    """A good row, one that nothing would decide, and the good one again."""
    good = {**ROW, "instance_id": "owner__name-1"}
    bad = {**ROW, "instance_id": "owner__name-2", "FAIL_TO_PASS": "[]"}
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (good, bad, good)))


@pytest.mark.usefixtures("rows")
def test_list_names_bad_rows_and_lists_the_others_once(gagar):
    done = gagar("tasks", "list", "--task-file", "rows.jsonl", "--json")
    assert [row["id"] for row in json.loads(done.stdout)] == ["owner__name-1"]
    warned = done.stderr.splitlines()
    assert warned[0].startswith("warning: left out: owner__name-2: FAIL_TO_PASS: is empty")
    assert warned[1] == "warning: left out: rows.jsonl line 3: 'owner__name-1' is there twice"


@pytest.mark.usefixtures("rows")
def test_show_minds_only_the_row_that_was_asked_for(gagar, one_line):
    done = gagar("tasks", "show", "owner__name-1", "--task-file", "rows.jsonl")
    assert "no environment is known for owner__name-1" in done.stdout
    failed = gagar("tasks", "show", "owner__name-2", "--task-file", "rows.jsonl", expect=1)
    assert "owner__name-2: FAIL_TO_PASS: is empty" in one_line(failed)


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("command", [["stats"], ["search", "wrong"]])
def test_stats_and_search_leave_bad_rows_out(gagar, command):
    done = gagar("tasks", *command, "--task-file", "rows.jsonl", "--json")
    found = json.loads(done.stdout)
    assert (found["tasks"] if command == ["stats"] else len(found)) == 1
    assert "warning: left out: owner__name-2: FAIL_TO_PASS: is empty" in done.stderr
