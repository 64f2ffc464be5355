"""What tests of sampling share: tasks that are never run, and scripted results of groups."""

import pytest

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport
from gagar_env.group import grade_group
from gagar_env.tasks.task import RepoSource, Task, Tests


def make_task(name: str, **fields) -> Task:
    tests = Tests(files=("t.py",), fail_to_pass=("t.py::a",))
    return Task(**{"id": name, "problem_statement": "x", "repo": RepoSource(kind="tree"), "tests": tests, **fields})


def make_tasks(count: int, prefix: str = "t") -> list[Task]:
    return [make_task(f"{prefix}{number}") for number in range(count)]


def make_episodes(task_id: str, outcomes: str, group: str = "g") -> list[Episode]:
    """One episode for each letter: p passed, f failed, m masked, e broken in verification, x broken before."""
    kinds = {"p": Outcome.PASSED, "f": Outcome.FAILED, "m": Outcome.MASKED, "e": Outcome.ERROR}
    return [
        Episode(
            id=f"{group}-{number}",
            group_id=group,
            task_id=task_id,
            status=EpisodeStatus.ERROR if letter == "x" else EpisodeStatus.SUBMITTED,
            report=None if letter == "x" else TestReport(outcome=kinds[letter]),
            error="it broke" if letter in "xe" else "",
        )
        for number, letter in enumerate(outcomes)
    ]


@pytest.fixture(scope="session")
def task_named():
    return make_task


@pytest.fixture(scope="session")
def tasks_of():
    return make_tasks


@pytest.fixture(scope="session")
def episodes_of():
    return make_episodes


@pytest.fixture(scope="session")
def result_of():
    return lambda task_id, outcomes: grade_group(make_episodes(task_id, outcomes), None)
