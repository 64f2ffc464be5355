"""Groups to log, graded for real by the rule of patch size."""

import pytest

from gagar_env.episode import Episode, EpisodeStatus, Flag, Outcome, TestReport, Timings, Turn
from gagar_env.group import grade_group
from gagar_env.jobs import GroupBatch
from gagar_env.tasks.registry import load_task

LINE = b"+    a = 1\n"


def patch(lines, path="ledger/money.py"):
    body = LINE * lines
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n".encode() + body


def episode(name, outcome, *, lines=3, turns=2, status=EpisodeStatus.SUBMITTED, group="g"):
    report = None if outcome is None else TestReport(outcome=outcome, flags=(Flag(kind="runs_text"),))
    turn = Turn(action="ls", observation="src", prompt_tokens=10, completion_tokens=5)
    return Episode(
        id=f"{group}-{name}",
        group_id=group,
        task_id="ledger-rounding",
        status=status,
        turns=(turn,) * turns,
        patch=patch(lines),
        report=report,
        timings=Timings(reset_s=0.5, steps_s=2.0, capture_s=0.25, verify_s=1.0),
    )


@pytest.fixture
def task():
    return load_task("ledger-rounding")


@pytest.fixture
def batch(task):
    """Two passed, one failed, one was cut, one is masked."""
    members = (
        episode("a", Outcome.PASSED, lines=2, turns=1),
        episode("b", Outcome.PASSED, lines=8, turns=3),
        episode("c", Outcome.FAILED, lines=1),
        episode("d", None, status=EpisodeStatus.CUT),
        episode("e", Outcome.MASKED),
    )
    return GroupBatch(
        result=grade_group(members, None, task=task, seed=0), episodes=members, task=task, attempt=0, seed=0
    )


@pytest.fixture
def all_failed(task):
    members = tuple(episode(name, Outcome.FAILED, group="h") for name in "ab")
    return GroupBatch(
        result=grade_group(members, None, task=task, seed=0), episodes=members, task=task, attempt=1, seed=2
    )
