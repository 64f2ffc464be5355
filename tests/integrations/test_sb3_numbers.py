"""Known advantages go through the collecting and training code of Stable-Baselines3 and are read back from the loss."""

import itertools

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
from number_game import Scripted
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.vec_env import VecMonitor

from gagar_env.errors import PassthroughError
from gagar_env.grading import Verdict, VerdictOutcome
from gagar_env.integrations.sb3 import GroupCallback, GroupRolloutBuffer, GroupVecEnv

OUTCOMES = ("short", "wrong", "long", "wrong")
HORIZON = 3


class ShortFirst:
    """Ranks by size and marks the first turn of every candidate."""

    name = "short-first"

    def __init__(self, marks=False):
        self.marks = marks

    def grade(self, workspace):
        def size(label):
            return len(workspace.candidates[label].patch)

        tiers = tuple((label,) for label in sorted(workspace.passing, key=size))
        marks = {label: {1: "useful"} for label in workspace.candidates} if self.marks else {}
        return Verdict(grader=self.name, outcome=VerdictOutcome.RANKED, tiers=tiers, turn_marks=marks)


def game(task, grader=None, *, outcomes=OUTCOMES, lengths=None, num_groups=2, group_size=4, **kwargs):
    numbers = itertools.count()

    def make():
        return Scripted(HORIZON, next(numbers), outcomes, lengths)

    return GroupVecEnv(
        task, num_groups=num_groups, group_size=group_size, horizon=HORIZON, grader=grader, make_env=make, **kwargs
    )


def learner(kind, env, rounds=1, **kwargs):
    if kind is PPO:
        kwargs = {"batch_size": rounds * HORIZON * env.num_envs, "n_epochs": 1, **kwargs}
    return kind(
        "MlpPolicy",
        env,
        n_steps=rounds * HORIZON,
        normalize_advantage=kwargs.pop("normalize_advantage", False),
        rollout_buffer_class=kwargs.pop("rollout_buffer_class", GroupRolloutBuffer),
        seed=0,
        device="cpu",
        **kwargs,
    )


class Spy(GroupCallback):
    """Reads the advantages out of the gradient of the loss, and keeps the results of the groups."""

    def __init__(self):
        super().__init__()
        self.results = {}
        self.seen = {}

    def _on_training_start(self):
        super()._on_training_start()
        evaluate = self.model.policy.evaluate_actions

        def watched(observations, actions):
            values, log_prob, entropy = evaluate(observations, actions)
            rows = [tuple(int(x) for x in row) for row in observations]

            def read(gradient):  # the loss is minus the mean of advantage * (ratio or log-probability)
                self.seen |= dict(zip(rows, (-gradient * len(rows)).tolist(), strict=True))

            log_prob.register_hook(read)
            return values, log_prob, entropy

        self.model.policy.evaluate_actions = watched

    def _on_step(self):
        for index, info in enumerate(self.locals["infos"]):
            if "group_result" in info:
                self.results[index, info["group_round"]] = info["group_result"], info["episode_record"]
        return super()._on_step()


def expected(results, group_size=4):
    """(member, round, turn) -> advantage, from the results alone."""
    found = {}
    for (index, number), (result, episode) in results.items():
        place = index % group_size
        if not result.mask[place]:
            continue
        turns = None if result.turn_advantages is None else result.turn_advantages[place]
        for turn in range(len(episode.turns)):
            found[index, number, turn] = result.advantages[place] if turns is None else turns[turn]
    return found


@pytest.fixture
def spied(tiny_task):
    def run(kind, env, rounds=1, updates=1, **kwargs):
        spy = Spy()
        model = learner(kind, env, rounds, vf_coef=0.0, **kwargs)
        model.learn(updates * rounds * HORIZON * env.num_envs, callback=spy)
        env.close()
        return spy

    return run


@pytest.mark.parametrize("kind", [A2C, PPO])
@pytest.mark.parametrize("marks", [False, True], ids=["episodes", "turns"])
def test_the_loss_sees_our_numbers(kind, marks, tiny_task, spied):
    spy = spied(kind, game(tiny_task, ShortFirst(marks), base="dr_grpo"), rounds=2)
    wanted = expected(spy.results)
    assert spy.seen.keys() == wanted.keys()
    assert all(abs(spy.seen[key] - wanted[key]) < 1e-6 for key in wanted)
    results = [result for result, _ in spy.results.values()]
    assert all(result.graded and (result.turn_advantages is not None) == marks for result in results)
    assert len({round(value, 4) for value in wanted.values()}) >= 3  # the two that passed differ


def test_what_does_not_count_is_not_in_the_loss(tiny_task, spied):
    outcomes = ("short", "wrong", None, "wrong", "wrong", "wrong", "wrong", "wrong")
    spy = spied(A2C, game(tiny_task, outcomes=outcomes))
    assert {index for index, _, _ in spy.seen} == {0, 1, 3}  # member 2 broke, the second group all failed
    assert spy.seen.keys() == expected(spy.results).keys()
    assert spy.counts.kept == 1
    assert spy.counts.dropped == {"all_failed": 1}
    assert spy.counts.invalid == 1
    assert (spy.counts.trained, spy.counts.steps) == (len(spy.seen), HORIZON * 8)


@pytest.mark.parametrize("kind", [A2C, PPO])
def test_a_rollout_without_a_signal_moves_nothing(kind, tiny_task):
    env = game(tiny_task, outcomes=("wrong",))
    model = learner(kind, env)
    before = [p.detach().clone() for p in model.policy.parameters()]
    model.learn(HORIZON * env.num_envs, callback=(callback := GroupCallback()))
    env.close()
    assert callback.counts.trained == 0
    after = [p.detach() for p in model.policy.parameters()]
    assert max(float((p - q).abs().max()) for p, q in zip(after, before, strict=True)) < 1e-6


def test_members_that_run_on_are_cut(tiny_task, spied):
    spy = spied(A2C, game(tiny_task, outcomes=("short", "wrong", "long", "short"), lengths=(1, 2, 3, 5)))
    assert {index for index, _, _ in spy.seen} == {0, 1, 2, 4, 5, 6}
    assert spy.results[3, 0][1].status == "cut"


def test_a_round_that_was_left_is_given_up(tiny_task):
    env = game(tiny_task)
    spy = Spy()
    model = learner(A2C, env)

    class Stop(GroupCallback):
        def _on_step(self):
            return super()._on_step() and self.n_calls % 2 == 1

    model.learn(1000, callback=Stop())  # leaves the first round after two of its three steps
    model.learn(HORIZON * env.num_envs, callback=spy, reset_num_timesteps=False)
    env.close()
    assert {number for _, number, _ in spy.seen} == {1}
    assert spy.seen.keys() == expected(spy.results).keys()
    assert spy.counts.straddled == 0


def test_rounds_that_are_not_whole_are_not_trained_on(tiny_task):
    env = game(tiny_task)
    model = learner(A2C, env, rounds=2)

    class Shifted(Spy):
        def _on_training_start(self):
            super()._on_training_start()
            self.training_env.step(np.zeros(env.num_envs))  # of the first round, behind the learner's back

    spy = Shifted()
    model.learn(2 * HORIZON * env.num_envs, callback=spy)
    env.close()
    assert {number for _, number, _ in spy.seen} == {1}
    assert spy.seen.keys() <= expected(spy.results).keys()
    assert spy.counts.straddled == HORIZON * env.num_envs  # two steps of the first round, one of the third


@pytest.mark.parametrize("kind", [A2C, PPO])
def test_whitening_is_refused(kind, tiny_task):
    env = game(tiny_task)
    with pytest.raises(PassthroughError, match="normalize_advantage"):
        learner(kind, env, normalize_advantage=True).learn(1, callback=GroupCallback())
    env.close()


def test_what_does_not_fit_is_refused(tiny_task):
    env = game(tiny_task)
    with pytest.raises(ValueError, match="rollout_buffer_class=GroupRolloutBuffer"):
        learner(A2C, env, rollout_buffer_class=None).learn(1, callback=GroupCallback())
    with pytest.raises(ValueError, match="n_steps=4 would cut rounds of 3 steps"):
        A2C("MlpPolicy", env, n_steps=4, rollout_buffer_class=GroupRolloutBuffer).learn(1, callback=GroupCallback())
    with pytest.raises(ValueError, match="got DummyVecEnv"):
        A2C("MlpPolicy", "CartPole-v1", rollout_buffer_class=GroupRolloutBuffer).learn(1, callback=GroupCallback())
    with pytest.raises(RuntimeError, match="callback=GroupCallback"):
        learner(A2C, env).learn(1)
    env.close()


def test_sb3s_own_wrappers_may_stand_around_it(tiny_task):
    env = VecMonitor(game(tiny_task))
    model = learner(PPO, env, batch_size=8)
    model.learn(HORIZON * env.num_envs, callback=(callback := GroupCallback()))
    env.close()
    assert callback.counts.kept == 2
    assert np.isclose(model.ep_info_buffer[0]["r"], 1.0)
