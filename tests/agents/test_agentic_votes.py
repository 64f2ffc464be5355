"""Votes: orders, labels, what they come to."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gagar_env.agents.graders.agentic import replay
from gagar_env.agents.graders.agentic.votes import fresh_labels, new_vote, orders, ranks, tau_b
from gagar_env.grading import FailureKind, VerdictOutcome


def record(*rankings, passing="ABC", failed=(), **settings):
    """A record of votes, each the tiers in labels of the workspace."""
    votes = []
    for number, tiers in enumerate(rankings):
        vote = new_vote(list(passing), number, "x")
        shown = {own: name for name, own in vote["labels"].items()}
        vote.update(tiers=[[shown[label] for label in tier] for tier in tiers], failure="", error="")
        vote["reasons"] = {shown[label]: f"{shown[label]} over {shown[passing[-1]]}" for label in passing}
        votes.append(vote)
    votes += [{**new_vote(list(passing), 9, "x"), "failure": kind, "error": "why"} for kind in failed]
    return {
        "grader": "agentic",
        "passing": list(passing),
        "orders": 4,
        "tie": 0.5,
        "temper": True,
        "warnings": [],
        "usage": {},
        "patch_lines": {label: n for n, label in enumerate(passing)},
        "talks_to_judge": {},
        "votes": votes,
        **settings,
    }


def test_orders_come_in_opposites():
    first, second, third, fourth = orders(list("ABCDE"), 4, "seed")
    assert second == first[::-1]
    assert fourth == third[::-1]
    assert third not in (first, second)
    assert orders(list("ABCDE"), 4, "seed") == [first, second, third, fourth]
    assert orders(list("ABCDE"), 4, "other")[0] != first


def test_labels_are_fresh_for_every_vote_and_seed():
    one, two = (fresh_labels(list("ABC"), number, "seed") for number in range(2))
    assert list(one.values()) == list(two.values()) == list("ABC")
    assert one.keys() != two.keys()
    assert one == fresh_labels(list("ABC"), 0, "seed")
    assert len(fresh_labels([str(n) for n in range(300)], 0, "many")) == 300


@pytest.mark.parametrize(
    ("one", "two", "tau"),
    [
        ([1, 2, 3], [1, 2, 3], 1),
        ([1, 2, 3], [3, 2, 1], -1),
        ([1, 1, 1], [2, 2, 2], 1),
        ([1, 1, 1], [1, 2, 3], None),
        ([1, 2, 3, 4], [1, 2, 4, 3], 4 / 6),
        ([1, 1, 2], [1, 2, 3], 2 / 6**0.5),
    ],
)
def test_tau_b(one, two, tau):
    assert tau_b(one, two) == (None if tau is None else pytest.approx(tau))
    assert tau_b(two, one) == tau_b(one, two)


def test_tied_places_share_their_mean():
    assert ranks([["A"], ["B", "C"], ["D"]]) == {"A": 1, "B": 2.5, "C": 2.5, "D": 4}


@pytest.mark.parametrize(
    ("rankings", "tiers", "confidence"),
    [
        (("ABC", "ABC"), (("A",), ("B",), ("C",)), 1.0),
        (("ABC", "CBA"), (("A", "B", "C"),), 0.0),
        (("ABC", "ACB"), (("A",), ("B", "C")), 1 / 3),
        (("ABC", "ABC", "BAC"), (("A", "B"), ("C",)), 5 / 9),
        (("ABC",), (("A",), ("B",), ("C",)), 0.5),
    ],
)
def test_what_votes_come_to(rankings, tiers, confidence):
    given_record = record(*rankings, orders=min(4, len(rankings)))
    verdict = replay(given_record)
    assert verdict.tiers == tiers
    assert verdict.confidence == pytest.approx(confidence)
    assert replay(verdict.record) == verdict
    assert replay({**given_record, "temper": False}).confidence == 1.0


def test_votes_that_failed_lower_confidence_and_too_few_are_a_failure():
    verdict = replay(record("ABC", "ABC", failed=["timeout"]))
    assert verdict.confidence == pytest.approx(2 / 3)
    verdict = replay(record("ABC", failed=["refused"]))
    assert (verdict.outcome, verdict.failure, verdict.tiers) == (VerdictOutcome.FAILED, FailureKind.REFUSED, ())
    assert replay(verdict.record) == verdict


def test_reasons_are_told_in_labels_of_the_workspace():
    assert replay(record("ABC", "ABC")).reasons == {"A": "A over C", "B": "B over C", "C": "C over C"}


@pytest.mark.parametrize("count", [2, 4])
def test_judge_8_votes_at_random_come_to_little_confidence(count):
    source = random.Random(count)
    found = [
        replay(record(*(source.sample("ABC", 3) for _ in range(count)), orders=count)).confidence for _ in range(300)
    ]
    assert sum(found) / len(found) < 0.35  # 0.28 for two votes: they agree by chance on every sixth group


@given(st.lists(st.permutations("ABCDEF"), min_size=2, max_size=5))
def test_any_votes_give_a_partition_that_respects_unanimity(rankings):
    verdict = replay(record(*rankings, passing="ABCDEF"))
    assert sorted(label for tier in verdict.tiers for label in tier) == list("ABCDEF")
    for one in "ABCDEF":
        for two in "ABCDEF":
            if all(r.index(one) < r.index(two) for r in rankings):
                assert verdict.rank(one) <= verdict.rank(two)
