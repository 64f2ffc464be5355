"""The numbers of groups, worked out by hand."""

import math

import pytest

from gagar_env.evaluation.rows import row_of
from gagar_env.grading import Usage, Verdict, VerdictOutcome
from gagar_env.loggers import metrics_of
from gagar_env.wrappers.batches import GroupMetrics


def graded(batch, **usage):
    """The same group, ranked by a model that was sure to 75%."""
    verdict = Verdict(
        grader="g", outcome=VerdictOutcome.RANKED, tiers=(("A",), ("B",)), confidence=0.75, usage=Usage(**usage)
    )
    result = batch.result.model_copy(update={"verdict": verdict, "graded": True, "seconds": 1.5})
    return type(batch)(result=result, episodes=batch.episodes, task=batch.task, attempt=0, seed=0)


def test_numbers_of_two_groups(batch, all_failed):
    counts = GroupMetrics()
    batch = graded(batch, calls=2, prompt_tokens=300, completion_tokens=40, cost_usd=0.25)
    for one in (batch, all_failed):
        counts.count(one.result, one.episodes)
    numbers = metrics_of([batch, all_failed], counts)
    assert numbers["pass_rate"] == pytest.approx(2 / 5)
    assert (numbers["groups/kept"], numbers["groups/all_failed"], numbers["groups/all_passed"]) == (1, 1, 0)
    assert (numbers["episodes"], numbers["episodes/invalid"], numbers["episodes/cut"]) == (7, 2, 1)
    assert numbers["patch/lines"] == (2 + 8) / 2
    assert numbers["turns"] == pytest.approx((1 + 3 + 2 + 2 + 2) / 5)
    assert numbers["tokens"] == pytest.approx(5 * (1 + 3 + 2 + 2 + 2) / 5)
    assert numbers["tokens/prompt"] == pytest.approx(2 * numbers["tokens"])
    assert (numbers["grader/agreement"], numbers["grader/fallbacks"], numbers["grader/calls"]) == (0.75, 0, 2)
    assert (numbers["grader/tokens"], numbers["grader/cost_usd"]) == (340, 0.25)
    assert numbers["advantages/sum_before"] == numbers["advantages/sum_after"] == batch.result.sum_after > 0
    assert (numbers["seconds/steps"], numbers["seconds/verify"], numbers["seconds/grading"]) == (2.0, 1.0, 1.5)
    assert (numbers["total/groups"], numbers["total/kept"], numbers["total/dropped/all_failed"]) == (2, 1, 1)
    assert (numbers["total/episodes"], numbers["total/passed_episodes"], numbers["total/turns"]) == (7, 2, 14)
    assert (numbers["total/prompt_tokens"], numbers["total/completion_tokens"]) == (140, 70)
    assert (numbers["total/grader_calls"], numbers["total/grader_tokens"]) == (2, 340)
    assert (numbers["total/grader_cost_usd"], numbers["total/unpriced"]) == (0.25, 0)


def test_scope_is_that_of_the_evaluation(batch):
    rows = [row_of(e, batch.task) for e in batch.episodes if e.passed]
    assert metrics_of([batch])["patch/out_of_scope_lines"] == sum(r.out_of_scope_lines for r in rows) / len(rows)


def test_a_mean_over_nothing_is_no_zero(all_failed):
    numbers = metrics_of([all_failed])
    assert numbers["pass_rate"] == 0
    for name in ("patch/lines", "grader/agreement", "patch/out_of_scope_lines"):
        assert math.isnan(numbers[name])
    assert metrics_of([])["episodes"] == 0
    assert math.isnan(metrics_of([])["pass_rate"])


def test_tokens_that_nobody_counted_are_no_zero(batch):
    def silent(episode):
        turns = tuple(t.model_copy(update={"prompt_tokens": 0, "completion_tokens": 0}) for t in episode.turns)
        return episode.model_copy(update={"turns": turns})

    quiet = type(batch)(
        result=batch.result, episodes=tuple(map(silent, batch.episodes)), task=batch.task, attempt=0, seed=0
    )
    numbers = metrics_of([quiet], GroupMetrics())
    assert math.isnan(numbers["tokens"])
    assert math.isnan(numbers["tokens/prompt"])
    assert "total/grading_s" not in numbers
    assert numbers["total/groups"] == 0


def test_a_price_that_is_not_known_is_no_zero(batch):
    unpriced = graded(batch, calls=1, cost_known=False)
    assert math.isnan(metrics_of([unpriced])["grader/cost_usd"])
    counts = GroupMetrics()
    counts.count(unpriced.result, unpriced.episodes)
    assert counts.unpriced == 1
