"""`gagar check` of many tasks as a user runs it: exit codes, files, what it prints."""

import json
import shutil

import pytest

from gagar_env.tasks.template import new_task

pytestmark = pytest.mark.slow


@pytest.fixture
def folders(tmp_path):
    """Task folders that are good, bad, that do not load, and that cannot be checked here."""

    def folders(*names):
        for name in names:
            folder = new_task(name, tmp_path / "tasks")
            toml = folder / "task.toml"
            if name.startswith("bad"):
                (folder / "solution.patch").write_text("")
            if name.startswith("torn"):
                toml.write_text(toml.read_text().replace("[tests]", "[tests"))
            if name.startswith("odd"):
                toml.write_text(toml.read_text().replace("[environment]", '[environment]\npython = "3.99"'))
        return tmp_path / "tasks"

    return folders


def test_one_of_each(gagar, folders, tmp_path):
    tasks = folders("good", "bad", "torn", "odd")
    bad = tmp_path / "bad.json"
    done = gagar("check", "--task-file", tasks, "--sandbox", "process", "--quarantine", bad, expect=1)
    for line in (
        "ok  good",
        "BAD bad",
        "BAD torn",
        "??? odd",
        "4 tasks in",
        ": 1 ok, 2 bad, 1 could not be checked",
        "there is no reference patch: nothing shows that it can be solved",
        "Python 3.99 is not installed",
        "it does not load",
        "written to",
    ):
        assert line in " ".join(done.stdout.split(" ")), line
    assert done.stderr == ""
    assert {row["id"] for row in json.loads(bad.read_text())} == {"bad", "torn"}
    left = gagar("check", "--task-file", tasks, "--sandbox", "process", "--skip", bad, "--json", expect=3)
    assert [(row["task_id"], row["verdict"]) for row in json.loads(left.stdout)] == [("good", "ok"), ("odd", "error")]
    run = ("run", "--task-file", tasks, "--policy", "noop", "--group-size", 1, "--sandbox", "process", "--json")
    (tmp_path / "skip").write_text("odd\nbad\ntorn\n")
    shutil.rmtree(tasks / "torn")
    assert [group["task"] for group in json.loads(gagar(*run, "--skip", "skip").stdout)] == ["good"]


def test_results_are_kept_and_not_made_again(gagar, folders, tmp_path):
    tasks = folders("a", "b")
    arguments = ("check", "--task-file", tasks, "--sandbox", "process", "--out", "out.jsonl", "--json")
    first = json.loads(gagar(*arguments, "--jobs", 2).stdout)
    lines = (tmp_path / "out.jsonl").read_text()
    assert [row["task_id"] for row in first] == ["a", "b"]
    assert json.loads(gagar(*arguments).stdout) == first
    assert (tmp_path / "out.jsonl").read_text() == lines


def test_a_set_by_name_and_known_solutions(gagar):
    (row,) = json.loads(gagar("check", "ledger-rounding", "--solutions", "--json").stdout)
    assert len(row["runs"]) > 2
    done = gagar("check", "gagar/builtin", "--budget-s", 0, expect=3)
    assert "12 could not be checked" in done.stdout
    assert "not checked: the run's 0 s were used up" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("check", "gagar/bultin"), "did you mean 'gagar/builtin'"),
        (("check", "ledger-rounding", "--skip", "none.json"), "quarantine file none.json: cannot be read"),
        (("check", "ledger-rounding", "--out", "/proc/none"), "results file /proc/none: cannot be written"),
        (("check", "ledger-rounding", "--quarantine", "/proc/none"), "quarantine file /proc/none: cannot be written"),
        (("check", "ledger-rounding", "--skip", "all.txt"), "there is no task to check"),
        (("tasks", "list", "--set", "nothing"), "no task 'nothing'"),
        (("tasks", "new", "a b"), "task 'a b': a name is letters"),
        (("tasks", "new", "used"), "used is there already, and nothing is overwritten"),
        (("tasks", "show", "gagar/builtin"), "is a set of 12 tasks"),
        (("demo", "--task", "gagar/builtin"), "is a set of 12 tasks"),
    ],
)
def test_wrong_input_is_one_line(gagar, one_line, tmp_path, arguments, says):
    (tmp_path / "all.txt").write_text("ledger-rounding\n")
    (tmp_path / "used").mkdir()
    assert says in one_line(gagar(*arguments, expect=1))


def test_a_row_that_does_not_load_does_not_end_a_run(gagar, folders):
    tasks = folders("good", "torn")
    arguments = ("run", "--task-file", tasks, "--policy", "noop", "--group-size", 1, "--sandbox", "process", "--json")
    done = gagar(*arguments, expect=1)
    assert [group["task"] for group in json.loads(done.stdout)] == ["good"]
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("gagar: task torn is left out: ")
