import pytest

from gagar_env.agents.graders import CallableGrader
from gagar_env.errors import GradingError
from gagar_env.grading import Verdict
from gagar_env.group import grade_group


@pytest.fixture
def workspace(bench):
    with bench.workspace() as made:
        yield made


def grade(workspace, given, **more):
    """What comes of a return value; a function gets the labels A, B, C of the candidates that passed."""
    return CallableGrader(lambda ws: given(*ws.passing) if callable(given) else given, **more).grade(workspace)


@pytest.mark.parametrize(
    ("given", "tiers"),
    [
        (lambda a, b, c: [[b], [a, c]], [[1], [0, 2]]),
        (lambda a, b, c: [c, b, a], [[2], [1], [0]]),
        (lambda a, b, c: (c, {b, a}), [[2], [0, 1]]),
        (lambda a, b, c: {a: 1, b: 3.0, c: 1.0}, [[1], [0, 2]]),
        (lambda a, b, c: {a: -1, b: True, c: 0}, [[1], [2], [0]]),
        (lambda a, b, c: {a: 0, b: 0, c: 0}, [[0, 1, 2]]),
        (lambda a, b, c: Verdict(grader="x", outcome="ranked", tiers=((a,), (c, b))), [[0], [2, 1]]),
    ],
)
def test_tiers_scores_and_verdicts(workspace, given, tiers):
    verdict = grade(workspace, given)
    labels = workspace.passing
    assert [sorted(tier) for tier in verdict.tiers] == [sorted(labels[i] for i in tier) for tier in tiers]
    assert verdict.outcome == ("tied" if len(tiers) == 1 else "ranked")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "it returned NoneType"),
        ("ABC", "it returned str"),
        (3, "it returned int"),
        (lambda a, b, c: [a, b], "missing"),
        (lambda a, b, c: [a, b, c, a], "repeated"),
        (lambda a, b, c: [a, b, c, "Z"], "unknown: Z"),
        (lambda a, b, c: [[a, b, c], []], "a tier is empty"),
        (lambda a, b, c: [a, b, 3], "tiers of something else"),
        (lambda a, b, c: [a, b, [3]], "tiers of something else"),
        (lambda a, b, c: {a: 1, b: 2}, "missing"),
        (lambda a, b, c: {a: 1, b: 2, c: float("nan")}, "a finite number"),
        (lambda a, b, c: {a: 1, b: 2, c: "3"}, "a finite number"),
        (lambda a, b, c: {a: 1, b: 2, c: None}, "a finite number"),
        (lambda a, b, c: Verdict(grader="x", outcome="ranked", tiers=((a,),)), "missing"),
    ],
)
def test_what_is_no_ranking_says_why(workspace, given, words):
    with pytest.raises(GradingError, match=words):
        grade(workspace, given)


def test_failing_candidates_are_not_ranked(workspace):
    everyone = tuple(workspace.candidates)
    with pytest.raises(GradingError, match="unknown"):
        grade(workspace, [everyone])


def test_its_name(bench):
    def shortest(workspace):
        return {label: -len(workspace.candidates[label].patch) for label in workspace.passing}

    result = grade_group(bench.group(), CallableGrader(shortest), task=bench.task)
    assert result.graded
    assert result.verdict.grader == "shortest"
    assert all(line.startswith("score -") for line in result.verdict.reasons.values())
    assert CallableGrader(shortest, name="mine").name == "mine"
    with pytest.raises(TypeError, match="needs a function"):
        CallableGrader("shortest")
