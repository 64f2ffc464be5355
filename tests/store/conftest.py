"""Small groups, made without running anything."""

import pytest

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport
from gagar_env.group import grade_group


@pytest.fixture
def make_group():
    """A group of two episodes, of which the first passed, and its result."""
    return _make_group


def _make_group(name="g", outcomes=(True, False)):
    episodes = [
        Episode(
            id=f"{name}/{number}",
            group_id=name,
            task_id="t",
            status=EpisodeStatus.SUBMITTED,
            patch=b"\xff\x00 not text",
            report=TestReport(outcome=Outcome.PASSED if won else Outcome.FAILED, reason="" if won else "no"),
        )
        for number, won in enumerate(outcomes)
    ]
    return grade_group(episodes, None), episodes
