import math
import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.episode import EpisodeStatus
from gagar_env.errors import SandboxUnavailableError, UnknownTaskError
from gagar_env.rollout import GroupDriver, Policy, run_episode, run_group

FIX = "sed -i 's/a - b/a + b/' calc.py"


class Scripted:
    """Each member takes its actions from `scripts`, chosen by its seed; what is callable is called."""

    name = "scripted"

    def __init__(self, *scripts):
        self.scripts = scripts
        self.started = []

    def start(self, *, task, actions, seed):
        self.started.append((task.id, actions.name, seed))
        script = iter(self.scripts[seed % len(self.scripts)])

        class Actor:
            def act(self, observation):
                action = next(script, "submit")
                return action() if callable(action) else action

        return Actor()


def raise_it(error):
    def act():
        raise error

    return act


@pytest.fixture
def env(tiny_task, best_kind):
    made = RepoEditEnv(tiny_task, sandbox=best_kind)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _no_thread_stays():
    before = set(threading.enumerate())  # a group of another test may still wait for its deadline
    yield
    ends_at = time.monotonic() + 20
    while any(thread.name.startswith("gagar") for thread in set(threading.enumerate()) - before):
        assert time.monotonic() < ends_at, threading.enumerate()
        time.sleep(0.05)


def test_an_episode_is_run_to_its_record(env, tiny_task):
    policy = Scripted([FIX])
    assert isinstance(policy, Policy)
    episode = run_episode(env, policy, seed=4)
    assert (episode.status, episode.passed, len(episode.turns)) == (EpisodeStatus.SUBMITTED, True, 2)
    assert (episode.policy, episode.seed, episode.task_id) == ("scripted", 4, tiny_task.id)
    assert policy.started == [(tiny_task.id, "bash", 4)]
    assert env.episode is episode


def test_another_task_can_be_given(env, tiny_task):
    other = tiny_task.model_copy(update={"id": "tiny-other"})
    assert run_episode(env, Scripted([]), other).task_id == "tiny-other"
    with pytest.raises(UnknownTaskError):
        run_episode(env, Scripted([]), "no-such-task")


@pytest.mark.parametrize(
    ("action", "says"),
    [(raise_it(ValueError("lost the thread")), "policy scripted: ValueError: lost the thread"), (7, "got int")],
)
def test_a_policy_that_fails_is_named(env, action, says):
    episode = run_episode(env, Scripted(["true", action]))
    assert (episode.status, episode.valid, len(episode.turns)) == (EpisodeStatus.ERROR, False, 1)
    assert says in episode.error


@pytest.mark.parametrize(
    ("usage", "says"),
    [(np.array([12, 3]), ""), ((12, 3.0), "two counts"), ((-1, 3), "two counts"), (7, "two counts")],
)
def test_tokens_are_counts_of_any_kind_of_integer(env, usage, says):
    class Counts(Scripted):
        def start(self, **given):
            actor = super().start(**given)
            actor.usage = usage
            return actor

    episode = run_episode(env, Counts([]))
    assert (says in episode.error, bool(episode.error)) == (True, bool(says))
    assert [(turn.prompt_tokens, turn.completion_tokens) for turn in episode.turns] == ([] if says else [(12, 3)])


def test_an_interrupt_passes_and_the_sandbox_is_closed(env):
    with pytest.raises(KeyboardInterrupt):
        run_episode(env, Scripted(["true", raise_it(KeyboardInterrupt())]))
    assert env.episode.status is EpisodeStatus.CUT


def test_gym_2_a_limit_of_a_wrapper_is_graded_too(env):
    episode = run_episode(TimeLimit(env, 2), Scripted([FIX, "true", "true"]))
    assert (episode.status, episode.passed) == (EpisodeStatus.TURN_LIMIT, True)


def test_another_environment_is_refused():
    with pytest.raises(TypeError, match="needs a RepoEditEnv"):
        run_episode(gym.make("CartPole-v1"), Scripted([]))


def test_a_group_is_run_member_by_member(tiny_task, best_kind):
    seen = []
    policy = Scripted([FIX], ["true", "true"], [raise_it(OSError("no model"))])
    episodes = run_group(
        tiny_task,
        policy,
        group_size=3,
        seed=6,
        sandbox=best_kind,
        on_step=lambda member, info: seen.append((member, info["turn"], info["status"])),
    )
    assert [episode.seed for episode in episodes] == [6, 7, 8]
    assert [episode.passed for episode in episodes] == [True, False, False]
    assert [episode.valid for episode in episodes] == [True, True, False]
    assert episodes[2].error == "policy scripted: OSError: no model"
    assert len({episode.group_id for episode in episodes}) == 1
    assert len({episode.id for episode in episodes}) == 3
    assert {(0, 0, "running"), (0, 2, "submitted"), (1, 3, "submitted"), (2, 0, "error")} <= set(seen)


def test_members_go_at_their_own_pace(tiny_task, best_kind):
    passed_by = threading.Event()

    def wait_for_the_other():
        assert passed_by.wait(60)
        return "true"

    def go_by():
        passed_by.set()
        return "submit"

    policy = Scripted([wait_for_the_other], ["true", "true", "true", go_by])
    episodes = run_group(tiny_task, policy, group_size=2, sandbox=best_kind, verify=False)
    assert [len(episode.turns) for episode in episodes] == [2, 4]


@pytest.mark.slow
def test_stragglers_are_cut_at_the_deadline(tiny_task, best_kind):
    release = threading.Event()
    policy = Scripted([FIX], ["sleep 100"], [lambda: release.wait(60) and "true"])
    started = time.monotonic()
    episodes = run_group(tiny_task, policy, group_size=3, sandbox=best_kind, verify=False, deadline_s=10)
    assert 9 < time.monotonic() - started < 50
    release.set()
    assert [episode.status for episode in episodes] == ["submitted", "cut", "cut"]
    assert [episode.error for episode in episodes[1:]] == ["deadline of the group"] * 2
    assert not any(episode.valid for episode in episodes)


@pytest.mark.parametrize("deadline_s", [math.inf, 1e12])
def test_a_deadline_may_be_as_late_as_you_like(tiny_task, best_kind, deadline_s):
    episodes = run_group(tiny_task, Scripted([]), group_size=2, sandbox=best_kind, verify=False, deadline_s=deadline_s)
    assert [episode.status for episode in episodes] == ["submitted"] * 2


def test_a_listener_that_raises_costs_no_episode(tiny_task, best_kind, caplog):
    def boom(member, info):
        raise KeyError("my display")

    (episode,) = run_group(tiny_task, Scripted([FIX]), group_size=1, sandbox=best_kind, on_step=boom)
    assert (episode.status, episode.error, episode.passed) == ("submitted", "", True)
    assert "on_step raised at member 0, which goes on: KeyError: 'my display'" in caplog.text


@pytest.mark.slow
def test_preparing_the_task_takes_nothing_from_the_deadline(tiny_task, best_kind):
    class Slow(GroupVectorEnv):
        def start_group(self, *args, **kwargs):
            time.sleep(3.5)
            return super().start_group(*args, **kwargs)

    env = Slow(tiny_task, group_size=1, sandbox=best_kind, verify=False)
    driver = GroupDriver(env, Scripted([]), deadline_s=3)
    driver.start(0, task=tiny_task, seed=0)
    _, episodes = driver.wait()
    env.close()
    assert episodes[0].status is EpisodeStatus.SUBMITTED


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_dist_3_an_interrupt_ends_the_group(tiny_task, best_kind, interrupt):
    policy = Scripted(["sleep 100"], ["true", raise_it(interrupt())])
    started = time.monotonic()
    with pytest.raises(interrupt):
        run_group(tiny_task, policy, group_size=2, sandbox=best_kind)
    assert time.monotonic() - started < 60


def test_dist_3_a_policy_that_does_not_start_costs_its_own_episode(tiny_task, best_kind):
    class Picky(Scripted):
        def start(self, *, task, actions, seed):
            if seed == 1:
                raise RuntimeError("no seat")
            return super().start(task=task, actions=actions, seed=seed)

    episodes = run_group(tiny_task, Picky([FIX]), group_size=3, sandbox=best_kind)
    assert [episode.passed for episode in episodes] == [True, False, True]
    assert episodes[1].error == "policy scripted: RuntimeError: no seat"


def test_broken_set_up_raises_before_anything_runs(tiny_task):
    policy = Scripted([FIX])
    with pytest.raises(SandboxUnavailableError):
        run_group(tiny_task, policy, sandbox="nonesuch")
    with pytest.raises(UnknownTaskError):
        run_group("no-such-task", policy)
    with pytest.raises(ValueError, match="seed must be 0 or more, got -1"):
        run_group(tiny_task, policy, seed=-1)
    assert policy.started == []


def test_an_actor_that_is_false_is_started_once(env):
    class Talk(list):
        def act(self, observation):
            return "submit" if "second" in observation else "echo second"

    class Talks:
        name = "talks"
        started = 0

        def start(self, **_):
            self.started += 1
            return Talk()

    policy = Talks()
    assert run_episode(env, policy).status is EpisodeStatus.SUBMITTED
    assert policy.started == 1


def test_limits_and_formats_are_passed_on(tiny_task, best_kind):
    policy = Scripted(['{"tool": "bash", "command": "true"}'] * 9)
    episodes = run_group(
        tiny_task, policy, group_size=1, sandbox=best_kind, action_format="tools", turns=2, verify=False
    )
    assert (episodes[0].status, len(episodes[0].turns)) == (EpisodeStatus.TURN_LIMIT, 2)
    assert policy.started[0][1] == "tools"


def test_what_is_no_policy_is_refused_at_once(tiny_task):
    with pytest.raises(TypeError, match="NoneType"):
        run_group(tiny_task, None)
