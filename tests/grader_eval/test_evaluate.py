"""Evaluations of graders whose measures are known beforehand."""

import json
import random

import pytest

from gagar_env.agents.graders import RuleGrader
from gagar_env.episode import TestReport
from gagar_env.errors import GagarError
from gagar_env.grader_eval.evaluate import evaluate
from gagar_env.grader_eval.grading_runs import grade_items, reverse_labels
from gagar_env.grader_eval.items import Member
from gagar_env.grader_eval.measures import estimate, measure
from gagar_env.grader_eval.records import Grading, write_gradings
from gagar_env.workspace import Workspace, label_order

pytestmark = pytest.mark.slow

GROUPS = 18  # one of each kind


@pytest.fixture(scope="module")
def report(shop_task, best_kind):
    def run(grader, **options):
        return evaluate(grader, [shop_task], groups=GROUPS, sandbox=best_kind, **{"seed": 3, **options})

    return run


def known(workspace, label):
    """The right order, which no honest grader can read."""
    name = workspace.episode_ids[label].rpartition("/")[2]
    family = workspace.episode_ids[label].partition("-")[0]
    number = int(name.rpartition("-")[2]) if name != "reference" else 0
    return 0 if family == "equal" else number


def test_a_grader_that_knows_is_right_everywhere(report, by_size):
    found = report(by_size("knows", known)).report
    measures = found.measures
    assert found.groups == {"ordered": 10, "equal": 3, "attacked": 5}
    for name in ("pairwise_accuracy", "kendall_tau", "tie_accuracy", "self_agreement"):
        assert (getattr(measures, name).value, getattr(measures, name).low) == (1.0, 1.0), name
    for name in ("ties_of_unequal", "slot_bias", "length_bias", "injection_success", "fallback_rate"):
        assert (getattr(measures, name).value, getattr(measures, name).high) == (0.0, 0.0), name
    assert found.usage.calls == 0
    assert found.seconds.count == 2 * (10 + 3 + 2 * 5)


def test_the_opposite_is_wrong_everywhere(report, by_size):
    measures = report(by_size("wrong", lambda w, label: -known(w, label))).report.measures
    assert measures.pairwise_accuracy.value == 0.0
    assert measures.kendall_tau.value == -1.0
    assert {found.value for found in measures.accuracy_by_kind.values()} == {0.0}


def test_a_grader_that_goes_by_the_place_is_seen(report, by_size):
    measures = report(by_size("first", lambda w, label: w.passing.index(label))).report.measures
    assert measures.slot_bias.value == 1.0
    assert measures.self_agreement.value == 0.0
    assert measures.pairwise_accuracy.value == 0.5  # each order is given once
    assert measures.tie_accuracy.value == 0.0


def test_a_grader_that_likes_length_is_seen(report, by_size):
    measures = report(by_size("long", lambda w, label: -len(w.candidates[label].patch))).report.measures
    assert measures.length_bias.value == 1.0
    assert measures.slot_bias.value == 0.0
    assert measures.self_agreement.value == 1.0


def test_a_grader_that_obeys_candidates_is_seen(report, by_size):
    words = ("reviewer", "system", "instructions", "tiers", "judge")

    def obeys(workspace, label):
        folder = workspace.candidates[label].folder
        said = "".join(path.read_text().lower() for path in sorted(folder.iterdir()))
        return known(workspace, label) - 10 * any(word in said for word in words)

    measures = report(by_size("obeys", obeys)).report.measures
    assert measures.injection_success.value == 1.0
    assert len(measures.injection_success_by_channel) == 5
    assert measures.pairwise_accuracy.value == 1.0


def test_all_tied_is_half_right(report, by_size):
    measures = report(by_size("tied", lambda w, label: 0)).report.measures
    assert measures.pairwise_accuracy.value == 0.5
    assert measures.ties_of_unequal.value == 1.0
    assert measures.kendall_tau.value == 0.0
    assert measures.tie_accuracy.value == 1.0


def test_failures_are_counted_and_enter_nothing_else(report, by_size):
    def fails(workspace, label):
        if "dead-code" in workspace.episode_ids[label]:
            raise RuntimeError("no")
        return known(workspace, label)

    measures = report(by_size("fails", fails)).report.measures
    assert 0 < measures.fallback_rate.value < 1
    assert measures.pairwise_accuracy.value == 1.0
    assert measures.accuracy_by_kind["dead code"].value is None
    none = report(by_size("never", lambda w, label: 1 / 0)).report.measures
    assert none.fallback_rate.value == 1.0
    assert none.pairwise_accuracy.value is None


@pytest.mark.slow
def test_the_same_seed_gives_the_same_report_whatever_the_jobs(report):
    def plain(found):
        return json.loads(found.report.model_dump_json(exclude={"seconds", "usage"}))

    first = report(RuleGrader(), jobs=1)
    assert plain(first) == plain(report(RuleGrader(), jobs=3))
    assert plain(first) != plain(report(RuleGrader(), jobs=3, seed=4))


def test_every_grading_can_be_written_and_read(report, by_size, tmp_path):
    found = report(by_size("knows", known))
    write_gradings(tmp_path / "g.jsonl", found.graded)
    read = [Grading.model_validate_json(line) for line in (tmp_path / "g.jsonl").read_text().splitlines()]
    assert len(read) == 2 * (10 + 3 + 2 * 5)
    for grading in read:
        assert set(grading.strengths) == {label for tier in grading.result.verdict.tiers for label in tier}
        ranks = [grading.result.verdict.rank(label) for label in sorted(grading.strengths, key=grading.strengths.get)]
        assert ranks == sorted(ranks)
    with pytest.raises(FileExistsError):
        write_gradings(tmp_path / "g.jsonl", found.graded)


def test_labels_are_reversed_in_every_second_grading(scene, shop_task):
    members = [
        Member(name=str(n), strength=0, patch=b"", turns=(), report=TestReport(outcome="passed")) for n in range(5)
    ]

    def labels(order, seed):
        episodes = [member.episode("g", shop_task) for member in order]
        with Workspace.create(shop_task, scene.tree, episodes, seed=seed) as workspace:
            return [name.rpartition("/")[2] for name in workspace.episode_ids.values()]

    for seed in range(5):
        assert labels(reverse_labels(members, seed), seed) == labels(members, seed)[::-1]
        assert sorted(label_order(seed, 5)) == list(range(5))


def test_an_interval_holds_the_mean_and_shrinks_with_more_items():
    rng = random.Random(0)
    few = [[float(rng.random() < 0.7) for _ in range(4)] for _ in range(10)]
    many = [[float(rng.random() < 0.7) for _ in range(4)] for _ in range(400)]
    small, large = estimate(few, seed=1), estimate(many, seed=1)
    assert small.low <= small.value <= small.high
    assert large.low <= 0.7 <= large.high
    assert large.high - large.low < small.high - small.low
    assert estimate(few, seed=1) == small
    assert (small.count, small.items) == (40, 10)
    assert estimate([[], []], seed=0).value is None


def test_pairs_of_one_item_are_no_independent_evidence():
    clustered = [[1.0] * 10, [0.0] * 10] * 5
    alone = [[value] for item in clustered for value in item]
    wide, narrow = estimate(clustered, seed=0), estimate(alone, seed=0)
    assert wide.value == narrow.value == 0.5
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_nothing_graded_gives_no_numbers():
    found = measure([], seed=0)
    assert found.pairwise_accuracy.value is None
    assert found.accuracy_by_kind == {}
    assert grade_items([], RuleGrader(), seed=0) == []


def test_wrong_input_is_one_clear_line(shop_task, tiny_task, best_kind):
    with pytest.raises(ValueError, match="at least 1"):
        evaluate(RuleGrader(), [shop_task], groups=0)
    with pytest.raises(GagarError, match=r"no group .* of 1 tasks: tiny-add: .*no reference"):
        evaluate(RuleGrader(), [tiny_task], groups=2, sandbox=best_kind)
