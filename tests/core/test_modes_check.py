"""`check_task` on tasks that are judged by a script: as strict as on others."""

import pytest

from gagar_env.changes import FileState
from gagar_env.check import check_task
from gagar_env.patch import make_patch
from gagar_env.sandbox import why_unavailable
from gagar_env.tasks.task import Tests

PYTEST = "python -m pytest -rA -p no:cacheprovider test_calc.py\n"
REWARD = "python -m pytest -p no:cacheprovider /tests/test_calc.py\necho $((1 - $?)) > /logs/verifier/reward.txt\n"
IDS = {"fail_to_pass": ("test_calc.py::test_add",), "pass_to_pass": ("test_calc.py::test_double",)}
TEXT = {"script": PYTEST, "parser": "parse_log_pytest"}
MAP = {"mode": "exact_map", "expected": {"test_add": "PASSED", "test_double": "PASSED"}}
MODES = {
    "text": {**TEXT, **IDS},
    "map": {**MAP, "files": ("test_calc.py",)},
    "map-text": {**MAP, **TEXT},
    "exit": {"mode": "exit_code", "script": PYTEST},
    "reward": {"mode": "reward_file", "script": REWARD, "place": "/tests"},
}


@pytest.fixture
def made(tiny_task):
    def made(name, **more):
        tests = Tests(folder=tiny_task.tests.folder, timeout_s=60, **{**MODES[name], **more})
        tree = tiny_task.repo.path
        fixed = (tree / "calc.py").read_bytes().replace(b"a - b", b"a + b")
        return tiny_task.model_copy(
            update={
                "id": f"mode-{name}",
                "tests": tests,
                "solution_patch": make_patch(tree, {"calc.py": FileState(fixed)}),
                "environment": tiny_task.environment.model_copy(update={"pythonpath": (".",)}),
            }
        )

    return made


@pytest.mark.parametrize("name", MODES)
@pytest.mark.slow
def test_good_tasks_of_every_mode(made, best_kind, name):
    if name == "reward" and (reason := why_unavailable("bwrap")):
        pytest.skip(reason)
    check = check_task(made(name), sandbox=best_kind)
    assert (check.problems, check.ok) == ((), True)


@pytest.mark.slow
def test_a_map_that_is_not_met_is_named(made, best_kind):
    expected = {"test_add": "PASSED", "test_double": "PASSED", "test_gone": "PASSED"}
    check = check_task(made("map", expected=expected), sandbox=best_kind)
    assert any("1 expected tests did not run: test_gone" in problem for problem in check.problems)
    assert any("no run has the tests: test_gone" in problem for problem in check.problems)


@pytest.mark.slow
def test_a_script_that_always_passes_is_named(made, best_kind):
    check = check_task(made("exit", script="true\n"), sandbox=best_kind)
    assert any("no-op: it passes" in problem for problem in check.problems)
