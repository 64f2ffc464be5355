"""Stored groups graded again: the same grader gives the same, to the bit; another one moves credit only."""

import shutil
import threading

import pytest

from gagar_env.agents.graders import RuleGrader
from gagar_env.errors import GagarError
from gagar_env.exports import exported_episodes
from gagar_env.grading import Verdict, VerdictOutcome
from gagar_env.group import grade_group
from gagar_env.regrading import compare, regrade
from gagar_env.store import RunFolder
from gagar_env.tasks.task import RepoSource


class Backwards:
    """The order of the rule grader, turned round."""

    name = "backwards"

    def grade(self, workspace):
        verdict = RuleGrader().grade(workspace)
        return Verdict(grader=self.name, outcome=VerdictOutcome.RANKED, tiers=verdict.tiers[::-1], confidence=0.8)


class Breaks:
    name = "breaks"

    def grade(self, workspace):
        raise RuntimeError("no model today")


def same(result):
    """All of a result but the time that it took."""
    kept = result.model_dump(mode="json", exclude={"seconds"})
    if kept["verdict"] is not None:
        kept["verdict"]["usage"].pop("seconds")
    return kept


@pytest.mark.parametrize("at_once", [1, 3])
def test_the_same_grader_gives_the_same_to_the_bit(run, at_once):
    old = list(run.groups())
    batches = list(regrade(run.path, RuleGrader(), at_once=at_once))
    assert [same(b.result) for b in batches] == [same(result) for result in old]
    assert [b.attempt for b in batches] == [0, 2, 4]
    assert [b.seed for b in batches] == [100, 101, 102]
    assert [[e.id for e in b.episodes] for b in batches] == [list(result.episode_ids) for result in old]
    assert all(b.task.id == "nowhere-registered" for b in batches)
    for before, batch in zip(old, batches, strict=True):
        change = compare(before, batch.result)
        assert (change.changed, change.tau) == (0, 1.0 if before.graded else None)


def test_another_grader_moves_credit_and_keeps_the_sum(run):
    for old, batch in zip(run.groups(), regrade(run, Backwards()), strict=True):
        change = compare(old, batch.result)
        assert batch.result.labels == old.labels
        assert change.sum_new == pytest.approx(old.sum_before)
        if not old.kept:
            assert same(batch.result) == same(old)
            continue
        assert change.tau < 0 < change.changed < change.episodes
        lost = [a for a, won in zip(batch.result.advantages, old.passed, strict=True) if not won]
        assert lost == [a for a, won in zip(old.advantages_before, old.passed, strict=True) if not won]


def test_settings_that_are_given_replace_those_of_the_run(run):
    plain = [b.result for b in regrade(run, RuleGrader(), strength=0.0)]
    assert all(r.advantages == pytest.approx(r.advantages_before) for r in plain)
    assert [r.scheme for r in plain] == [r.scheme for r in run.groups()]
    with pytest.raises(ValueError, match="strength"):
        regrade(run, RuleGrader(), strength=2.0)
    with pytest.raises(TypeError, match="no setting 'strenght'; it has base, scheme, strength"):
        regrade(run, RuleGrader(), strenght=0.5)
    with pytest.raises(GagarError):
        regrade(run.path / "nothing", RuleGrader())


def test_a_grader_that_fails_leaves_plain_advantages(run):
    for old, batch in zip(run.groups(), regrade(run, Breaks()), strict=True):
        assert batch.result.advantages == old.advantages_before
        assert batch.result.fallback == ("RuntimeError: no model today" if old.kept else "")


def test_without_a_grader_the_advantages_are_plain_and_no_tree_is_needed(run, no_tree):
    for old, batch in zip(run.groups(), regrade(run, None), strict=True):
        assert (batch.result.advantages, batch.result.graded) == (old.advantages_before, False)


def test_a_group_that_cannot_be_graded_is_told_and_the_rest_goes_on(run):
    next((run.path / "episodes").glob("g0%2F1*")).unlink()
    told = []
    found = list(regrade(run, RuleGrader(), on_left_out=lambda group, why: told.append((group, why))))
    assert [b.result.group_id for b in found] == ["g1", "g2"]
    ((group, why),) = told
    assert group == "g0"
    assert why.startswith("group g0: an episode cannot be read: ")
    assert "\n" not in why


def test_a_task_that_is_gone_is_told_and_one_that_is_given_is_taken(run, task, no_tree):
    told = []
    found = list(regrade(run, RuleGrader(), on_left_out=lambda group, why: told.append(why)))
    assert [b.result.group_id for b in found] == ["g1"]  # it has nothing to rank
    assert len(told) == 2
    assert all(line.startswith("task nowhere-registered of group g") for line in told)
    assert all(str(task.repo.path) in line and line.endswith("give it with --task-file") for line in told)
    given = task.model_copy(update={"repo": RepoSource(kind="tree", path=no_tree)})
    batches = list(regrade(run, RuleGrader(), tasks={task.id: given}))
    assert [same(b.result) for b in batches] == [same(result) for result in run.groups()]


def test_a_run_that_did_not_store_its_task(tmp_path, task, group_of):
    folder = RunFolder.create(tmp_path / "old")
    episodes = group_of("g", (True, False), task.id)
    folder.add(grade_group(episodes, None), episodes)
    told = []
    assert list(regrade(folder, RuleGrader(), on_left_out=lambda group, why: told.append(why))) == []
    assert told[0].startswith("task nowhere-registered of group g: no task 'nowhere-registered'")


def test_no_more_than_so_many_are_graded_ahead(run):
    lock, now, most = threading.Lock(), [0], [0]

    class Counts:
        name = "counts"

        def grade(self, workspace):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            verdict = RuleGrader().grade(workspace)
            with lock:
                now[0] -= 1
            return verdict

    batches = regrade(run, Counts(), at_once=2)
    next(batches)
    batches.close()
    assert most[0] <= 2


def test_compare_wants_the_same_episodes(run):
    one, _, three = run.groups()
    with pytest.raises(ValueError, match="do not have the same episodes"):
        compare(one, three)


def test_who_breaks_out_ends_what_is_graded(run):
    began, cancelled = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def grade(self, workspace):
            if len(workspace.passing) == 2:  # the third group
                began.set()
                assert cancelled.wait(60)
            return RuleGrader().grade(workspace)

        def cancel(self, workspace):
            cancelled.set()

    batches = regrade(run, Slow(), at_once=3)
    next(batches)
    assert began.wait(60)
    batches.close()
    assert cancelled.is_set()


def test_what_is_no_grader_is_refused_at_once(run):
    with pytest.raises(TypeError, match="grader must"):
        regrade(run, object())


def test_each_group_has_the_task_that_it_was_run_with(tmp_path, task, group_of):
    folder = RunFolder.create(tmp_path / "two")
    other = tmp_path / "other"
    other.mkdir()
    (other / "calc.py").write_text("def add(a, b):\n    return a - b\n\n\nMORE = 1\n")
    changed = task.model_copy(update={"repo": RepoSource(kind="tree", path=other)})
    for name, then in (("a", task), ("b", changed), ("c", task)):
        episodes = group_of(name, (True, False), task.id)
        folder.add(grade_group(episodes, None), episodes, task=then)
    shutil.copytree(folder.path, tmp_path / "copy", copy_function=shutil.copyfile)  # files of another time
    for place in (folder.path, tmp_path / "copy"):
        assert [b.task.repo.path for b in regrade(place, None)] == [task.repo.path, other, task.repo.path]
        notes = []
        found = exported_episodes(RunFolder.open(place), note=notes.append)
        assert [each.task.repo.path for each in found] == [
            p for p in (task.repo.path, other, task.repo.path) for _ in "ab"
        ]
        assert notes == []
