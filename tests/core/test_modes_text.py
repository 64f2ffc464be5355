"""Modes f2p_p2p and exact_map on the output of a script: honest runs, and what forging it earns."""

import pytest

from gagar_env.changes import FileState
from gagar_env.episode import Outcome, TestStatus

PYTEST = "#!/bin/bash\npython -m pytest -rA -o addopts= -p no:cacheprovider tests/test_calc.py tests/test_new.py\n"
UNITTEST = """import unittest

import calc


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(calc.add(1, 2), 3)

    def test_sub(self):
        self.assertEqual(calc.sub(3, 1), 2)
"""
ADDS = "def add(a, b):\n    return a {} b\n\n\ndef sub(a, b):\n    return a - b\n"
IDS = tuple(f"tests/test_calc.py::{name}" for name in ("test_add", "test_add_again", "test_sub", "test_child"))
FORGED = "".join(f"PASSED {name}\n" for name in (*IDS, "tests/test_new.py::test_new"))
WRITE = "import os\nfor fd in range(1, 30):\n    try:\n        os.write(fd, b%r)\n    except OSError:\n        pass\n"
"""To every open file: pytest keeps the one that it prints to, and what it captures does not matter."""


def forge(text=FORGED):
    return WRITE.replace("b%r", repr(f"\n{text}".encode()))


def changes(**files):
    return {path.replace("__", "/") + ".py": FileState(text.encode()) for path, text in files.items()}


@pytest.fixture(scope="module")
def text_task(arena):
    def text_task(script=PYTEST, parser="parse_log_pytest", **more):
        return arena.task(script=script, parser=parser, files=(), **more)

    return text_task


@pytest.fixture(scope="module")
def task(text_task):
    return text_task()


@pytest.fixture(scope="module")
def verifier(arena):
    return arena.verifier()


@pytest.mark.slow
def test_the_script_decides(arena, task, verifier):
    report = verifier.verify(task, arena.fix)
    assert (report.outcome, report.reason, report.evidence, report.exit_code) == ("passed", "", "text", 0)
    assert report.flags == ()
    assert {record.status for record in report.tests.values()} == {TestStatus.PASSED}
    nothing = verifier.verify(task, {})
    assert nothing.unmet == task.tests.fail_to_pass
    assert "3 of 5 required tests did not pass" in nothing.reason
    assert type(report).model_validate_json(report.model_dump_json()) == report


@pytest.mark.slow
def test_official_tests_win_in_a_script_too(arena, task, verifier):
    evil = {
        "tests/test_calc.py": FileState(b"def test_add(): pass\ndef test_add_again(): pass\n"),
        "tests/conftest.py": FileState(b"print('''" + FORGED.encode() + b"''')\n"),
        "conftest.py": FileState(b"import os\nos._exit(0)\n"),
        "pytest.py": FileState(b"print('''" + FORGED.encode() + b"''')\n"),
    }
    report = verifier.verify(task, evil)
    assert (report.outcome, set(report.ignored)) == (Outcome.FAILED, set(evil))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (forge() + ADDS.format("-"), "printed with several statuses"),
        (forge() + "os._exit(3)\n", "exit code 3, but no test failed"),
        ("import os\nos._exit(0)\n", "names no test (exit code 0)"),
        ("def add(:\n", "did not pass"),
        (
            "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
            "did not pass|cut off|names no test|no test failed",
        ),
        ("import os, signal\nos.kill(-1, signal.SIGKILL)\n", "cut off|does not begin"),
    ],
)
@pytest.mark.slow
def test_test_2_forged_text_and_what_did_not_run(task, verifier, source, says):
    report = verifier.verify(task, changes(calc=source))
    assert (report.outcome, report.evidence) == (Outcome.FAILED, "text")
    assert any(part in report.reason for part in says.split("|")), report.reason


@pytest.mark.slow
def test_a_forged_log_with_a_clean_end_is_flagged_and_that_is_all(task, verifier):
    """What text cannot prevent: the process that prints is the agent's. It is said in docs/rewards.md."""
    source = forge() + "os._exit(0)\n"
    report = verifier.verify(task, changes(calc=source))
    assert (report.outcome, report.evidence) == (Outcome.PASSED, "text")
    assert "exits_process" in {flag.kind for flag in report.flags}


@pytest.mark.slow
def test_tests_that_the_reference_runs_and_this_work_does_not_are_flagged(text_task, verifier):
    task = text_task(fail_to_pass=IDS[:1], pass_to_pass=())
    source = forge(f"PASSED {IDS[0]}\n") + "os._exit(0)\n"
    report = verifier.verify(task, changes(calc=source))
    assert any("4 tests that run with the reference solution did not" in flag.detail for flag in report.flags)


@pytest.mark.slow
def test_test_1_status_words_in_names_and_colours(arena, text_task, verifier):
    official = {
        "tests/test_odd.py": "import calc\n\n\ndef test_PASSED_handler():\n    assert calc.add(1, 1) == 2\n\n\n"
        "def test_FAILED():\n    print('FAILED tests/other.py::test_x')\n\n\n"
    }
    ids = ("tests/test_odd.py::test_PASSED_handler", "tests/test_odd.py::test_FAILED")
    script = "python -m pytest -rA --color=yes -o addopts= tests/test_odd.py\n"
    task = text_task(script, official=official, fail_to_pass=ids[:1], pass_to_pass=ids[1:])
    report = verifier.verify(task, arena.fix)
    assert report.unmet == ()
    # exit code and text do not agree, since a test prints the failure of another: with the reference they do not either
    assert (report.outcome, report.exit_code) == (Outcome.PASSED, 0)
    assert report.tests["tests/other.py::test_x"].status is TestStatus.FAILED
    assert verifier.verify(task, {}).unmet == ids[:1]


@pytest.mark.slow
def test_lines_of_logs_that_look_like_failures_are_none(text_task, verifier):
    """`-rA` shows what passing tests logged, and the work may log what the reference does not."""
    task = text_task()
    logs = "import logging\n\n\ndef add(a, b):\n    logging.error('adding')\n    return a + b\n\n\n"
    report = verifier.verify(task, changes(calc=logs + "def sub(a, b):\n    return a - b\n"))
    assert (report.outcome, report.reason) == (Outcome.PASSED, "")
    assert "root:calc.py:5" in report.tests


@pytest.mark.slow
def test_a_failure_that_the_exit_code_denies_is_not_believed(text_task, verifier):
    ids = ("tests/test_new.py::test_new",)
    task = text_task(fail_to_pass=ids, pass_to_pass=())
    source = ADDS.format("+ (a == 1) +") + "import atexit, os\natexit.register(os._exit, 0)\n"
    report = verifier.verify(task, changes(calc=source))
    assert report.unmet == ()
    assert "exit code 0, but tests failed" in report.reason


@pytest.mark.slow
def test_exit_codes_that_never_tell_are_known_from_the_reference(arena, text_task, verifier):
    task = text_task(PYTEST + "true\n", pass_to_pass=())
    assert verifier.verify(task, arena.fix).passed
    assert verifier.verify(task, {}).unmet == task.tests.fail_to_pass
    noisy = text_task(PYTEST + "exit 7\n")
    report = verifier.verify(noisy, arena.fix)
    assert (report.outcome, report.exit_code) == (Outcome.PASSED, 7)


MARKED = """set -uxo pipefail
echo 'PASSED tests/test_new.py::test_new'
python -c 'import calc'
: '>>>>> Start Test Output'
python -m pytest -rA -o addopts= tests/test_calc.py tests/test_new.py
: '>>>>> End Test Output'
git checkout -q -- README.md
echo 'FAILED tests/test_new.py::test_new'
"""


@pytest.mark.slow
def test_marks_of_swebench_bracket_the_tests_alone(arena, text_task, verifier):
    task = text_task(MARKED)
    report = verifier.verify(task, arena.fix)
    assert (report.outcome, report.reason, report.exit_code) == (Outcome.PASSED, "", 0)
    early = verifier.verify(task, changes(calc=f"print('''{FORGED}''')\nraise SystemExit(0)\n"))
    assert early.outcome is Outcome.FAILED


def test_a_forged_end_mark_is_refused(text_task, verifier):
    task = text_task(MARKED)
    read = "import re\ntext = open('/scratch/tests/run_tests').read()\nmarks = re.findall(r'gagar-\\w+-\\w+', text)\n"
    text = "('\\n%s\\n{}\\n%s 0\\n' % tuple(marks)).encode()".format(FORGED.replace("\n", "\\n"))
    source = read + WRITE.replace("b%r", text) + ADDS.format("-")
    report = verifier.verify(task, changes(calc=source))
    assert report.outcome is Outcome.FAILED
    assert "did not come to its tests" in report.reason
    after = source.replace("os.write(fd, (", "os.write(fd, ('x' + ").replace("\\n%s\\n", "%.0s\\n")
    assert "forged" in verifier.verify(task, changes(calc=after)).reason


@pytest.mark.slow
def test_test_4_a_script_that_hangs_is_a_failure(text_task, verifier):
    task = text_task("sleep 600\n", timeout_s=2)
    report = verifier.verify(task, {})
    assert (report.outcome, report.timed_out, report.exit_code) == (Outcome.FAILED, True, None)


@pytest.mark.slow
def test_test_4_a_script_that_cannot_start_is_no_result(text_task, verifier):
    for line in ("#!/nonexistent/shell", "#!/usr/bin/env nonesuch"):
        report = verifier.verify(text_task(f"{line}\necho\n"), {})
        assert (report.outcome, report.attempts) == (Outcome.ERROR, 2)
        assert "the script cannot be started: " in report.reason


@pytest.mark.slow
def test_a_parser_that_is_not_there_is_the_tasks_fault(text_task, verifier):
    report = verifier.verify(text_task(parser="parse_log_pytst"), {})
    assert (report.outcome, report.attempts) == (Outcome.ERROR, 1)
    assert "did you mean parse_log_pytest?" in report.reason


@pytest.mark.slow
def test_enc_2_output_beyond_the_limit_is_refused(text_task, verifier, monkeypatch):
    monkeypatch.setattr("gagar_env.script_tests.MAX_OUTPUT_BYTES", 100_000)
    report = verifier.verify(text_task("head -c 300000 /dev/zero | tr '\\0' x\n" + PYTEST), {})
    assert report.outcome is Outcome.FAILED
    assert "the limit is 100000" in report.reason


@pytest.mark.slow
def test_git_1_a_script_with_line_ends_of_windows_runs(arena, text_task, verifier):
    assert verifier.verify(text_task(PYTEST.replace("\n", "\r\n")), arena.fix).passed


@pytest.mark.slow
def test_unittest_by_the_parser_of_django(arena, text_task, verifier):
    ids = ("test_add (tests.test_unit.CalcTest.test_add)", "test_sub (tests.test_unit.CalcTest.test_sub)")
    script = "#!/usr/bin/env bash\nset -e\ncd tests/..\npython -m unittest -v tests.test_unit 2>&1\n"
    task = text_task(
        script,
        "parse_log_django",
        official={"tests/test_unit.py": UNITTEST, "tests/__init__.py": ""},
        fail_to_pass=ids[:1],
        pass_to_pass=ids[1:],
    )
    report = verifier.verify(task, arena.fix)
    assert (report.outcome, report.reason, set(report.tests)) == (Outcome.PASSED, "", set(ids))
    assert verifier.verify(task, {}).unmet == ids[:1]


RUNNER = """#!/usr/bin/env python3
import sys, traceback
sys.path.insert(0, '.')
import importlib.util
failed = 0
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location('the_tests', path)
    module = importlib.util.module_from_spec(spec)
    print(path + '[2]')
    spec.loader.exec_module(module)
    for name in [n for n in vars(module) if n.startswith('test_')]:
        try:
            getattr(module, name)()
            print(name + ' ok')
        except AssertionError:
            failed += 1
            print(name + ' F')
print('tests finished')
sys.exit(bool(failed))
"""


@pytest.mark.slow
def test_a_runner_of_the_repository_by_the_parser_of_sympy(arena, text_task, verifier):
    """Names without a file, and a program of the repository that an agent may not change."""
    official = {"pkg/tests/test_a.py": "from calc import add, sub\n\n\ndef test_x():\n    assert add(1, 1) == 2\n"}
    official["pkg/tests/test_a.py"] += "\n\ndef test_y():\n    assert sub(1, 1) == 0\n"
    task = text_task(
        "bash -c 'exec python bin/test pkg/tests/test_a.py'\n",
        "parse_log_sympy",
        base={**arena.base_files, "bin/test": RUNNER},
        official=official,
        fail_to_pass=("test_x",),
        pass_to_pass=("test_y",),
        support=("bin/test",),
    )
    assert verifier.verify(task, arena.fix).passed
    assert verifier.verify(task, {}).unmet == ("test_x",)
    report = verifier.verify(task, {"bin/test": FileState(b"print('test_x ok\\ntest_y ok\\n')\n", "100755")})
    assert (report.outcome, report.ignored) == (Outcome.FAILED, ("bin/test",))
