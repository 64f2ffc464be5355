import threading

import pytest

from gagar_env.agents.graders import CallableGrader, EnsembleGrader, RuleGrader
from gagar_env.grading import Usage, Verdict, VerdictOutcome
from gagar_env.group import grade_group


class Says:
    """A grader that ranks as told, by place in `passing`, or raises."""

    def __init__(self, name, *tiers, confidence=1.0, calls=1, **more):
        self.name, self.tiers, self.more = name, tiers, more
        self.confidence, self.usage = confidence, Usage(calls=calls, prompt_tokens=10 * calls)

    def grade(self, workspace):
        tiers = tuple(tuple(workspace.passing[i] for i in tier) for tier in self.tiers)
        given = {"outcome": "ranked" if tiers else "failed", "tiers": tiers, **self.more}
        return Verdict(grader=self.name, confidence=self.confidence, usage=self.usage, **given)


class Raises:
    name = "raises"

    def grade(self, workspace):
        raise RuntimeError("no\nidea \udcff")


@pytest.fixture
def workspace(bench):
    with bench.workspace() as made:
        yield made


def order(verdict, workspace):
    return [sorted(workspace.passing.index(label) for label in tier) for tier in verdict.tiers]


def test_mean_places_with_ties(workspace):
    one, two = Says("one", [0], [1], [2]), Says("two", [0], [1, 2])
    verdict = EnsembleGrader([one, two]).grade(workspace)
    assert order(verdict, workspace) == [[0], [1], [2]]
    places = verdict.record["mean_places"]
    assert [places[label] for label in workspace.passing] == [1.0, 2.25, 2.75]
    assert verdict.grader == "ensemble(one,two)"
    assert verdict.usage == Usage(calls=2, prompt_tokens=20)
    assert [m["grader"] for m in verdict.record["members"]] == ["one", "two"]


def test_opposite_rankings_are_a_tie_without_confidence(workspace):
    verdict = EnsembleGrader([Says("a", [0], [1], [2]), Says("b", [2], [1], [0])]).grade(workspace)
    assert (verdict.outcome, verdict.confidence) == (VerdictOutcome.TIED, 0.0)
    assert order(verdict, workspace) == [[0, 1, 2]]


def test_weights_decide(workspace):
    members = [Says("a", [0], [1], [2]), Says("b", [2], [1], [0])]
    assert order(EnsembleGrader(members, [1, 3]).grade(workspace), workspace) == [[2], [1], [0]]
    assert order(EnsembleGrader(members, [3, 1]).grade(workspace), workspace) == [[0], [1], [2]]


def test_confidence_is_theirs_times_agreement(workspace):
    same = [Says("a", [0], [1], [2], confidence=0.5), Says("b", [0], [1], [2])]
    assert EnsembleGrader(same).grade(workspace).confidence == 0.75
    assert EnsembleGrader(same, [3, 1]).grade(workspace).confidence == pytest.approx(0.625)
    assert EnsembleGrader(same[:1]).grade(workspace).confidence == 0.5


@pytest.mark.parametrize(
    "bad", [Raises(), Says("bad"), Says("bad", [0], [1]), Says("bad", [0, 1, 2], outcome="skipped")]
)
def test_one_without_a_ranking_is_left_out_and_said(workspace, bad):
    verdict = EnsembleGrader([bad, Says("good", [2], [0, 1])]).grade(workspace)
    assert order(verdict, workspace) == [[2], [0, 1]]
    assert verdict.confidence == 0.25  # half of the weight, and nobody to agree with
    assert f"{bad.name} is left out: " in verdict.warnings[0]
    assert "\n" not in verdict.warnings[0]
    Verdict.model_validate_json(verdict.model_dump_json())
    spent = 1 if isinstance(bad, Says) else 0
    assert verdict.usage.calls == 1 + spent


def test_all_failing_is_failed_with_what_it_cost(bench):
    ensemble = EnsembleGrader([Raises(), Says("bad", failure="refused", error="declined", calls=3)])
    result = grade_group(bench.group(), ensemble, task=bench.task)
    assert result.advantages == result.advantages_before
    assert result.verdict.outcome is VerdictOutcome.FAILED
    assert "raises: RuntimeError: no idea" in result.fallback
    assert "bad: declined" in result.fallback
    assert (result.verdict.failure, result.verdict.usage.calls) == ("refused", 3)


def test_real_members(bench):
    by_size = CallableGrader(lambda ws: {c: -len(ws.candidates[c].patch) for c in ws.passing}, name="size")
    result = grade_group(bench.group(), EnsembleGrader([RuleGrader(), by_size]), task=bench.task)
    assert result.graded
    assert set(result.verdict.evidence[result.labels[0]]) == {"rule", "size"}
    assert "rule: " in result.verdict.reasons[result.labels[0]]


def test_cancel_reaches_the_members(workspace):
    stopped = threading.Event()

    class Waits(Says):
        def cancel(self, workspace):
            stopped.set()

    EnsembleGrader([Raises(), Waits("w", [0, 1, 2])]).cancel(workspace)
    assert stopped.is_set()


def test_what_is_no_ensemble():
    with pytest.raises(ValueError, match="at least one"):
        EnsembleGrader([])
    with pytest.raises(TypeError, match="not its name"):
        EnsembleGrader(["rule"])
    for weights in ([1], [1, 0], [1, float("inf")], [1, float("nan")]):
        with pytest.raises(ValueError, match="weights"):
            EnsembleGrader([Raises(), Raises()], weights)


def test_marks_of_turns_on_which_those_that_mark_them_agree(workspace):
    a, b = workspace.passing[:2]
    one = Says("one", [0], [1], [2], turn_marks={a: {1: "useful", 2: "wasted"}})
    two = Says("two", [0], [1], [2], turn_marks={a: {1: "harmful", 2: "wasted"}, b: {1: "useful"}})
    failed = Says("failed", turn_marks={b: {1: "harmful"}})
    verdict = EnsembleGrader([one, two, failed]).grade(workspace)
    assert verdict.turn_marks == {a: {2: "wasted"}, b: {1: "useful"}}
