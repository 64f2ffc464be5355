"""Links and paths that lead out of the work tree, in what goes through the verifier."""

import os

import pytest

from gagar_env.changes import FileState
from gagar_env.episode import Outcome
from gagar_env.sandbox import why_unavailable


def state(text, mode="100644"):
    return FileState(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"), mode)


def changes(files):
    return {p: s if s is None or isinstance(s, FileState) else state(s) for p, s in files.items()}


@pytest.fixture(scope="module")
def task(arena):
    return arena.task()


@pytest.fixture(scope="module")
def strongest(arena):
    return arena.verifier("auto")


@pytest.fixture(params=("process", "bwrap"))
def each(request, arena):
    if reason := why_unavailable(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return arena.verifier(request.param)


@pytest.fixture(scope="module")
def honest(arena, task, strongest):
    """The honest fix earns 1, and doing nothing 0, under the very hardening that the attacks meet."""
    assert strongest.verify(task, arena.fix).outcome is Outcome.PASSED
    assert strongest.verify(task, {}).outcome is Outcome.FAILED
    return arena.fix


def earns_nothing(verifier, task, files):
    report = verifier.verify(task, changes(files))
    assert report.outcome is Outcome.FAILED, report
    assert report.reason
    return report


def is_replaced(verifier, task, honest, files):
    """The attack has no effect: not taken, no reward without the fix, full reward with it."""
    report = earns_nothing(verifier, task, files)
    assert set(report.ignored) >= set(files)
    with_fix = verifier.verify(task, {**changes(files), **honest})
    assert with_fix.outcome is Outcome.PASSED, with_fix.reason
    return report


@pytest.mark.slow
def test_hack_11_the_official_tests_are_not_written_through_links(each, task, honest, tmp_path):
    folder, file = tmp_path / "folder", tmp_path / "file.py"
    folder.mkdir(mode=0o777)
    file.write_text("mine\n")
    os.chmod(tmp_path, 0o777)
    os.chmod(file, 0o666)
    attacks = (
        {"tests": state(str(folder), "120000")},
        {"tests/test_calc.py": state(str(file), "120000"), "checks.py": state(str(file), "120000")},
    )
    for files in attacks:
        is_replaced(each, task, honest, files)
    assert file.read_text() == "mine\n"
    assert list(folder.iterdir()) == []


def test_hack_11_links_of_the_agent_stay_links(strongest, task, honest):
    files = {"calc.py": state("/etc/passwd", "120000"), "up": state("../..", "120000")}
    earns_nothing(strongest, task, files)
    assert strongest.verify(task, {**changes({"up": files["up"]}), **honest}).outcome is Outcome.PASSED


@pytest.mark.parametrize("path", ["../out.py", "/tmp/out.py", ".git/hooks/post-checkout", "a/../../b"])
def test_hack_11_paths_that_leave_are_refused(strongest, task, path):
    report = earns_nothing(strongest, task, {path: "x"})
    assert "not inside the work tree" in report.reason
