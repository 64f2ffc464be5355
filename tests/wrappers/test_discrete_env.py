"""`DiscreteActionWrapper`: numbers in, numbers out, and the usual records."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from hypothesis import given
from hypothesis import strategies as st

from gagar_env.envs.repo_edit import EPISODE_KEY, RepoEditEnv
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.menu import EntryKind
from gagar_env.wrappers import DiscreteActionWrapper
from gagar_env.wrappers.discrete import STATE
from gagar_env.wrappers.discrete_features import hashed_bag, read_tests

SMALL = {"size": 24, "views": 3, "cleanups": 3}


@pytest.fixture
def make(tiny_task, best_kind):
    made = []

    def wrap(task=tiny_task, *, turns=6, env=None, **kwargs):
        inner = RepoEditEnv(task, sandbox=best_kind, turns=turns, reuse_reports=True, **(env or {}))
        made.append(DiscreteActionWrapper(inner, **{**SMALL, **kwargs}))
        return made[-1]

    yield wrap
    for env in made:
        env.close()


def entry(env, kind, text=""):
    """The first entry of a kind whose command holds `text`."""
    return next(n for n in env.menu.of_kind(kind) if text in env.menu.entries[n].command)


def state(observation):
    return dict(zip(STATE, observation["state"].tolist(), strict=True))


def test_an_episode_by_numbers(make):
    env = make()
    observation, info = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    keys = set(info)
    fix = entry(env, EntryKind.EDIT, "+    return a + b")
    wrong = entry(env, EntryKind.EDIT, "+    return 3 * a")
    undo = entry(env, EntryKind.CLEAN, "checkout -q -- calc.py")
    assert env.action_masks()[[fix, wrong, undo]].tolist() == [True, True, False]

    observation, *_ = env.step(wrong)
    assert env.action_masks()[[fix, wrong, undo]].tolist() == [True, False, True]
    now = state(observation)
    assert (now["last_ok"], now["files"]) == (1.0, 0.25)
    assert now["added"] == pytest.approx(1 / 51)

    observation, *_ = env.step(undo)
    assert state(observation)["added"] == 0.0
    assert observation["taken"][[fix, wrong, undo]].tolist() == [0.0, 1.0, 1.0]

    env.step(fix)
    observation, *_ = env.step(fix)  # stands already: git refuses it
    now = state(observation)
    assert (observation["taken"][fix], now["last_ok"], now["last_failed"]) == (-1.0, 0.0, 1.0)
    assert now["turn"] == pytest.approx(4 / 6)

    observation, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated, info["passed"]) == (1.0, True, False, True)
    assert set(info) == keys
    assert env.observation_space.contains(observation)
    turns = info[EPISODE_KEY].turns
    assert [turn.exit_code for turn in turns] == [0, 0, 0, 1, None]
    assert turns[2].action.startswith("git apply")
    assert {turn.completion_tokens for turn in turns} == {1}
    assert turns[4].action == "submit"
    again, *_ = env.step(fix)  # after the end nothing changes
    assert all((again[key] == observation[key]).all() for key in ("taken", "state", "mask"))


def test_the_limit_is_an_end(make):
    for limit_ends in (True, False):
        env = make(turns=1, limit_ends=limit_ends)
        env.reset()
        _, reward, terminated, truncated, info = env.step(len(env.menu) - 1)  # does nothing
        assert env.menu.entries[-1].kind is EntryKind.PAD
        assert (reward, terminated, truncated) == (0.0, limit_ends, not limit_ends)
        assert (info["status"], info["valid"]) == ("turn_limit", True)
        assert info[EPISODE_KEY].turns[0].action == ":"


@pytest.mark.slow
def test_the_tests_of_the_repository_are_seen(make):
    env = make()
    env.reset()
    tests = entry(env, EntryKind.TEST)
    now = state(env.step(tests)[0])
    assert (now["tests_seen"], now["tests_fresh"], now["tests_passed"]) == (1.0, 1.0, 1.0)
    env.step(entry(env, EntryKind.EDIT, "+    return 3 * a"))
    now = state(env.step(tests)[0])
    assert (now["tests_fresh"], now["tests_passed"]) == (1.0, 0.0)
    assert now["tests_failed"] == pytest.approx(1 / 6)
    now = state(env.step(entry(env, EntryKind.EDIT, "+    return a + b"))[0])
    assert (now["tests_seen"], now["tests_fresh"]) == (1.0, 0.0)


def test_the_same_actions_give_the_same_numbers(make):
    first, second = make(), make()
    for env in (first, second):
        env.reset(seed=5)
    assert first.menu == second.menu
    for action in (2, 9, 3, 7, 9, 23):
        one, two = first.step(action), second.step(action)
        assert all((one[0][key] == two[0][key]).all() for key in one[0])
        assert one[1:4] == two[1:4]


def test_observations_know_no_secret(make, tiny_task):
    other = tiny_task.model_copy(
        update={"tests": tiny_task.tests.model_copy(update={"fail_to_pass": ("test_calc.py::test_other",)})}
    )
    seen = []
    for task in (tiny_task, other):
        env = make(task, edits="mutations", env={"verify": False})
        seen.append([env.reset(seed=0)[0], *(env.step(action)[0] for action in (2, 10, 6, 0))])
    for one, two in zip(*seen, strict=True):
        assert all((one[key] == two[key]).all() for key in one)


def test_the_spec_is_json(tiny_task):
    env = DiscreteActionWrapper(gym.make("gagar/RepoEdit-v0", task="cron-month-end", turns=3), bag=8, **SMALL)
    again = gym.make(EnvSpec.from_json(env.spec.to_json()))
    assert again.observation_space == env.observation_space
    assert again.action_space == env.action_space


def test_a_task_without_solutions_is_refused_where_they_are_wanted(make):
    env = make(edits="solutions")
    with pytest.raises(TaskError, match="tiny-add has no known solution"):
        env.reset()
    assert env.unwrapped.episode.status == "cut"  # no sandbox is left open


def test_a_tree_that_cannot_be_had_ends_the_episode(make, tiny_task, monkeypatch):
    def broken(*_, **__):
        raise EnvironmentBuildError("the cache is full")

    monkeypatch.setattr("gagar_env.envs.attempt.provision", broken)
    monkeypatch.setattr("gagar_env.wrappers.discrete.provision_base", broken)
    env = make()
    observation, info = env.reset()
    assert env.observation_space.contains(observation)
    assert env.action_masks().tolist() == [True] + [False] * 23
    assert not info["valid"]
    assert env.step(0)[3]  # truncated


def test_wrong_numbers(make):
    env = make()
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.reset()
    for action in (-1, 24):
        with pytest.raises(ValueError, match="is no entry of the menu, which has 24"):
            env.step(action)
    with pytest.raises(ValueError, match="bag must be"):
        make(bag=0)


@given(st.text(max_size=300), st.integers(1, 40))
def test_bags_are_bounded(text, size):
    bag = hashed_bag(text, size)
    assert bag.shape == (size,)
    assert bag.dtype == np.float32
    assert ((bag >= 0) & (bag <= 1)).all()
    assert not bag.any() or np.isclose(np.linalg.norm(bag), 1.0, atol=1e-5)


@pytest.mark.parametrize(
    ("output", "seen"),
    [
        ("14 passed in 0.08s", (14, 0)),
        ("== 2 failed, 1 passed, 3 warnings in 1.20s ==", (1, 2)),
        ("1 error in 0.1s\n[exit code 2]", (0, 1)),
        ("2 errors in 0.1s", (0, 2)),
        ("9 failed in 0.1s\nlater\n3 passed in 65.10s (0:01:05)", (3, 0)),
        ("no tests ran in 0.01s", None),
        ("99999999999 passed", None),
        ("", None),
    ],
)
def test_reading_the_summary(output, seen):
    assert read_tests(output) == seen
