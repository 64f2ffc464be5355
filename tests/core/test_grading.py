import pytest

from gagar_env.errors import GradingError
from gagar_env.grading import Grader, Verdict, VerdictOutcome, check_verdict


def verdict(*tiers, outcome="ranked", **more):
    return Verdict(grader="g", outcome=outcome, tiers=tiers, **more)


def test_the_outcome_follows_the_tiers():
    assert check_verdict(verdict(("A", "B")), ("A", "B")).outcome is VerdictOutcome.TIED
    assert check_verdict(verdict(("A",), ("B",), outcome="tied"), ("A", "B")).outcome is VerdictOutcome.RANKED


@pytest.mark.parametrize(
    ("tiers", "words"),
    [
        ((("A",),), "missing: B"),
        ((("A",), ("B",), ("C",)), "unknown: C"),
        ((("A", "B"), ("A",)), "repeated: A"),
        ((("a",), ("B",)), "missing: A; unknown: a"),
        ((("A", "B"), ()), "a tier is empty"),
        ((), "missing: A, B"),
    ],
)
def test_judge_3_only_an_exact_partition_is_a_ranking(tiers, words):
    with pytest.raises(GradingError, match=words):
        check_verdict(verdict(*tiers), ("A", "B"))


@pytest.mark.parametrize("outcome", ["failed", "skipped"])
def test_no_ranking_needs_no_tiers(outcome):
    assert check_verdict(verdict(outcome=outcome), ("A", "B")).outcome == outcome


def test_rank_is_the_tier_and_none_is_not_zero():
    ranked = verdict(("B",), ("A", "C"))
    assert [ranked.rank(label) for label in "ABCD"] == [1, 0, 1, None]


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan"), float("inf")])
def test_confidence_out_of_range_is_refused(confidence):
    with pytest.raises(ValueError, match="confidence"):
        verdict(("A",), confidence=confidence)


def test_a_verdict_survives_json():
    given = verdict(("A",), ("B",), reasons={"A": "ok"}, evidence={"A": {"size": 1.5}}, confidence=0.5)
    assert Verdict.model_validate_json(given.model_dump_json()) == given


def test_anything_with_a_name_and_grade_is_a_grader():
    class Mine:
        name = "mine"

        def grade(self, workspace):
            return verdict()

    assert isinstance(Mine(), Grader)
