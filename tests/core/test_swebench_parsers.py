"""The parsers of the `swebench` package, asked in a process of their own, and what stands in where it is not."""

import json
import subprocess
import sys
import threading

import pytest

from gagar_env.episode import TestStatus
from gagar_env.errors import EnvironmentBuildError, TaskError, VerifyError
from gagar_env.swebench import parsers
from gagar_env.swebench.children import ChildTimeoutError, ask, python_with
from gagar_env.swebench.parse_log import OWN, printed_by_line, pytest_summary

P, F, S, E = TestStatus.PASSED, TestStatus.FAILED, TestStatus.SKIPPED, TestStatus.ERROR
LOG = """\
============================= test session starts ==============================
collected 6 items
tests/test_a.py .F.s                                                     [100%]
ERROR    root:noise.py:3 captured log line
PASSED
PASSED tests/test_a.py::test_one
\x1b[32mPASSED\x1b[0m tests/test_a.py::\x1b[1mtest_colour\x1b[0m
PASSED tests/test_a.py::test_p[x y]
FAILED tests/test_a.py::test_PASSED_handler - AssertionError: assert 'PASSED' - 1
FAILED tests/test_a.py::test_disputed - assert 0
PASSED tests/test_a.py::test_disputed
SKIPPED [1] tests/test_a.py:9: never here
XFAIL tests/test_a.py::test_x - reason
ERROR tests/test_b.py
========================= 2 failed, 3 passed in 0.02s ==========================
"""


@pytest.fixture
def no_index(monkeypatch):
    """As on a machine without the package and without a package index."""

    tries = []

    def refuse(pins, on_progress=None):
        if pins:
            tries.append(pins)
            raise EnvironmentBuildError("pip cannot install the requirements: no matching distribution")
        return sys.executable

    monkeypatch.setattr(parsers, "python_with", refuse)
    monkeypatch.setattr(parsers, "_absent", threading.Event())
    return tries


def check_log(found):
    ids = {name.partition("::")[2]: status for name, status in found.statuses.items() if "::" in name}
    assert ids == {
        "test_one": P,
        "test_colour": P,
        "test_p[x": P,
        "test_PASSED_handler": F,
        "test_disputed": F,
        "test_x": TestStatus.XFAILED,
    }
    assert found.disputed == {"tests/test_a.py::test_disputed": (F, P)}
    assert found.statuses["tests/test_b.py"] is E


def test_test_1_the_stand_in_reads_summaries_of_pytest(no_index):
    for _ in range(2):
        check_log(parsers.parse_log("parse_log_pytest", LOG))
    assert len(no_index) == 1


def test_other_parsers_say_that_they_need_the_package(no_index):
    with pytest.raises(EnvironmentBuildError, match="parse_log_django needs the package swebench") as caught:
        parsers.parse_log("parse_log_django", "")
    assert "\n" not in str(caught.value)


def test_summaries_as_r2e_gym_reads_them(no_index):
    text = "PASSED tests/test_a.py::before\n=== short test summary info ===\n"
    text += LOG[LOG.index("PASSED tests") :] + "PASSED tests/test_c.py::TestX::test_y[a b]\n"
    text += "FAILED tests/test_c.py::test_q[x - y] - no\nERROR tests/test_c.py::test_e - no\n"
    found = parsers.parse_log("parse_log_r2e", text)
    expected = {"test_one": P, "test_colour": P, "test_p[x y]": P, "test_PASSED_handler": F, "test_disputed": F}
    assert found.statuses == {**expected, "TestX.test_y[a b]": P, "test_q[x": F, "test_e": E}
    assert found.disputed == {"test_disputed": (F, P)}
    assert parsers.parse_log("parse_log_r2e", "PASSED tests/test_a.py::no_summary\n").statuses == {}


@pytest.mark.network
@pytest.mark.slow
def test_the_package_reads_the_same():
    check_log(parsers.parse_log("parse_log_pytest", LOG))
    question = {"text": LOG, "own": False, "parser": ""}
    for name in OWN:
        theirs = ask(parsers._PROGRAM, {**question, "parser": name}, pins=parsers.PINS)
        assert theirs == {"statuses": pytest_summary(LOG), "printed": printed_by_line(pytest_summary, LOG)}


@pytest.mark.network
@pytest.mark.slow
@pytest.mark.parametrize(
    ("parser", "text", "statuses"),
    [
        ("parse_log_django", "test_a (m.C) ... ok\ntest_b (m.C) ... FAIL\n", {"test_a (m.C)": P, "test_b (m.C)": F}),
        ("parse_log_django", "test_a (m.C) ... ok\nERROR:\nFAIL: test_b\n", {"test_a (m.C)": P, "test_b": F}),
        ("parse_log_sympy", "test_a ok\ntest_b F\ntest_c E\ntest_d ok [OK]\n", {"test_a": P, "test_b": F, "test_c": E}),
        (
            "parse_log_pytest_v2",
            "a.py::test_a[x y] PASSED\nFAILED a.py::b - x\n",
            {"a.py::test_a[x y]": P, "a.py::b": F},
        ),
        ("parse_log_gotest", "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n", {"TestA": P, "TestB": F}),
        ("parse_log_cargo", "test a::b ... ok\ntest c ... FAILED\n", {"a::b": P, "c": F}),
    ],
)
def test_runners_that_are_not_pytest(parser, text, statuses):
    assert parsers.parse_log(parser, text).statuses == statuses


@pytest.mark.network
@pytest.mark.slow
def test_a_name_that_is_not_there():
    with pytest.raises(TaskError, match=r"has no parser 'parse_log_djngo', did you mean parse_log_django\?"):
        parsers.parse_log("parse_log_djngo", "")


def test_the_package_does_not_come_into_this_process():
    code = "import sys, gagar_env.verify; assert not [m for m in sys.modules if m.split('.')[0] == 'swebench']"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_child_that_fails_or_hangs_says_so(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nsys.exit('the third line')\n")
    with pytest.raises(VerifyError, match=r"program.py failed \(exit code 1\): the third line"):
        ask(program, {})
    program.write_text("print('no json')\n")
    with pytest.raises(VerifyError, match="exit code 0"):
        ask(program, {})
    program.write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(ChildTimeoutError, match=r"did not answer within 0\.5 s"):
        ask(program, {}, timeout_s=0.5)
    program.write_text("import json, os, sys\njson.dump([json.load(sys.stdin), sorted(os.environ)], sys.stdout)\n")
    question = {"text": "\ud800 \u00e9 \U0001f600 \0"}
    answer, variables = ask(program, question)
    assert answer == json.loads(json.dumps(question))
    assert set(variables) <= {"PATH", "LANG", "LC_CTYPE"}


def test_no_pins_is_this_interpreter():
    assert python_with(()) == sys.executable
