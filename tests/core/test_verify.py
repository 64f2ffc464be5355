"""The verifier on tiny tasks: three outcomes, and what makes them."""

import os
import subprocess
import sys
import threading

import pytest

from gagar_env.changes import FileState
from gagar_env.episode import Outcome
from gagar_env.errors import SandboxError, TaskError
from gagar_env.patch import make_patch
from gagar_env.sandbox import open_sandbox, register_sandbox

ODD = "# -*- coding: utf-8 -*-\nimport pytest\n\nimport calc\n\n\n"
NAMES = ["a b", "x - y", "a::b", "[", "", "PASSED", "new\nline", "\u00e9"]


def changes(**files):
    return {path.replace("__", "/") + ".py": FileState(text.encode()) for path, text in files.items()}


@pytest.fixture(scope="module")
def task(arena):
    return arena.task()


@pytest.fixture(scope="module")
def verifier(arena):
    return arena.verifier()


def one_file(arena, text, fail_to_pass, pass_to_pass=(), **more):
    """A task with one official test file, `t.py` at the root."""
    names = {"files": ("test_t.py",), "fail_to_pass": fail_to_pass, "pass_to_pass": pass_to_pass}
    return arena.task(official={"test_t.py": text}, **names, **more)


def test_a_patch_is_judged_by_the_official_tests(arena, task, verifier):
    patch = make_patch(arena.tree(task), arena.fix)
    report = verifier.verify(task, patch)
    assert (report.outcome, report.passed, report.valid, report.reason) == ("passed", True, True, "")
    assert (report.exit_code, report.timed_out, report.attempts, report.unmet) == (1, False, 1, ())
    assert set(report.tests) == {*task.tests.fail_to_pass, *task.tests.pass_to_pass}
    assert all(r.seconds >= 0 and r.message == "" for r in report.tests.values())
    assert type(report).model_validate_json(report.model_dump_json()) == report


def test_doing_nothing_is_verified_and_fails(task, verifier):
    for nothing in (b"", {}):
        report = verifier.verify(task, nothing)
        assert report.outcome is Outcome.FAILED
        assert report.unmet == task.tests.fail_to_pass
        assert report.reason.startswith("3 of 5 required tests did not pass: tests/test_calc.py::test_add,")
        assert "assert 0 == 4" in report.tests["tests/test_new.py::test_new"].message
        assert "test_add" in report.output_tail


def test_what_worked_has_to_keep_working(task, verifier):
    broken = changes(calc="def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return 0\n")
    assert verifier.verify(task, broken).unmet == ("tests/test_calc.py::test_sub",)


def test_git_2_a_fix_with_binary_mode_and_rename_beside_it(arena, task, verifier):
    beside = {
        "dump.db": FileState(bytes(range(256)) * 9),
        "README.md": None,
        "docs/README.md": FileState(b"# calc\n"),
        "src/extra.py": FileState(b"X = 1\n", "100755"),
        os.fsdecode(b"od\xffd \n.txt"): FileState(b"x"),
    }
    patch = make_patch(arena.tree(task), {**beside, **arena.fix})
    assert verifier.verify(task, patch).passed
    assert verifier.verify(task, patch[:-1]).passed  # GIT-1: a lost final newline


def test_a_patch_that_does_not_apply_fails_with_the_reason(task, verifier):
    report = verifier.verify(task, b"--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-nothing\n+x\n")
    assert report.outcome is Outcome.FAILED
    assert report.reason == "the patch is refused: patch failed: calc.py:1; calc.py: patch does not apply"
    assert report.unmet == ()


def test_enc_2_a_patch_over_the_limit_is_refused(arena, task, verifier):
    big = {"big.bin": FileState(os.urandom(task.limits.patch_bytes + 1))}
    report = verifier.verify(task, big)
    assert (report.outcome, "the limit is 5000000" in report.reason) == (Outcome.FAILED, True)


def test_test_1_odd_ids_are_compared_whole(arena, verifier):
    text = ODD + f"@pytest.mark.parametrize('v', {NAMES!a})\ndef test_p(v):\n    assert calc.add(1, 1) == 2\n"
    text += "\n\ndef test_PASSED_handler():\n    print('PASSED test_t.py::test_PASSED_handler')\n    assert 0\n"
    ids = [n.encode("unicode_escape").decode() for n in NAMES]
    listed = [f"test_t.py::test_p[{i}]" for i in ids]
    task = one_file(arena, text, (*listed, "test_t.py::test_p[a", "test_t.py::test_p[x", "test_p"))
    assert verifier.verify(task, arena.fix).passed
    assert set(verifier.verify(task, {}).unmet) == set(task.tests.fail_to_pass)
    handler = one_file(arena, text, ("test_t.py::test_PASSED_handler",))
    assert verifier.verify(handler, arena.fix).unmet == handler.tests.fail_to_pass


def test_test_1_all_tests_that_an_id_means_must_pass(arena, verifier):
    text = ODD + "@pytest.mark.parametrize('v', ['a b', 'a c'])\ndef test_p(v):\n    assert calc.add(1, 1) == 2\n"
    text += "    assert v == 'a b'\n"
    assert verifier.verify(one_file(arena, text, ("test_t.py::test_p[a b]",)), arena.fix).passed
    assert not verifier.verify(one_file(arena, text, ("test_t.py::test_p[a",)), arena.fix).passed


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def add(:\n", "could not be collected: tests/test_calc.py: SyntaxError"),
        ("from nowhere import x\n", "could not be collected: tests/test_calc.py: ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", "SystemExit"),
        ("import pytest\npytest.exit('enough')\n", "Exit: enough"),
        ("import os\nos._exit(5)\n", "ended without a report (exit code 5)"),
        ("import os\nos._exit(0)\n", "ended without a report (exit code 0)"),
    ],
)
def test_test_2_what_did_not_run_did_not_pass(task, verifier, source, says):
    report = verifier.verify(task, changes(calc=source))
    assert report.outcome is Outcome.FAILED
    assert says in report.reason
    assert set(report.unmet) == {*task.tests.fail_to_pass, *task.tests.pass_to_pass}


def test_test_2_a_listed_test_that_is_not_there_fails(arena, verifier):
    task = one_file(arena, "import calc\n\n\ndef test_a():\n    assert calc.add(1, 1) == 2\n", ("test_t.py::test_b",))
    report = verifier.verify(task, arena.fix)
    assert (report.outcome, report.unmet) == (Outcome.FAILED, ("test_t.py::test_b",))


def test_test_2_other_tests_of_a_file_may_fail(arena, verifier):
    text = "import calc\n\n\ndef test_a():\n    assert calc.add(1, 1) == 2\n\n\ndef test_other():\n    assert 0\n"
    assert verifier.verify(one_file(arena, text, ("test_t.py::test_a",)), arena.fix).passed


SKIPS = """import pytest

import calc


def test_a():
    assert calc.add(1, 1) == 2


@pytest.mark.skip(reason="never here")
def test_skipped(): ...


@pytest.mark.xfail(raises=ZeroDivisionError)
def test_expected():
    1 / 0


@pytest.mark.xfail(raises=ZeroDivisionError)
def test_turns_into_expected():
    1 / (calc.add(1, 1) - 2)
    assert 0


@pytest.mark.xfail
def test_unexpected(): ...


def test_plain():
    assert calc.sub(1, 1) == 0
"""
KEEPS = tuple(f"test_t.py::{n}" for n in ("test_skipped", "test_expected", "test_unexpected", "test_plain"))


def test_skips_and_expected_failures_count_where_trusted_runs_have_them(arena, verifier):
    task = one_file(arena, SKIPS, ("test_t.py::test_a", "test_t.py::test_turns_into_expected"), KEEPS)
    assert verifier.verify(task, arena.fix).passed
    sneaky = "import pytest\n\n\ndef add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    pytest.%s('no')\n"
    for way in ("skip", "xfail"):
        report = verifier.verify(task, changes(calc=sneaky % way))
        assert report.unmet == ("test_t.py::test_plain",)
    skipped = one_file(arena, SKIPS, ("test_t.py::test_skipped",))
    assert verifier.verify(skipped, arena.fix).unmet == skipped.tests.fail_to_pass


@pytest.mark.slow
@pytest.mark.parametrize("where", ["import", "call"])
def test_test_4_a_hang_of_the_agents_is_a_failure_of_its_own_kind(arena, verifier, where):
    wait = "import time\ntime.sleep(600)\n"
    inside = "def add(a, b):\n    import time\n    time.sleep(600)\n"
    task = arena.task(timeout_s=4)
    report = verifier.verify(task, changes(calc=wait if where == "import" else inside))
    assert (report.outcome, report.timed_out, report.exit_code) == (Outcome.FAILED, True, None)
    assert report.reason == "the tests reached their limit of 4 s"
    assert report.attempts == 1


class Faulty:
    """A real sandbox that breaks at one method."""

    def __init__(self, inner, at):
        self._inner, self._at = inner, at

    def __getattr__(self, name):
        if name == self._at:
            raise SandboxError("it broke")
        return getattr(self._inner, name)


@pytest.mark.parametrize("at", ["open", "write", "write_scratch", "run", "read_scratch"])
def test_test_4_a_broken_sandbox_is_no_result_and_is_tried_again(arena, task, at, caplog):
    opened = []

    def broken_once(spec):
        opened.append(at)
        if at == "open" and len(opened) % 2:
            raise SandboxError("it broke")
        inner = open_sandbox("process", spec)
        return Faulty(inner, at) if len(opened) % 2 else inner

    register_sandbox(f"faulty-{at}", broken_once)
    report = arena.verifier(f"faulty-{at}").verify(task, arena.fix)
    assert (report.outcome, report.attempts) == (Outcome.PASSED, 2)
    opened.clear()
    report = arena.verifier(f"faulty-{at}", attempts=1).verify(task, arena.fix)
    assert (report.outcome, report.valid, report.attempts) == (Outcome.ERROR, False, 1)
    assert report.reason == "it broke"
    assert "verification of" in caplog.text


def test_test_4_a_missing_interpreter_is_an_error(arena):
    task = arena.task(environment={"python": "/nonexistent/python"})
    report = arena.verifier().verify(task, arena.fix)
    assert (report.outcome, report.attempts) == (Outcome.ERROR, 2)
    assert "the tests' interpreter did not start" in report.reason
    assert "/nonexistent/python" in report.reason


def test_test_4_an_environment_without_pytest_is_an_error(arena):
    task = arena.task(environment={"python": "/usr/bin/python3", "pythonpath": ()})
    report = arena.verifier().verify(task, arena.fix)
    if report.outcome is Outcome.PASSED:
        pytest.skip("the system's Python has pytest")
    assert report.outcome is Outcome.ERROR
    assert "pytest cannot be imported" in report.reason


def test_a_broken_task_is_an_error_at_once(arena, task):
    def provision(task):
        raise TaskError("no such repository")

    report = arena.verifier(provision=provision, attempts=5).verify(task, b"")
    assert (report.outcome, report.reason, report.attempts) == (Outcome.ERROR, "no such repository", 1)


def test_official_tests_that_do_not_fit_are_an_error(arena, verifier):
    task = arena.task(patch=b"--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-nothing\n+x\n")
    report = verifier.verify(task, arena.fix)
    assert report.outcome is Outcome.ERROR
    assert "official tests of tiny-" in report.reason
    assert "\n" not in report.reason


def test_missing_git_is_an_error(arena, monkeypatch):
    task = arena.task()
    patch = make_patch(arena.tree(task), arena.fix)
    verifier = arena.verifier("process", attempts=1)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", "/nonexistent")
        report = verifier.verify(task, patch)
    assert (report.outcome, report.reason) == (Outcome.ERROR, "git is not on PATH: install git")


def test_enc_1_odd_bytes_in_messages_and_output(arena, verifier):
    text = (
        "import os, sys\nimport calc\n\n\ndef test_a():\n    os.write(1, b'\\xff\\xfe a\\0b \\xc3')\n"
        "    sys.stdout.buffer.write(b'\\xff')\n    sys.stdout.flush()\n"
        "    assert calc.add(1, 1) == 2, '\\udcff \\0 \\ud800 ' + chr(0x1F600)\n"
    )
    task = one_file(arena, text, ("test_t.py::test_a",))
    assert verifier.verify(task, arena.fix).passed
    report = verifier.verify(task, {})
    assert report.outcome is Outcome.FAILED
    assert "\\udcff" in report.tests["test_t.py::test_a"].message
    assert type(report).model_validate_json(report.model_dump_json()) == report


def test_test_3_fixed_hash_seed_zone_and_locale(arena, verifier):
    text = (
        "import os, time\nimport calc\n\n\ndef test_a():\n"
        "    assert calc.add(1, 1) == 2\n    assert os.environ['PYTHONHASHSEED'] == '0'\n"
        "    assert hash('a') == %d\n    assert time.tzname[0] == 'UTC'\n"
        "    assert not [k for k in os.environ if k.startswith('PYTEST_ADD')]\n"
        "    assert os.environ['OWN'] == 'yes' and 'GAGAR_SECRET' not in os.environ\n"
    )
    code = "print(hash('a'))"
    environment = {"PYTHONHASHSEED": "0"}
    hashed = int(subprocess.check_output([sys.executable, "-c", code], env=environment))
    own = {"variables": {"OWN": "yes", "PYTEST_ADDOPTS": "-k nothing"}}
    os.environ["GAGAR_SECRET"] = "x"
    try:
        task = one_file(arena, text % hashed, ("test_t.py::test_a",), environment=own)
        report = verifier.verify(task, arena.fix)
    finally:
        del os.environ["GAGAR_SECRET"]
    assert report.passed, report.reason


def test_configuration_that_the_reference_changes_is_official(arena, verifier):
    """Honest gold work passes under the hardening, and an agent need not guess the configuration."""
    base = {**arena.base_files, "pytest.ini": "[pytest]\npython_files = check_*.py\n"}
    reference = {**arena.fix, "pytest.ini": FileState(b"[pytest]\npython_files = test_*.py\n[x]\n")}
    names = {"files": ("tests",), "fail_to_pass": ("tests/test_calc.py::test_add",), "pass_to_pass": ()}
    task = arena.task(base=base, reference=reference, **names)
    report = verifier.verify(task, task.solution_patch)
    assert (report.passed, report.ignored) == (True, ())
    assert verifier.verify(task, arena.fix).passed
    assert not verifier.verify(task, {}).passed


def test_tests_beside_the_code_leave_the_code_to_the_agent(arena, verifier):
    """In a folder with sources only what pytest collects is the tests' own."""
    base = {"pkg/__init__.py": "", "pkg/calc.py": arena.base_files["calc.py"], "pkg/test_calc.py": "X = 1\n"}
    official = {"pkg/test_calc.py": "from pkg.calc import add\n\n\ndef test_a():\n    assert add(1, 1) == 2\n"}
    fixed = {"pkg/calc.py": arena.fix["calc.py"]}
    names = {"files": ("pkg/test_calc.py",), "fail_to_pass": ("pkg/test_calc.py::test_a",), "pass_to_pass": ()}
    task = arena.task(base=base, official=official, reference=fixed, **names)
    extra = {"pkg/util.py": FileState(b"Y = 2\n"), "pkg/test_more.py": FileState(b"def test_m(): pass\n")}
    report = verifier.verify(task, {**fixed, **extra})
    assert (report.passed, report.ignored) == (True, ("pkg/test_more.py",))
    assert not verifier.verify(task, {"pkg/test_calc.py": FileState(b"def test_a(): pass\n")}).passed


def test_a_folder_of_official_tests(arena, verifier, tmp_path):
    (tmp_path / "tests/sub").mkdir(parents=True)
    (tmp_path / "tests/sub/test_t.py").write_text("import calc\n\n\ndef test_a():\n    assert calc.add(1, 1) == 2\n")
    names = {"files": ("tests/sub/test_t.py",), "fail_to_pass": ("tests/sub/test_t.py::test_a",)}
    task = arena.task(patch=b"", folder=tmp_path, pass_to_pass=(), **names)
    assert verifier.verify(task, arena.fix).passed
    report = verifier.verify(task, {"tests/sub/test_t.py": FileState(b"def test_a(): pass\n")})
    assert (report.passed, report.ignored) == (False, ("tests/sub/test_t.py",))


def test_one_verifier_serves_many_threads(arena, task, verifier):
    work = [arena.fix, {}, arena.fix]
    reports = [None] * len(work)

    def judge(number):
        reports[number] = verifier.verify(task, work[number])

    threads = [threading.Thread(target=judge, args=(n,)) for n in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.passed for r in reports] == [True, False, True]


def test_attempts_must_be_positive(arena):
    with pytest.raises(ValueError, match="at least 1, not 0"):
        arena.verifier(attempts=0)
