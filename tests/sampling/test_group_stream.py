import itertools
import json
import math
import threading
import time

import numpy as np
import pytest

from gagar_env.errors import GagarError, TaskError
from gagar_env.grading import Verdict, VerdictOutcome
from gagar_env.sampling import Curriculum, GroupStream, GymTask, Mixture, Sampler
from gagar_env.store import RunFolder
from gagar_env.tasks.task import RepoSource

FIX = "sed -i 's/a - b/a + b/' calc.py"
LONG_FIX = "sed -i 's/a - b/b + a  # the other way round/' calc.py"


class BySeed:
    """Passes by the parity of bits of the seed: some groups are mixed."""

    name = "by seed"

    def start(self, *, task, actions, seed):
        script = iter([FIX if seed % 2 else LONG_FIX] if (seed // 2) % 2 else [])

        class Actor:
            def act(self, observation):
                return next(script, "submit")

        return Actor()


class Shorter:
    name = "shorter"

    def grade(self, workspace):
        order = sorted(workspace.passing, key=lambda label: len(workspace.candidates[label].patch))
        return Verdict(grader=self.name, outcome=VerdictOutcome.RANKED, tiers=tuple((label,) for label in order))


def pole(space, seed):
    space.seed(seed)
    return lambda observation: int(space.sample())


def cart(**fields):
    return GymTask("CartPole-v1", **{"policy": pole, "success": 20, "scale": 0.01, **fields})


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = set(threading.enumerate())  # a group of another test may still wait for its deadline
    yield
    ends_at = time.monotonic() + 20
    while any(thread.name.startswith("gagar") for thread in set(threading.enumerate()) - before):
        assert time.monotonic() < ends_at, threading.enumerate()
        time.sleep(0.05)


def seen(groups):
    return [(g.draw.number, g.source, g.result.task_id, g.draw.seed, g.result.advantages) for g in groups]


@pytest.mark.slow
def test_code_and_another_environment_are_one_stream(tiny_task, best_kind, tmp_path):
    sampler = Sampler(Mixture({"code": [tiny_task], "control": [cart()]}), curriculum=Curriculum(group_size=4))
    stream = GroupStream(
        sampler, BySeed(), Shorter(), group_size=4, at_once=2, env={"sandbox": best_kind}, base="dr_grpo"
    )
    groups = list(stream.collect(4))
    assert {group.source for group in groups} == {"code", "control"}
    assert [group.draw.number for group in groups] == sorted(group.draw.number for group in groups)
    folder = RunFolder.create(tmp_path / "run")
    for group in groups:
        result = group.result
        assert result.kept
        assert result.base == "dr_grpo"
        assert [episode.id for episode in group.episodes] == list(result.episode_ids)
        assert [episode.passed for episode in group.episodes] == list(result.passed)
        assert sum(result.advantages) == pytest.approx(0, abs=1e-9)
        if group.source == "control":
            assert result.task_id == group.task.id == "CartPole-v1"
            assert result.advantages == result.advantages_before
            assert result.verdict.outcome is VerdictOutcome.SKIPPED
            returns = np.array([episode.reward for episode in group.episodes])
            assert result.advantages == pytest.approx(0.01 * (returns - returns.mean()))
        else:
            assert result.task_id == tiny_task.id
            assert result.graded == (sum(result.passed) > 1)
        folder.add(result, group.episodes if group.source == "code" else ())
    assert [result.group_id for result in folder.groups()] == [group.result.group_id for group in groups]
    assert stream.metrics.kept == 4
    assert stream.metrics.groups == sum(metrics.groups for metrics in stream.by_source.values())
    assert set(sampler.curriculum.state_dict()["tasks"]) == {tiny_task.id}


def gym_stream(at_once=1, curriculum=None, **fields):
    items = [cart(id=f"cart-{number}") for number in range(3)]
    sampler = Sampler(Mixture({"a": items, "b": [cart(id="short", max_steps=9)]}, {"a": 2}), curriculum=curriculum)
    return GroupStream(sampler, None, group_size=3, at_once=at_once, **fields)


def test_dropped_groups_are_counted_and_replaced():
    stream = gym_stream()  # all returns of "short" are 9, or nearly all
    groups = list(stream.collect(6, max_attempts=30))
    assert len(groups) == stream.metrics.kept == 6
    assert stream.metrics.dropped["equal_returns"] == stream.metrics.groups - 6 > 0
    assert stream.by_source["b"].dropped["equal_returns"] == stream.metrics.dropped["equal_returns"]
    assert stream.by_source["b"].groups == pytest.approx(stream.metrics.groups / 3, abs=1)


def test_a_stream_that_runs_dry_says_so(caplog):
    stream = GroupStream(Sampler([cart(max_steps=2)]), None, group_size=2)
    assert list(stream.collect(2, max_attempts=3)) == []
    assert "0 of 2 groups kept after 3 attempts (dropped so far: 3 equal_returns)" in caplog.text
    assert stream.metrics.exhausted == 1
    for wrong in ({"n_groups": 0}, {"n_groups": 1, "max_attempts": 0}):
        with pytest.raises(ValueError, match="1 or more"):
            stream.collect(**wrong)


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("stop_after", [1, 4])
def test_a_stop_changes_nothing(at_once, stop_after):
    whole = seen(gym_stream(at_once).collect(9))
    first = gym_stream(at_once)
    before = seen(itertools.islice(groups := first.collect(9), stop_after))
    state = json.loads(json.dumps(first.state_dict()))
    assert len(state["pending"]) == at_once - 1
    groups.close()
    assert json.loads(json.dumps(first.state_dict())) == state
    resumed = gym_stream(at_once)
    assert resumed.load_state_dict(state) == []
    after = seen(resumed.collect(9 - stop_after))
    assert before + after == whole
    assert seen(first.collect(9 - stop_after)) == after  # and in the same process


@pytest.mark.slow
def test_repository_groups_side_by_side_come_in_order_and_go_on_after_a_stop(tiny_task, best_kind):
    def make():
        sampler = Sampler([tiny_task], curriculum=Curriculum(group_size=2), seed=3)
        return GroupStream(sampler, BySeed(), group_size=2, at_once=2, env={"sandbox": best_kind})

    first = make()
    groups = first.collect(3)
    before = seen(itertools.islice(groups, 1))
    state = json.loads(json.dumps(first.state_dict()))
    groups.close()
    resumed = make()
    resumed.load_state_dict(state)
    after = seen(resumed.collect(1))
    assert before[0][0] < after[0][0]
    assert seen(first.collect(1)) == after


def test_one_collect_at_a_time():
    stream = gym_stream(3)
    first = stream.collect(6)
    before = seen(itertools.islice(first, 2))
    with pytest.raises(GagarError, match="one at a time"):
        next(stream.collect(1))
    assert before + seen(first) == seen(gym_stream(3).collect(6))
    assert len(list(stream.collect(1))) == 1


def test_a_deadline_may_be_as_late_as_you_like():
    for deadline_s in (math.inf, 1e12):
        (group,) = gym_stream(rollout_deadline_s=deadline_s).collect(1)
        assert all(episode.valid for episode in group.episodes)


def test_what_grading_needs_and_cannot_have_costs_only_the_ranking(tiny_task, best_kind, monkeypatch):
    def full(*_):
        raise OSError("the disk is full")

    class Same(BySeed):
        def start(self, *, task, actions, seed):
            return super().start(task=task, actions=actions, seed=numbers[seed])

    sampler = Sampler([tiny_task], seed=3)
    stream = GroupStream(sampler, Same(), Shorter(), group_size=3, env={"sandbox": best_kind})
    (first,) = [draw.seed for draw in itertools.islice(Sampler([tiny_task], seed=3), 1)]
    numbers = {first: 0, first + 1: 2, first + 2: 3}
    monkeypatch.setattr("gagar_env.group._base_of", full)
    (group,) = stream.collect(1, max_attempts=1)
    assert group.result.fallback == "OSError: the disk is full"
    assert group.result.advantages == group.result.advantages_before
    assert stream.metrics.grading_s > 0


def test_a_task_that_was_at_work_and_is_gone_is_said():
    stream = gym_stream(3)
    next(stream.collect(5))
    state = stream.state_dict()
    gone = state["pending"][0]["task"]
    other = gym_stream(3)
    kept = [item for item in other.sampler.mixture if item.id != gone]
    other = GroupStream(Sampler({"a": [i for i in kept if i.id != "short"], "b": kept[-1:]}), None, group_size=3)
    notes = other.load_state_dict(state)
    assert any(f"task {gone} of source" in note and "its group is left out" in note for note in notes)
    assert len(list(other.collect(2))) == 2


def test_broken_tasks_are_left_out_and_the_run_goes_on(tiny_task, best_kind, tmp_path):
    broken = tiny_task.model_copy(update={"id": "broken", "repo": RepoSource(kind="tree", path=tmp_path / "nowhere")})
    nowhere = GymTask("NoSuchThing-v0", policy=pole, success=1)
    sampler = Sampler({"code": [broken], "gym": [nowhere, cart()]})
    stream = GroupStream(sampler, BySeed(), group_size=3, env={"sandbox": best_kind})
    groups = list(stream.collect(3))
    assert {group.result.task_id for group in groups} == {"CartPole-v1"}
    assert set(sampler.left_out) == {"broken", "NoSuchThing-v0"}
    assert "nowhere" in sampler.left_out["broken"]
    with pytest.raises(TaskError, match="no task is left"):
        next(GroupStream(Sampler([nowhere]), None).collect(1))


def test_wrong_settings_are_found_before_anything_runs(tiny_task):
    with pytest.raises(TypeError, match="policy must have"):
        GroupStream(Sampler([tiny_task]), None)
    for wrong, says in (({"strength": 2}, "strength"), ({"base": "x"}, "base"), ({"at_once": 0}, "at_once")):
        with pytest.raises(ValueError, match=says):
            GroupStream(Sampler([cart()]), None, **wrong)
    with pytest.raises(ValueError, match="state of a stream: version"):
        gym_stream().load_state_dict({})
    with pytest.raises(ValueError, match="state of a stream: `pending`"):
        gym_stream().load_state_dict({"version": 1, "pending": [{}]})


def test_sizes_of_groups(caplog):
    sampler = Sampler([cart(id="three", group_size=3), cart(id="four")], curriculum=Curriculum(group_size=8))
    stream = GroupStream(sampler, None, group_size=4)
    assert "groups have 4 members, the curriculum is for 8" in caplog.text
    sizes = {group.result.task_id: len(group.episodes) for group in stream.collect(2)}
    assert sizes == {"three": 3, "four": 4}


def test_an_interrupt_of_a_gym_group_reaches_the_caller():
    def interrupt(space, seed):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        next(GroupStream(Sampler([cart(policy=interrupt)]), None).collect(1))
