"""Pipelines over the tiny task, and tests of it that need no run."""

import threading

import pytest
from pipelines import gagar_threads, wait_until

from gagar_env.episode import Outcome, TestReport
from gagar_env.jobs import GroupJob
from gagar_env.pipeline import Pipeline
from gagar_env.verify import Verifier


@pytest.fixture
def judged_at_once(monkeypatch):
    """Verification without a run, for tests of what goes on around it: an addition passes."""

    def verify(self, task, patch, *_, **__):
        return TestReport(outcome=Outcome.PASSED if b"+    return" in patch else Outcome.FAILED, reason="by the patch")

    monkeypatch.setattr(Verifier, "verify", verify)


@pytest.fixture
def jobs(tiny_task):
    """Jobs of the tiny task: number n has the seed `first + n * size`."""
    return lambda count, size=3, first=0: [GroupJob(n, tiny_task, seed=first + n * size) for n in range(count)]


@pytest.fixture
def make(best_kind):
    made = []

    def pipeline(policy, grader=None, **kwargs):
        made.append(Pipeline(policy, grader, **{"group_size": 3, "sandbox": best_kind, **kwargs}))
        return made[-1]

    yield pipeline
    for one in made:
        one.close()


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = set(threading.enumerate())
    yield
    wait_until(lambda: not set(gagar_threads()) - before)
