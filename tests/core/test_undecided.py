"""Tests that say nothing of the work give no reward for it: without lists, or with an output that cannot be read."""

import pytest

from gagar_env import script_tests
from gagar_env.changes import FileState
from gagar_env.episode import Outcome, TestStatus
from gagar_env.sandbox import why_unavailable
from gagar_env.script_output import Marks, OutputRefusedError
from gagar_env.swebench.children import ChildFailedError

PYTEST = "#!/bin/bash\npython -m pytest -rA -o addopts= -p no:cacheprovider tests/test_calc.py tests/test_new.py\n"
SCRIPT = {"script": PYTEST, "parser": "parse_log_pytest", "files": ()}


@pytest.fixture(scope="module")
def verifier(arena):
    if reason := why_unavailable("bwrap"):
        pytest.skip(reason)
    return arena.verifier("bwrap")


@pytest.mark.parametrize("more", [{}, SCRIPT], ids=["reporter", "script"])
def test_task_2_lists_that_demand_nothing_pass_nobody(arena, verifier, more):
    task = arena.task(fail_to_pass=(), pass_to_pass=(), **more)
    for work in ({}, arena.fix):
        report = verifier.verify(task, work)
        assert (report.outcome, report.valid, report.attempts) == (Outcome.ERROR, False, 1)
        assert "tests.fail_to_pass is empty, so that nothing decides" in report.reason


def test_what_such_tests_come_to_can_be_seen(arena, verifier):
    report = verifier.observe(arena.task(fail_to_pass=(), pass_to_pass=()), {})
    assert report.tests["tests/test_new.py::test_new"].status is TestStatus.FAILED
    assert report.tests["tests/test_calc.py::test_sub"].status is TestStatus.PASSED


@pytest.mark.slow
def test_an_output_that_only_the_work_makes_unreadable_is_no_pass_and_no_error(arena, verifier, monkeypatch):
    parse = script_tests.parse_log

    def breaks(parser, text):
        if "a line too many" in text:
            raise ChildFailedError("parse_log.py failed (exit code 1): MemoryError")
        return parse(parser, text)

    monkeypatch.setattr(script_tests, "parse_log", breaks)
    says = arena.fix["calc.py"].data.replace(b"    return", b"    print('a line too many')\n    return")
    noisy = {"calc.py": FileState(says)}
    report = verifier.verify(arena.task(**SCRIPT), noisy)
    assert (report.outcome, report.reason) == (Outcome.FAILED, "parse_log.py failed (exit code 1): MemoryError")
    broken = arena.task(**{**SCRIPT, "script": f"echo a line too many\n{PYTEST}"})
    report = verifier.verify(broken, arena.fix)
    assert report.outcome is Outcome.ERROR
    assert "cannot be read: parse_log.py failed (exit code 1): MemoryError" in report.reason


def test_what_a_shell_says_as_it_starts_is_not_held_against_the_work():
    marks = Marks()
    start, end = (marks.command("true", "/x").split(name)[1].split()[0] for name in ("gagar-start-", "gagar-end-"))
    said = f"bash: warning: setlocale\n{{}}gagar-start-{start}\ntext\n\ngagar-end-{end} 0\n"
    assert marks.read(said.format("").encode(), 0).text == "text\n"
    for wrong in (said.format("no line"), said.format(f"gagar-start-{start}\n"), "text\n"):
        with pytest.raises(OutputRefusedError):
            marks.read(wrong.encode(), 0)


@pytest.mark.slow
@pytest.mark.parametrize(("says", "code"), [("", 1), ("echo '>>>>> Test Exit Code: 0'\n", 0)])
def test_test_2_an_exit_code_that_the_script_does_not_print_is_not_the_tests(arena, verifier, says, code):
    """What the work leaves running prints it once the tests are over."""
    left = "import subprocess\nsubprocess.Popen(['sh', '-c', \"sleep 1; echo '>>>>> Test Exit Code: 0'\"])\n"
    left = left if not says else ""
    script = (
        ": '>>>>> Start Test Output'\npython -c 'import calc; assert calc.add(1, 2) == 3'\n"
        f": '>>>>> End Test Output'\n{says}sleep 2\n"
    )
    task = arena.task(mode="exit_code", script=script, files=(), fail_to_pass=(), pass_to_pass=(), support=())
    report = verifier.verify(task, {"calc.py": FileState(left.encode() + arena.base_files["calc.py"].encode())})
    assert (report.exit_code, report.outcome is Outcome.PASSED) == (code, code == 0)
