"""`GroupRewardWrapper.collect`: groups act while others are graded, and no more of them than are missing."""

import threading

import pytest
from pipelines import MIXED, First, Scripted, wait_for

from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.jobs import group_seed
from gagar_env.wrappers import GroupRewardWrapper

pytestmark = pytest.mark.usefixtures("judged_at_once")


@pytest.fixture
def wrap(tiny_task, best_kind):
    made = []

    def wrapped(grader=None, *, num_groups=1, group_size=3, **kwargs):
        env = GroupVectorEnv(tiny_task, num_groups=num_groups, group_size=group_size, sandbox=best_kind)
        made.append(GroupRewardWrapper(env, grader, **kwargs))
        return made[-1]

    yield wrapped
    for env in made:
        env.close()


class InTurn(Scripted):
    """Scripts by the order in which members start, as seeds of a wrapper's groups are drawn."""

    def __init__(self, *scripts):
        super().__init__(*scripts)
        self.started = 0
        self._lock = threading.Lock()

    def start(self, *, task, actions, seed):
        with self._lock:
            number, self.started = self.started, self.started + 1
        return super().start(task=task, actions=actions, seed=number)


def test_the_place_of_a_group_is_free_while_it_is_graded(wrap):
    acting = threading.Event()
    graded = []

    def second_acts(workspace):
        if not graded:
            wait_for(acting)
        graded.append(workspace.seed)

    policy = InTurn(*MIXED, *([lambda seed: acting.set(), *script] for script in MIXED))
    env = wrap(First(second_acts))
    batches = list(env.collect(policy, 2))
    assert [batch.result.graded for batch in batches] == [True, True]
    assert sorted(graded) == sorted(batch.seed for batch in batches)
    assert (env.metrics.groups, env.metrics.kept, env.metrics.episodes) == (2, 2, 6)
    assert env.metrics.grading_s > 0 < env.metrics.rollout_s


def test_no_more_groups_are_at_work_or_graded_than_are_missing(wrap):
    ended, kept, too_many, lock = [], [], [], threading.Lock()
    env = wrap(First(), num_groups=3, grading_workers=2)
    places = {group_seed(0, number) + i: (number, i) for number in range(5) for i in range(3)}
    started = set()

    class Counts(Scripted):
        """The second group fails whole."""

        def start(self, *, task, actions, seed):
            number, member = places[seed]
            with lock:
                started.add(number)
                if len(started) - len(ended) > 3 - len(kept):
                    too_many.append(number)
            return super().start(task=task, actions=actions, seed=3 if number == 1 else member)

    for batch in env.collect(Counts(*MIXED, []), 3, on_group=ended.append):
        kept.append(batch)
    assert len(kept) == 3
    assert sorted(group.attempt for group in ended) == [0, 1, 2, 3]
    assert not too_many


def test_groups_are_graded_by_as_many_workers_as_asked_for(wrap):
    meeting = threading.Barrier(3, timeout=60)
    env = wrap(First(lambda workspace: meeting.wait()), num_groups=3, grading_workers=3)
    batches = list(env.collect(Scripted(*MIXED), 3))
    assert all(batch.result.graded for batch in batches)


def test_leaving_the_loop_while_a_group_is_graded(wrap):
    graded, before = [], set(threading.enumerate())  # a thread of another test may still wait for something
    held = threading.Event()

    def hold_the_second(workspace):
        graded.append(workspace)
        if len(graded) > 1:
            held.wait(60)

    env = wrap(First(hold_the_second), num_groups=2)
    for _ in env.collect(Scripted(*MIXED), 4):
        break
    mine = set(threading.enumerate()) - before
    assert not any(thread.name.startswith(("gagar-grading", "gagar-group")) for thread in mine)
    assert env.metrics.groups == 1
    held.set()
    assert len(list(env.collect(Scripted(*MIXED), 2))) == 2


def test_a_worker_at_least_is_needed(wrap):
    with pytest.raises(ValueError, match="grading_workers must be 1 or more, got 0"):
        wrap(grading_workers=0)
