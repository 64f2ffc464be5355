"""Reports of records that were made up: what counts where."""

import pytest

from gagar_env.cli.tables import group_json
from gagar_env.episode import Episode, EpisodeStatus, Outcome, Turn
from gagar_env.episode import TestReport as Report
from gagar_env.evaluation import EvaluationReport, compare, report_of, row_of
from gagar_env.group import grade_group
from gagar_env.tasks.registry import load_task
from gagar_env.wrappers import GroupMetrics

PATCH = b"""diff --git a/src/calc.py b/src/calc.py
--- a/src/calc.py
+++ b/src/calc.py
@@ -1,2 +1,3 @@
-old
+new
+more
 same
diff --git a/src/other.py b/src/other.py
--- a/src/other.py
+++ b/src/other.py
@@ -1 +1 @@
-x = 1
+x = 2
diff --git a/tests/test_calc.py b/tests/test_calc.py
--- a/tests/test_calc.py
+++ b/tests/test_calc.py
@@ -1 +1,3 @@
 same
+def test_new():
+    assert True
diff --git a/debug.py b/debug.py
new file mode 100644
--- /dev/null
+++ b/debug.py
@@ -0,0 +1 @@
+print()
"""


def episode(number, what, task_id="made-up", patch=PATCH, tokens=0, turns=2):
    """`what`: p passed, f failed, e an infrastructure error."""
    outcome = {"p": Outcome.PASSED, "f": Outcome.FAILED}.get(what)
    return Episode(
        id=f"{task_id}-{number}",
        group_id=f"{task_id}-{number}",
        task_id=task_id,
        status=EpisodeStatus.SUBMITTED if outcome else EpisodeStatus.ERROR,
        error="" if outcome else "the disk\nis full",
        turns=(Turn(action="", observation="", completion_tokens=tokens),) * turns,
        patch=patch,
        report=Report(outcome=outcome) if outcome else None,
        policy="made",
    )


def episodes(whats, task_id="made-up", **kwargs):
    return [episode(number, what, task_id, **kwargs) for number, what in enumerate(whats)]


def test_a_row_has_size_and_scope() -> None:
    task = load_task("ledger-rounding").model_copy(update={"id": "made-up", "concerns": ("src/calc.py",)})
    row = row_of(episode(0, "p"), task)
    assert (row.added, row.removed, row.lines) == (4, 2, 6)  # without the test; debug.py is source that was added
    assert (row.out_of_scope_files, row.out_of_scope_lines) == (2, 3)
    assert row.digest
    assert row.completion_tokens is None
    unknown = row_of(episode(0, "p", tokens=7))
    assert (unknown.out_of_scope_files, unknown.completion_tokens) == (None, 14)
    assert row_of(episode(0, "f", patch=b"")).lines == 0
    assert row_of(episode(0, "p", patch=b"@@ -1 +1 @@\n-no\n")).lines is None


def test_quality_is_over_passing_episodes_and_effort_over_valid_ones() -> None:
    made = [*episodes("ppf"), episode(3, "f", turns=50), episode(4, "e", turns=99)]
    report = report_of(made, k=(1, 4))
    task = report.task("made-up")
    assert (task.episodes, task.passed, task.invalid) == (4, 2, 1)
    assert task.pass_at[1].value == 0.5
    assert task.pass_at[4].value == 1.0
    assert task.quality["turns"].value == 2
    assert task.effort["turns"].value == (2 + 2 + 2 + 50) / 4
    assert task.quality["completion_tokens"] is None
    assert report.faults == {"the disk is full": 1}
    assert report.overall.pass_at[1].low == task.pass_at[1].low  # a set of one has its task's interval
    assert report.as_dict()["pass@1"] == 0.5
    assert "quality/completion_tokens" not in report.as_dict()
    assert EvaluationReport.model_validate_json(report.model_dump_json()) == report


def test_a_task_without_a_valid_episode_has_no_result_and_is_no_zero() -> None:
    report = report_of([*episodes("pf"), *episodes("ee", "broken")], k=(1, 2))
    broken = report.task("broken")
    assert not broken.has_result
    assert broken.reason == "no valid episode: the disk is full"
    assert broken.pass_at == {}
    assert report.overall.no_result == ("broken",)
    assert report.overall.pass_at[1].value == 0.5
    alone = report_of(episodes("ee"))
    assert alone.overall.pass_at[1] is None
    assert "pass@1" not in alone.as_dict()


def test_rows_of_a_task_that_has_changed_since_do_not_count() -> None:
    task = load_task("ledger-rounding")
    new = row_of(episode(0, "f", task.id), task)
    old = new.model_copy(update={"digest": "before", "passed": True})
    found = report_of([old, new], [task]).task(task.id)
    assert (found.passed, found.episodes, found.retried) == (0, 1, 0)
    gone = report_of([old], [task]).task(task.id)
    assert (gone.has_result, gone.reason) == (False, "its episodes are of another version of the task")
    unknown = [each.model_copy(update={"task_id": "nowhere"}) for each in (old, new)]
    assert report_of(unknown).task("nowhere").passed == 0  # the last version counts
    broken = row_of(episode(0, "e", task.id), task)
    assert report_of([broken], [task]).task(task.id).reason == "no valid episode: the disk is full"


def test_every_task_counts_the_same_and_sets_have_totals() -> None:
    made = [*episodes("p" * 8, "easy"), *episodes("ff", "hard"), *episodes("pfff", "middle")]
    report = report_of(made, k=(1, 3), sets={"both": ["easy", "hard"]})
    assert report.overall.pass_at[1].value == pytest.approx((1 + 0 + 0.25) / 3)
    assert report.sets["both"].pass_at[1].value == 0.5
    assert 3 not in report.task("hard").pass_at
    assert report.overall.pass_at[3].count == 2
    assert report.overall.quality["lines"].count == 2  # of tasks with a pass
    assert report_of(reversed(made), k=(1, 3)).overall.pass_at == pytest.approx(report.overall.pass_at)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"k": (3,)}, "pass@3 cannot be estimated: no task has more than 2"),
        ({"k": (0,)}, "k must be numbers of 1 or more"),
        ({"k": ()}, "k must be numbers of 1 or more"),
        ({"tasks": ["ledger-rounding"]}, "of task 'made-up', which is none of `tasks`"),
        ({"sets": {"s": ["nobody"]}}, "set 's' has task 'nobody'"),
    ],
)
def test_what_cannot_be_reported_is_refused(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        report_of(episodes("pf"), **arguments)
    with pytest.raises(ValueError, match="no episode and no task"):
        report_of([])


def test_a_group_of_one_is_not_graded() -> None:
    result = grade_group(episodes("p"), None)
    assert (result.kept, result.graded, result.mask, result.ranks) == (False, False, (False,), (None,))
    assert result.reason == "too_few_valid"
    assert not result.comparable
    shown = group_json(result, episodes("p"), seed=0, sandbox="none")
    assert shown["sum_before"] is shown["sum_after"] is None
    assert shown["episodes"][0]["advantage_before"] is shown["episodes"][0]["advantage_after"] is None
    metrics = GroupMetrics()
    metrics.count(result, tuple(episodes("p")))
    assert (metrics.kept, dict(metrics.dropped)) == (0, {"too_few_valid": 1})
    assert report_of(episodes("p")).graded is False


def test_comparison_is_paired_by_task() -> None:
    ids = ["a", "b", "c"]
    first = report_of([e for i, n in zip(ids, (1, 4, 7), strict=True) for e in episodes("p" * n + "f" * (8 - n), i)])
    second = report_of([e for i, n in zip(ids, (2, 5, 8), strict=True) for e in episodes("p" * n + "f" * (8 - n), i)])
    found = compare(first, second)
    difference = found.pass_at[1]
    assert (difference.value, difference.low, difference.high) == pytest.approx((0.125,) * 3)  # no width: tasks cancel
    assert found.quality["lines"].value == 0
    other = report_of([*episodes("pf", "a"), *episodes("ee", "b"), *episodes("p", "new")])
    assert compare(first, other).left_out == {
        "b": "no result in one of the reports",
        "c": "only in the first report",
        "new": "only in the second report",
    }
    assert compare(first, other).pass_at[1].low is None
    changed = second.model_copy(
        update={"tasks": tuple(t.model_copy(update={"digest": t.task_id}) for t in second.tasks)}
    )
    assert compare(first, changed).tasks == ("a", "b", "c")  # not known in the first
    with pytest.raises(ValueError, match="no task in common"):
        compare(first, report_of(episodes("p", "new")))
