"""A rule grader measures equal work of a task once, and its verdict is that of one that never saw it."""

import pytest

from gagar_env import grade_group, load_task
from gagar_env.agents.graders import RuleGrader
from gagar_env.agents.graders import rule as rules
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn


@pytest.fixture
def measured(monkeypatch):
    calls = []
    read_work = rules.read_work
    monkeypatch.setattr(rules, "read_work", lambda *args, **named: calls.append(named) or read_work(*args, **named))
    return calls


def group(task, patches, turns=2):
    turn = Turn(action="a", observation="o")
    outcomes = [(patch, Outcome.PASSED) for patch in patches] + [(b"", Outcome.FAILED)]
    return [
        Episode(
            id=f"{number}",
            group_id="g",
            task_id=task.id,
            status=EpisodeStatus.SUBMITTED,
            turns=(turn,) * turns,
            patch=patch,
            report=TestReport(outcome=outcome),
        )
        for number, (patch, outcome) in enumerate(outcomes)
    ]


def graded(grader, *arguments, **named):
    result = grade_group(group(*arguments, **named), grader)
    assert result.graded, result.fallback
    return result.ranks, {label: evidence["amounts"] for label, evidence in result.verdict.evidence.items()}


def test_equal_work_is_measured_once(measured):
    task = load_task("semver-range-resolve")
    patches = [task.solution_patch, *(s.patch for s in task.solutions if s.kind == "sloppy")]
    grader = RuleGrader()
    first = graded(grader, task, patches)
    assert len(measured) == len(patches)
    assert graded(grader, task, patches) == first
    assert len(measured) == len(patches)
    assert graded(RuleGrader(), task, patches) == first


def test_what_a_measure_depends_on_is_measured_again(measured):
    """Another number of turns, another list of what is in scope."""
    task = load_task("semver-range-resolve")
    patches = [task.solution_patch, *(s.patch for s in task.solutions if s.kind == "sloppy")]
    grader = RuleGrader()
    graded(grader, task, patches)
    count = len(measured)
    graded(grader, task, patches, turns=9)
    assert len(measured) == 2 * count
    wider = task.model_copy(update={"concerns": ("src/verspan/other.py",)})
    result = grade_group(group(wider, patches), grader, task=wider)
    assert result.graded
    assert len(measured) == 3 * count
