"""What is told of a run late, or by nobody but the end of a module: it must count as it does without a sentinel."""

import pytest

from gagar_env.changes import FileState
from gagar_env.episode import Outcome

LEAKY = "OPEN = []\n\n\ndef use():\n    OPEN.append(1)\n    return 1\n"
CLEAN = FileState(b"OPEN = []\n\n\ndef use():\n    return 1\n")
AT_THE_END = {
    "fixture of the module": (
        "import pytest\nimport res\n\n\n@pytest.fixture(scope='module', autouse=True)\ndef nothing_is_open():\n"
        "    yield\n    assert res.OPEN == []\n\n\ndef test_use():\n    assert res.use() == 1\n",
        "test_res.py::test_use",
        "",
    ),
    "fixture of the session": (
        "import res\n\n\ndef test_use():\n    assert res.use() == 1\n",
        "test_res.py::test_use",
        "import pytest\n\n\n@pytest.fixture(scope='session', autouse=True)\ndef nothing_is_open():\n"
        "    yield\n    import res\n    assert res.OPEN == []\n",
    ),
    "tearDownModule": (
        "import unittest\nimport res\n\n\ndef tearDownModule():\n    assert res.OPEN == []\n\n\n"
        "class T(unittest.TestCase):\n    def test_use(self):\n        self.assertEqual(res.use(), 1)\n",
        "test_res.py::T::test_use",
        "",
    ),
}


@pytest.mark.parametrize("name", AT_THE_END)
def test_test_2_an_error_at_the_end_of_a_module_is_the_last_tests(arena, name):
    """As pytest itself tells it; and so doing nothing earns nothing."""
    text, node_id, conftest = AT_THE_END[name]
    official = {"test_res.py": text, **({"conftest.py": conftest} if conftest else {})}
    task = arena.task(
        {"res.py": LEAKY},
        official,
        reference={"res.py": CLEAN},
        files=("test_res.py",),
        fail_to_pass=(node_id,),
        pass_to_pass=(),
        support=(),
    )
    report = arena.verifier().verify(task, b"")
    assert (report.outcome, report.unmet) == (Outcome.FAILED, (node_id,))
    assert report.tests[node_id].status == "error"
    assert arena.verifier().verify(task, {"res.py": CLEAN}).passed


def test_test_4_a_configuration_that_the_work_makes_up_is_a_loss_and_not_no_result(arena):
    early = {**arena.base_files, "tests/conftest.py": "import calc\n" + arena.base_files["tests/conftest.py"]}
    task = arena.task(early)
    elsewhere = "import _pytest.config as c\nc.Config.inipath = property(lambda self: '/nowhere/pytest.ini')\n"
    report = arena.verifier().verify(task, {"calc.py": FileState(elsewhere.encode())})
    assert report.outcome is Outcome.FAILED
    assert "/nowhere/pytest.ini, outside of the work tree" in report.reason


@pytest.mark.parametrize("line", ["env -S bash -e", "env -S A=1 bash", "env bash", "env -S -i PATH=/usr/bin:/bin bash"])
def test_test_4_a_script_starts_whatever_its_first_line_is(arena, line):
    script = f"#!/usr/bin/{line}\ngrep -q 'a + b' calc.py\n"
    task = arena.task(
        mode="exit_code", script=script, files=(), fail_to_pass=(), pass_to_pass=(), support=(), patch=b""
    )
    assert arena.verifier(attempts=1).verify(task, b"").outcome is Outcome.FAILED
    assert arena.verifier(attempts=1).verify(task, arena.fix).passed


def test_git_2_a_patch_of_absurd_depth_is_refused(arena):
    path = "d/" * 1500 + "f"
    patch = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    report = arena.verifier(attempts=1).verify(arena.task(), patch.encode())
    assert report.outcome is Outcome.FAILED
    assert "the limit is 100" in report.reason


@pytest.mark.parametrize("patch", ["diff --git a/x b/x\n", None, bytearray(b"")])
def test_what_is_no_patch_is_the_callers_fault(arena, patch):
    with pytest.raises(TypeError, match="a patch is bytes, or changes by path, got"):
        arena.verifier().verify(arena.task(), patch)


HOOKS = {
    "skips what is not marked": "import pytest\n\n\ndef pytest_runtest_setup(item):\n"
    "    if not list(item.iter_markers('unit')):\n        pytest.skip('not marked')\n",
    "changes the exit code": "def pytest_sessionfinish(session, exitstatus):\n"
    "    session.exitstatus = 7 if exitstatus == 1 else exitstatus\n",
}


@pytest.mark.parametrize("name", HOOKS)
def test_test_4_a_repository_whose_own_hooks_hide_failures_gives_no_result(arena, name):
    """The work has no part in it: it is neither a loss nor tampering."""
    base = {
        "calc.py": arena.base_files["calc.py"],
        "conftest.py": HOOKS[name],
        "pytest.ini": "[pytest]\nmarkers = unit\n",
    }
    text = "import calc\nimport pytest\n\n\n@pytest.mark.unit\ndef test_add():\n    assert calc.add(1, 2) == 3\n"
    official = {"test_calc.py": text}
    task = arena.task(
        base, official, files=("test_calc.py",), fail_to_pass=("test_calc.py::test_add",), pass_to_pass=(), support=()
    )
    report = arena.verifier().verify(task, arena.fix)
    assert (report.outcome, report.attempts) == (Outcome.ERROR, 1)
    assert "cannot be believed, whatever the work is" in report.reason


def test_tokens_of_an_episode_without_a_result_do_not_count():
    from gagar_env.episode import Episode, EpisodeStatus, TestReport
    from gagar_env.group import grade_group
    from gagar_env.group_result import GroupResult

    def episode(name, outcome):
        report = None if outcome is None else TestReport(outcome=outcome)
        return Episode(id=name, group_id="g", task_id="t", status=EpisodeStatus.SUBMITTED, report=report)

    members = [episode("a", Outcome.PASSED), episode("b", Outcome.FAILED), episode("c", None)]
    for unknown in (None, float("nan"), 7.0):
        result = grade_group(members, None, preserve="token", tokens=[10, 20, unknown])
        assert result.tokens == (10.0, 20.0, 0.0)
        assert GroupResult.model_validate_json(result.model_dump_json()) == result
    with pytest.raises(ValueError, match="tokens of episode 'b' must be a number, got None"):
        grade_group(members, None, preserve="token", tokens=[10, None, None])
