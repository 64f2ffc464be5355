"""Stable-Baselines3 learns from our advantages alone, and without groups; the vector environment keeps its rules."""

import importlib.util
import itertools
import warnings

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from number_game import Bandit, Scripted
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.env_checker import check_env

from gagar_env.agents.graders import RuleGrader
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.errors import MissingDependencyError
from gagar_env.integrations import sb3
from gagar_env.integrations.sb3 import (
    GroupCallback,
    GroupDictRolloutBuffer,
    GroupRolloutBuffer,
    GroupVecEnv,
)
from gagar_env.wrappers import DiscreteActionWrapper


def chances(model):
    """Chance of each action of the one-turn game."""
    import torch

    with torch.no_grad():
        observation = {"x": torch.ones(1, 1)}
        return model.policy.get_distribution(observation).distribution.probs[0].numpy()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [A2C, PPO])
@pytest.mark.parametrize("graded", [False, True], ids=["plain", "graded"])
def test_advantages_alone_teach(kind, graded, tiny_task):
    env = GroupVecEnv(
        tiny_task,
        num_groups=2,
        group_size=8,
        horizon=1,
        grader=RuleGrader() if graded else None,
        make_env=lambda: Bandit(1),
        base="dr_grpo",
        strength=0.9,
    )
    kwargs = {"batch_size": 16, "n_epochs": 4} if kind is PPO else {"use_rms_prop": False}
    model = kind(
        "MultiInputPolicy",
        env,
        n_steps=1,
        learning_rate=0.01,
        vf_coef=0.0,  # nothing but the advantages moves the policy
        normalize_advantage=False,
        rollout_buffer_class=GroupDictRolloutBuffer,
        seed=1,
        device="cpu",
        **kwargs,
    )
    before = chances(model)
    model.learn(60 * 16, callback=GroupCallback())
    env.close()
    after = chances(model)
    assert before[:2].sum() < 0.7 < 0.9 < after[:2].sum()  # it passes more often
    if graded:
        assert after[0] > 0.8  # and with the shorter patch, which the tests do not tell from the other


def test_rules_of_the_vector_environment(tiny_task):
    numbers = itertools.count()
    env = GroupVecEnv(
        tiny_task,
        num_groups=1,
        group_size=2,
        horizon=2,
        make_env=lambda: Scripted(2, next(numbers), ("short", "wrong"), (1, 2)),
        base="dr_grpo",
    )
    env.seed(3)
    assert env.reset().tolist() == [[0, 0, 0], [1, 0, 0]]
    first, rewards, dones, infos = env.step(np.array([0, 0]))
    assert first.tolist() == [[0, 0, 1], [1, 0, 1]]
    assert (rewards.tolist(), dones.tolist()) == ([1.0, 0.0], [False, False])
    assert not any("terminal_observation" in info for info in infos)
    second, rewards, dones, infos = env.step(np.array([0, 0]))
    assert second.tolist() == [[0, 1, 0], [1, 1, 0]]  # the next round
    assert (rewards.tolist(), dones.tolist()) == ([0.0, 0.0], [True, True])
    assert [info["terminal_observation"].tolist() for info in infos] == [[0, 0, 1], [1, 0, 2]]
    assert [info["TimeLimit.truncated"] for info in infos] == [False, False]
    assert [(info["episode"]["r"], info["episode"]["l"]) for info in infos] == [(1.0, 1), (0.0, 2)]
    assert [info["group_trained"].tolist() for info in infos] == [[True, False], [True, True]]
    assert np.allclose([info["group_advantages"] for info in infos], [[0.5, 0], [-0.5, -0.5]])
    assert env.metrics.kept == 1
    assert [reset["group_id"] for reset in env.reset_infos] != [info["group_id"] for info in infos]
    assert env.get_attr("place") == [0, 1]
    assert env.env_is_wrapped(gym.Wrapper) == [False, False]
    env.close()


def test_a_buffer_takes_no_wrong_numbers():
    buffer = GroupRolloutBuffer(2, gym.spaces.Box(0, 1, (1,)), gym.spaces.Discrete(2), n_envs=2)
    good = np.ones((2, 2))
    with pytest.raises(RuntimeError, match="between the last step"):
        buffer.set_advantages(good, good > 0)
    with pytest.raises(ValueError, match="must have shape"):
        buffer.set_advantages(good[0], good[0] > 0)
    with pytest.raises(ValueError, match="1 advantages are not finite"):
        buffer.set_advantages(np.array([[1.0, np.nan], [1.0, np.inf]]), np.array([[True, True], [True, False]]))


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'gagar-env\[sb3\]'"):
        sb3.GroupVecEnv  # noqa: B018


@pytest.mark.parametrize(("arguments", "said"), [({"horizon": 0}, "horizon"), ({"tasks": []}, "tasks not empty")])
def test_bad_arguments(arguments, said, tiny_task):
    with pytest.raises(ValueError, match=said):
        GroupVecEnv(**{"tasks": tiny_task, **arguments})


@pytest.mark.slow
def test_groups_on_a_real_repository(tiny_task, best_kind):
    env = GroupVecEnv(
        tiny_task,
        group_size=6,
        horizon=3,
        grader=RuleGrader(),
        env={"sandbox": best_kind, "reuse_reports": True},
        menu={"size": 16, "views": 1, "cleanups": 1, "test_runs": False},
    )
    model = PPO(
        "MultiInputPolicy",
        env,
        n_steps=3,
        batch_size=18,
        normalize_advantage=False,
        rollout_buffer_class=GroupDictRolloutBuffer,
        seed=2,
        device="cpu",
    )
    counts = []

    class Counting(GroupCallback):
        def _on_rollout_end(self):
            super()._on_rollout_end()
            counts.append(self.counts)

    model.learn(8 * 18, callback=Counting())
    env.close()
    assert sum(count.kept for count in counts) >= 2
    assert not sum(count.invalid + count.mismatched + count.straddled for count in counts)
    assert all(count.trained > 0 for count in counts if count.kept)


@pytest.mark.slow
def test_a_plain_run_without_groups(tiny_task, best_kind):
    env = DiscreteActionWrapper(
        RepoEditEnv(tiny_task, sandbox=best_kind, turns=3, reuse_reports=True), size=16, views=1, cleanups=1
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)
    model = PPO("MultiInputPolicy", env, n_steps=16, batch_size=8, n_epochs=1, seed=0, device="cpu")
    model.learn(16)
    assert len(model.ep_info_buffer) > 2
    assert model.rollout_buffer.rewards.sum() == sum(info["r"] for info in model.ep_info_buffer)
    env.close()
