"""Reports that are kept: equal work is judged once, and nothing but equal work."""

import pytest

from gagar_env import load_task
from gagar_env.episode import Outcome, TestReport
from gagar_env.kept_reports import KeptReports
from gagar_env.tasks.task import Tests
from gagar_env.verify import Verifier


def test_a_result_is_kept_and_what_is_none_is_not():
    kept, asked = KeptReports(2), []

    def judge(report):
        asked.append(report)
        return report

    passed = TestReport(outcome=Outcome.PASSED)
    for report in (passed, TestReport(outcome=Outcome.ERROR), TestReport(outcome=Outcome.FAILED, timed_out=True)):
        for _ in range(2):
            kept.get(report.model_dump_json(), lambda r=report: judge(r))
    assert len(asked) == 1 + 2 + 2
    kept.get("b", lambda: judge(passed))
    kept.get("c", lambda: judge(passed))
    assert kept.get(passed.model_dump_json(), lambda: judge(passed)) is passed
    assert len(asked) == 8  # the oldest had to go


def test_nothing_is_kept_unless_it_is_asked_for():
    asked = []
    for _ in range(2):
        KeptReports(0).get("a", lambda: asked.append(1) or TestReport(outcome=Outcome.PASSED))
    assert len(asked) == 2
    with pytest.raises(ValueError, match="remember must be 0 or more"):
        Verifier(remember=-1)


@pytest.mark.slow
def test_equal_work_of_an_equal_task_is_run_once(tmp_path):
    """Counted by the sandbox runs themselves: the second verdict takes no run, other work and another task do."""
    task = load_task("semver-range-resolve")
    verifier = Verifier(remember=10)
    runs = []
    run = verifier._by_reporter.run
    verifier._by_reporter.run = lambda *arguments: runs.append(1) or run(*arguments)
    first = verifier.verify(task, task.solution_patch)
    count = len(runs)
    again = verifier.verify(task, task.solution_patch)
    assert first.passed
    assert again.passed
    assert again.tests == first.tests
    assert len(runs) == count >= 1
    assert not verifier.verify(task, b"").passed
    assert len(runs) > count
    count = len(runs)
    fewer = task.tests.model_dump() | {"pass_to_pass": task.tests.pass_to_pass[:1]}
    other = task.model_copy(update={"tests": Tests.model_validate(fewer)})
    assert verifier.verify(other, task.solution_patch).passed
    assert len(runs) > count
