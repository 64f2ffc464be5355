"""A small row of every public set, written by hand in that set's shape."""

import json
from pathlib import Path

import pytest
from set_rows import BUG, CLASSIC, R2E, REBENCH_1, REBENCH_2, SMITH, SWE_BENCH_5, SWERL

from gagar_env.errors import TaskError
from gagar_env.tasks import load_task_file
from gagar_env.tasks.formats import FORMATS, detect_format, task_from_row
from gagar_env.tasks.formats.base import CONDA_PYTHON

ROWS = {
    "swe-bench": CLASSIC,
    "swe-bench-5": SWE_BENCH_5,
    "swe-gym": CLASSIC | {"repo": "getmoto/moto", "instance_id": "getmoto__moto-1", "FAIL_TO_PASS": ["t.py::a"]},
    "swe-smith": SMITH,
    "r2e-gym": R2E,
    "swe-rebench": REBENCH_1,
    "swe-rebench-v2": REBENCH_2,
    "nemotron-swerl": SWERL,
}


@pytest.mark.parametrize("name", ROWS)
def test_the_columns_show_the_format(name: str) -> None:
    row = ROWS[name]
    assert detect_format(row) == name
    assert detect_format({key.upper(): value for key, value in row.items()}) == name
    assert task_from_row(row) == task_from_row(row, format=name)


@pytest.mark.parametrize("name", ROWS)
def test_no_column_is_lost(name: str) -> None:
    row = ROWS[name] | {"unheard_of": {"deep": [1, None]}}
    task = task_from_row(row)
    if name == "nemotron-swerl":
        assert task.extra["test_script"] == row["instance"]["test_script"]
        assert task.extra["unheard_of"] == {"deep": [1, None]}
    else:
        assert task.extra == row
    json.dumps(task.extra)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_in_an_image_has_its_tree_there_or_in_the_clone(name: str, tmp_path: Path) -> None:
    task = task_from_row(ROWS[name])
    assert task.image is not None
    assert task.repo.kind == "image"
    assert not task.environment.missing
    clone = tmp_path / task.tags[-1].rpartition("/")[2]
    (clone / ".git").mkdir(parents=True)
    assert task_from_row(ROWS[name], repo_dir=tmp_path).repo.kind == ("image" if name == "r2e-gym" else "git")


def test_classic_rows_run_in_the_image_of_their_set() -> None:
    task = task_from_row(CLASSIC)
    assert task.image.reference == "swebench/sweb.eval.x86_64.pallets_1776_flask-1:latest"
    assert task.image.platform == "linux/amd64"
    assert task.environment.python == CONDA_PYTHON
    assert not task.tests.script


def test_a_known_environment_takes_the_place_of_the_sets_image_but_not_of_the_rows() -> None:
    known = {"pallets__flask-1": {"python": "3.11", "requirements": ["pytest==7.4.4"]}}
    task = task_from_row(CLASSIC, environments=known)
    assert (task.image, task.environment.python) == (None, "3.11")
    named = task_from_row(CLASSIC | {"docker_image": "org/own:1"}, environments=known)
    assert (named.image.reference, named.environment.requirements) == ("org/own:1", ("pytest==7.4.4",))


def test_environments_may_be_a_function_of_the_row() -> None:
    asked = []

    def known(row):
        asked.append((row["instance_id"], row["version"]))
        return {"python": "3.9", "requirements": ["pytest==7.4.4"]}

    assert task_from_row(CLASSIC, environments=known).environment.python == "3.9"
    assert asked == [("pallets__flask-1", "2.3")]


def test_environments_may_name_script_parser_and_image() -> None:
    entry = {"script": "#!/bin/bash\nbin/test\n", "parser": "parse_log_sympy", "image": "org/sympy:1"}
    row = CLASSIC | {"repo": "sympy/sympy", "instance_id": "sympy__sympy-1"}
    task = task_from_row(row, environments={"sympy__sympy-1": entry})
    assert (task.tests.script, task.tests.parser) == (entry["script"], "parse_log_sympy")
    assert task.image.reference == "org/sympy:1"


@pytest.mark.parametrize(
    "row",
    [
        CLASSIC | {"repo": "django/django", "instance_id": "django__django-1"},
        CLASSIC
        | {
            "repo": "gin-gonic/gin",
            "instance_id": "gin-gonic__gin-1",
            "test_patch": CLASSIC["test_patch"].replace("test_a.py", "a_test.go"),
        },
        SWE_BENCH_5 | {"eval_type": "fail_only"},
        SMITH | {"FAIL_TO_PASS": ["TestContext"], "PASS_TO_PASS": ["TestOther"]},
    ],
    ids=["django", "go", "fail_only", "smith_go"],
)
def test_what_cannot_be_run_loads_says_so_and_has_no_image_to_be_guessed_in(row) -> None:
    task = task_from_row(row)
    assert row["instance_id"] in task.environment.missing
    assert task.repo.missing == task.environment.missing
    assert task.image is None


def test_swe_bench_5_names_image_script_and_parser() -> None:
    task = task_from_row(SWE_BENCH_5)
    assert task.image.reference == SWE_BENCH_5["image"]
    assert task.tests.parser == "parse_log_pytest"
    assert task.tests.script.splitlines()[2:] == [
        "set -o pipefail",
        "source /opt/miniconda3/bin/activate",
        "conda activate testbed",
        "cd /testbed",
        ": '>>>>> Start Test Output'",
        "pytest -rA tests/test_a.py",
        ": '>>>>> End Test Output'",
    ]
    assert task.tests.patch.decode() == SWE_BENCH_5["test_patch"]


def test_swe_smith_puts_the_bug_in_and_is_solved_by_its_reverse() -> None:
    task = task_from_row(SMITH)
    assert task.repo.patch.decode() == BUG
    assert b"-    return a - b\n+    return a + b\n" in task.solution_patch
    assert task.image.reference == SMITH["image_name"]
    assert task.tests.files == task.tests.support == ("tests/test_calc.py",)
    assert task.tags[-1] == "oauthlib/oauthlib"


def test_swe_smith_on_a_clone_is_at_the_commit_of_the_mirror(tmp_path: Path) -> None:
    (tmp_path / "oauthlib" / ".git").mkdir(parents=True)
    assert task_from_row(SMITH, repo_dir=tmp_path).repo.commit == "1fd52536"


def test_r2e_gym_demands_the_exact_statuses() -> None:
    task = task_from_row(R2E)
    assert task.id == "aiohttp__f0d74880deec8fcd982bce639c93c5e130d41654"
    assert task.problem_statement == "**Title:** It breaks\n"
    assert task.tests.mode == "exact_map"
    assert task.tests.expected == {"TestA.test_x": "PASSED", "test_y": "FAILED"}
    assert task.image.hidden == ("/r2e_tests",)
    assert task.repo.kind == "image"
    assert task.solution_patch.decode().startswith("diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n")
    assert b"tests/" not in task.solution_patch


@pytest.mark.parametrize("value", ["{", "[]", "{}", {"t": 1}, None])
def test_r2e_gym_without_statuses_is_refused(value) -> None:
    with pytest.raises(TaskError, match=r"aiohttp__f0d\w+: expected_output_json: "):
        task_from_row(R2E | {"expected_output_json": value}, format="r2e-gym")


def test_swe_rebench_runs_its_command_on_the_files_of_the_test_patch() -> None:
    task = task_from_row(REBENCH_1)
    assert task.tests.parser == "parse_log_pytest"
    assert task.tests.script.endswith("\npytest --no-header -rA 'tests/test_a.py'\n")
    assert task.image.reference == "swerebench/sweb.eval.x86_64.owner_1776_name-1"
    unnamed = {key: value for key, value in REBENCH_1.items() if key != "docker_image"}
    assert task_from_row(unnamed).image.reference == "swerebench/sweb.eval.x86_64.owner_1776_name-1:latest"


def test_swe_rebench_v2_stands_in_a_folder_of_its_own_name() -> None:
    task = task_from_row(REBENCH_2)
    assert task.image.workdir == "/gin"
    assert task.tests.parser == "parse_log_gotest"
    assert task.tests.script.endswith("\ngo test -v ./...\n")
    assert "language:go" in task.tags
    assert task.extra["created_at"] == 1700000000000


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"test_cmd": "make"}, "install_config.log_parser: names no parser"),
        ({"log_parser": "p"}, "install_config.test_cmd: is neither"),
        ({"log_parser": "p", "test_cmd": []}, "install_config.test_cmd: is neither"),
        ("[1]", "install_config: is no object"),
    ],
)
def test_swe_rebench_v2_is_never_graded_by_guess(config, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        task_from_row(REBENCH_2 | {"install_config": config})


def test_nemotron_rows_run_their_scripts() -> None:
    task = task_from_row(SWERL)
    assert task.id == "owner__name-1"
    assert task.tests.mode == "exit_code"
    order = [task.tests.script.index(part) for part in ("make ready", "run the-tests", "run old-tests")]
    assert order == sorted(order)
    as_text = task_from_row({"instance": json.dumps(SWERL["instance"])})
    assert as_text.tests == task.tests


def test_nemotron_rows_with_other_keys_and_no_script() -> None:
    inner = {key: value for key, value in CLASSIC.items() if key not in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    task = task_from_row({"instance": inner | {"fail_to_pass_select": ["t.py::a"], "pass_to_pass": "['t.py::b']"}})
    assert (task.tests.fail_to_pass, task.tests.pass_to_pass) == (("t.py::a",), ("t.py::b",))
    with pytest.raises(TaskError, match="there is no test_script"):
        task_from_row({"instance": inner})


def test_rows_of_one_function_call_are_refused_with_the_reason() -> None:
    row = {"uuid": "u-1", "expected_action": {"type": "function_call"}, "pivot_tags": []}
    with pytest.raises(TaskError, match=r"u-1: expected_action: .* runs no repository"):
        task_from_row(row)


def test_flattened_rows_of_nemo_gym() -> None:
    row = CLASSIC | {"responses_create_params": {"input": []}, "agent_ref": {}, "subset": "verified", "split": "test"}
    assert task_from_row(row).tests == task_from_row(CLASSIC).tests


def test_an_id_that_cannot_name_a_task_is_said() -> None:
    with pytest.raises(TaskError, match="a b: id: must be letters, digits"):
        task_from_row(CLASSIC | {"instance_id": "a b"})


def test_a_wrong_format_names_the_nearest() -> None:
    with pytest.raises(TaskError, match="did you mean 'swe-smith'"):
        task_from_row(CLASSIC, format="swesmith")
    assert "task" in FORMATS


def test_one_bad_row_does_not_lose_the_others(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    bad = CLASSIC | {"instance_id": "pallets__flask-2", "FAIL_TO_PASS": "nothing"}
    lines = [json.dumps(CLASSIC), "{", json.dumps(bad), json.dumps(CLASSIC), json.dumps(REBENCH_2)]
    path.write_text("\n".join(lines), "utf-8")
    found = []
    tasks = load_task_file(path, on_bad=found.append)
    assert [task.id for task in tasks] == ["pallets__flask-1", "gin-gonic__gin-9"]
    assert [(row.id, row.where) for row in found] == [
        ("", "rows.jsonl line 2"),
        ("pallets__flask-2", "rows.jsonl line 3"),
        ("pallets__flask-1", "rows.jsonl line 4"),
    ]
    assert "pallets__flask-2: FAIL_TO_PASS: " in found[1].reason
    assert "is there twice" in found[2].reason
    with pytest.raises(TaskError, match="line 2: not valid JSON"):
        load_task_file(path)
