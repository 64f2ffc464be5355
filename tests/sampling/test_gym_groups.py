import itertools
import logging
import threading

import gymnasium as gym
import numpy as np
import pytest

from gagar_env.advantages import group_advantages
from gagar_env.episode import EpisodeStatus
from gagar_env.errors import PolicyLimitError, TaskError
from gagar_env.sampling import GymTask, gym_group_result, run_gym_group
from gagar_env.spaces import UnicodeText


def at_random(space, seed):
    space.seed(seed)
    return lambda observation: int(space.sample())


def leaning(space, seed):
    """Balances for a while: pushes to the side that the pole leans to."""
    return lambda observation: int(observation[2] > 0)


class Scripted(gym.Env):
    """Text in, text out. Gives the rewards of the policy's seed in turn, then says that it is over."""

    observation_space, action_space = UnicodeText(), UnicodeText()
    made, closed = [], []

    def __init__(self, rewards, ends="terminated", breaks=""):
        self.rewards, self.ends, self.breaks = rewards, ends, breaks
        self.made.append(self)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = None
        return f"start {self.np_random.integers(10**6)}", {"won": False}

    def step(self, action):
        number = int(action)
        self.left = iter(self.rewards[number % len(self.rewards)]) if self.left is None else self.left
        reward = next(self.left)
        if reward == "raise":
            raise RuntimeError("the simulator is gone")
        self.left, following = itertools.tee(self.left)
        over = next(following, None) is None
        return (
            "more",
            reward,
            over and self.ends == "terminated",
            over and self.ends == "truncated",
            {"won": reward == 1},
        )

    def close(self):
        self.closed.append(self)


@pytest.fixture(autouse=True)
def all_are_closed():
    Scripted.made.clear()
    Scripted.closed.clear()
    yield
    assert sorted(map(id, Scripted.made)) == sorted(map(id, Scripted.closed))


def scripted(rewards, **fields):
    kwargs = {"rewards": rewards, **fields.pop("kwargs", {})}
    policy = fields.pop("policy", lambda space, seed: lambda observation: str(seed))
    return GymTask(Scripted, **{"id": "scripted", "kwargs": kwargs, "policy": policy, "success": 1.0, **fields})


def test_a_group_of_cartpole_starts_alike_and_gets_plain_advantages():
    task = GymTask("CartPole-v1", policy=at_random, success=30)
    episodes = run_gym_group(task, group_size=6, seed=11)
    assert len({episode.group_id for episode in episodes}) == 1
    assert len({episode.id for episode in episodes}) == 6
    assert [episode.seed for episode in episodes] == list(range(11, 17))
    for episode in episodes:
        assert np.array_equal(episode.observations[0], episodes[0].observations[0])
        assert len(episode.observations) == len(episode.actions) + 1 == len(episode.rewards) + 1
        assert episode.status is EpisodeStatus.SUBMITTED
        assert episode.reward == len(episode.rewards) == episode.total
        assert episode.passed == (episode.reward >= 30)
    result = gym_group_result(episodes, base="dr_grpo", seed=11)
    returns = np.array([episode.reward for episode in episodes])
    assert result.kept
    assert result.reason == "kept"
    assert result.advantages == result.advantages_before
    assert result.advantages == pytest.approx(returns - returns.mean())
    assert result.mask == (True,) * 6
    assert result.verdict.outcome == "skipped"
    assert "not graded" in result.verdict.error
    assert not result.graded
    assert not result.fallback
    assert result.task_id == "CartPole-v1"
    assert [e.rewards for e in run_gym_group(task, group_size=6, seed=11)] == [e.rewards for e in episodes]
    other = run_gym_group(task, group_size=2, seed=12)
    assert not np.array_equal(other[0].observations[0], episodes[0].observations[0])


def test_observations_are_copies_and_limits_truncate():
    episode = run_gym_group(GymTask("CartPole-v1", policy=leaning, success=5, max_steps=7), group_size=1)[0]
    assert (episode.status, episode.reward, episode.passed) == (EpisodeStatus.TURN_LIMIT, 7.0, True)
    assert len({observation.tobytes() for observation in episode.observations}) == 8


@pytest.mark.parametrize("base", ["grpo", "dr_grpo", "rloo"])
def test_returns_are_what_advantages_are_made_of(base):
    task = scripted([[0, 1], [0.5], [0, 0.25]], success=lambda episode: episode.info["won"], scale=10)
    episodes = run_gym_group(task, group_size=3)
    assert [episode.reward for episode in episodes] == [1, 0.5, 0.25]
    assert [episode.passed for episode in episodes] == [True, False, False]
    result = gym_group_result(episodes, base=base, scale=task.scale)
    plain = group_advantages([True, True, False], None, base=base, reward=[10, 5, 2.5])
    assert result.advantages == pytest.approx(plain)
    assert sum(result.advantages) == pytest.approx(0)
    assert result.base == base


def test_equal_returns_are_dropped_and_different_ones_kept_whoever_passed():
    equal = gym_group_result(run_gym_group(scripted([[1], [0, 1]]), group_size=4))
    assert (equal.kept, equal.reason, equal.advantages) == (False, "equal_returns", (0.0,) * 4)
    assert equal.verdict is None
    assert not any(equal.mask)
    both_passed = gym_group_result(run_gym_group(scripted([[1], [2]]), group_size=2))
    assert both_passed.kept
    assert both_passed.passed == (True, True)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (float("nan"), "step 1: the reward is nan"),
        (float("inf"), "step 1: the reward is inf"),
        (None, "step 1: the reward is None"),
        ("raise", "RuntimeError: the simulator is gone"),
    ],
)
def test_a_reward_that_is_none_is_a_fault_and_enters_no_statistic(bad, says):
    episodes = run_gym_group(scripted([[1], [0], [bad]]), group_size=3)
    assert [episode.valid for episode in episodes] == [True, True, False]
    assert episodes[2].status is EpisodeStatus.ERROR
    assert episodes[2].reward is None
    assert not episodes[2].passed
    assert says in episodes[2].error
    result = gym_group_result(episodes)
    two = gym_group_result(episodes[:2])
    assert result.advantages == (*two.advantages, 0.0)
    assert result.mask == (True, True, False)
    assert gym_group_result(episodes[1:]).reason == "too_few_valid"


def test_a_return_that_overflows_is_a_fault():
    episodes = run_gym_group(scripted([[1e308, 1e308], [1]]), group_size=2)
    assert [episode.valid for episode in episodes] == [False, True]
    assert "return" in episodes[0].error


def test_terminated_and_truncated_are_told_apart():
    for ends, status in (("terminated", EpisodeStatus.SUBMITTED), ("truncated", EpisodeStatus.TURN_LIMIT)):
        episode = run_gym_group(scripted([[0, 1]], kwargs={"ends": ends}), group_size=1)[0]
        assert (episode.status, episode.valid, episode.reward) == (status, True, 1)


def test_text_environments_and_what_policies_raise():
    def policy(space, seed):
        def act(observation):
            assert observation.startswith("start")
            if seed == 1:
                raise PolicyLimitError("context is full")
            if seed == 2:
                raise ValueError("lost the thread")
            return str(seed)

        return act

    episodes = run_gym_group(scripted([[1]], policy=policy), group_size=3)
    assert [episode.status for episode in episodes] == ["submitted", "policy_limit", "error"]
    assert [episode.valid for episode in episodes] == [True, True, False]
    assert episodes[1].error == "policy: context is full"
    assert episodes[2].error == "policy: ValueError: lost the thread"
    assert episodes[0].observations[0] == episodes[1].observations[0]


def test_success_that_raises_and_an_environment_that_cannot_be_made_are_faults():
    def broken(**_):
        raise OSError("no display")

    episodes = run_gym_group(scripted([[1]], success=lambda episode: episode.info["nothing"]), group_size=1)
    assert "KeyError" in episodes[0].error
    task = GymTask(broken, id="broken", policy=at_random, success=1)
    result = gym_group_result(found := run_gym_group(task, group_size=2))
    assert [episode.error for episode in found] == ["OSError: no display"] * 2
    assert result.reason == "too_few_valid"


def test_an_unknown_environment_is_a_broken_task():
    with pytest.raises(TaskError, match="there is no environment 'CartPoll-v1'"):
        run_gym_group(GymTask("CartPoll-v1", policy=at_random, success=1))
    with pytest.raises(ValueError, match="seed 0 or more"):
        run_gym_group(GymTask("CartPole-v1", policy=at_random, success=1), seed=-1)


def test_members_run_at_the_same_time_if_wanted():
    together = threading.Barrier(3)

    def policy(space, seed):
        together.wait(60)
        return lambda observation: str(seed)

    episodes = run_gym_group(scripted([[0], [1], [2]], policy=policy, at_once=3), group_size=3)
    assert [episode.reward for episode in episodes] == [0, 1, 2]


def test_what_does_not_end_is_cut():
    release = threading.Event()

    def policy(space, seed):
        return lambda observation: (seed == 1 and release.wait(60), str(seed))[1]

    task = scripted([[1]], policy=policy, at_once=2)
    episodes = run_gym_group(task, group_size=3, deadline_s=2)
    release.set()
    assert [episode.status for episode in episodes] == ["submitted", "cut", "submitted"]
    assert not episodes[1].valid
    stop = threading.Event()
    stop.set()
    assert run_gym_group(task, group_size=1, stop=stop)[0].error == "stopped"
    for thread in threading.enumerate():
        if thread.name.startswith("gagar-gym"):
            thread.join(20)


def test_an_interrupt_goes_on():
    def policy(space, seed):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_gym_group(scripted([[1]], policy=policy), group_size=2)


def test_starts_that_differ_are_said(caplog):
    class Restless(Scripted):
        def reset(self, **_):
            super().reset(seed=None)
            return f"start {len(self.made)}", {}

    task = GymTask(Restless, id="restless", kwargs={"rewards": [[1]]}, policy=lambda s, n: lambda o: str(n), success=1)
    with caplog.at_level(logging.WARNING):
        run_gym_group(task, group_size=2)
    assert "restless: reset(seed=0) gave different starts" in caplog.text


def test_episodes_of_two_groups_are_refused():
    task = scripted([[1]])
    with pytest.raises(ValueError, match="episodes of one group"):
        gym_group_result([*run_gym_group(task, group_size=1), *run_gym_group(task, group_size=1)])
