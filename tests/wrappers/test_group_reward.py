import json
import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.envs.repo_edit import EPISODE_KEY
from gagar_env.errors import EnvironmentBuildError, GagarError
from gagar_env.grading import Verdict, VerdictOutcome
from gagar_env.registration import REPO_EDIT_ID, register_envs
from gagar_env.sandbox import live_sandboxes
from gagar_env.tasks.registry import load_task, register_task
from gagar_env.wrappers import GroupMetrics, GroupRewardWrapper

FIX = "sed -i 's/a - b/a + b/' calc.py"
OTHER_FIX = "sed -i 's/a - b/b + a/' calc.py"


class First:
    """Prefers the patch that adds in the order of the arguments."""

    name = "first"

    def grade(self, workspace):
        def key(label):
            return b"+    return a + b" not in workspace.candidates[label].patch

        tiers = tuple((label,) for label in sorted(workspace.passing, key=key))
        return Verdict(grader=self.name, outcome=VerdictOutcome.RANKED, tiers=tiers)


class Broken:
    name = "broken"

    def grade(self, workspace):
        raise OSError("the judge is away")


class Plan:
    """Member m plays `rounds[k][m]` in its k-th episode; rounds and members go round."""

    name = "plan"

    def __init__(self, *rounds):
        self.rounds = rounds
        self.started = []
        self._lock = threading.Lock()

    def start(self, *, task, actions, seed):
        thread = threading.current_thread().name
        with self._lock:
            lone = len(self.started) % len(self.rounds[0])  # in lockstep they start in order
            member = int(thread.split("-")[-1]) if thread.startswith("gagar-member") else lone
            number = sum(known == member for known, *_ in self.started)
            self.started.append((member, task.id, seed))
        scripts = self.rounds[number % len(self.rounds)]
        script = iter(scripts[member % len(scripts)])

        class Actor:
            def act(self, observation):
                action = next(script, "submit")
                return action() if callable(action) else action

        return Actor()


@pytest.fixture
def make(tiny_task, best_kind):
    made = []

    def wrap(grader=None, *, grading=None, **kwargs):
        env = GroupVectorEnv(**{"tasks": tiny_task, "sandbox": best_kind, "group_size": 3, **kwargs})
        made.append(GroupRewardWrapper(env, grader, **(grading or {})))
        return made[-1]

    yield wrap
    for env in made:
        env.close()


@pytest.fixture
def registered(tiny_task):
    register_envs()
    register_task(tiny_task)
    return tiny_task.id


def check_infos(infos, number):
    assert infos["group_result"].shape == (number,)
    assert infos["group_result"].dtype == object
    assert infos["advantage"].dtype == np.float64
    assert infos["advantage_valid"].dtype == np.bool_
    for key in ("group_result", "advantage", "advantage_valid"):
        assert infos[f"_{key}"].dtype == np.bool_


def test_the_step_that_completes_a_group_has_its_result(make):
    env = make(First())
    _, infos = env.reset()
    check_infos(infos, 3)
    *_, infos = env.step([OTHER_FIX, FIX, "true"])
    check_infos(infos, 3)
    *_, infos = env.step(["submit", "true", "submit"])
    assert list(infos["group_result"]) == [None] * 3
    assert not infos["advantage_valid"].any()
    *_, infos = env.step([None, "submit", None])
    check_infos(infos, 3)
    result = infos["group_result"][0]
    assert all(found is result for found in infos["group_result"])
    assert (result.kept, result.ranks) == (True, (1, 0, None))
    assert result.episode_ids == tuple(record.id for record in infos[EPISODE_KEY])
    assert infos["advantage"].tolist() == list(result.advantages)
    assert infos["advantage"][1] > infos["advantage"][0] > 0 > infos["advantage"][2]
    assert result.sum_after == pytest.approx(result.sum_before, abs=1e-9)
    assert infos["advantage_valid"].all()
    *_, infos = env.step([None] * 3)
    assert list(infos["group_result"]) == [None] * 3
    assert env.metrics.kept == 1


def test_several_groups_complete_one_by_one(make):
    env = make(num_groups=2, group_size=2)
    env.reset()
    *_, infos = env.step([FIX, "submit", "true", "true"])
    *_, infos = env.step(["submit", None, "submit", "true"])
    assert infos["_group_result"].tolist() == [True, True, False, False]
    *_, infos = env.step([None, None, None, "submit"])
    assert infos["_group_result"].tolist() == [False, False, True, True]
    result = infos["group_result"][2]
    assert (result.kept, result.reason) == (False, "all_failed")
    assert (infos["advantage"].tolist(), infos["advantage_valid"].any()) == ([0.0] * 4, False)
    assert env.metrics.dropped == {"all_failed": 1}


def test_a_group_can_follow_in_the_same_place(make):
    env = make(num_groups=2, group_size=2, verify=False)
    env.reset()
    env.step(["submit"] * 4)
    env.reset(options={"reset_mask": np.array([True, True, False, False])})
    *_, infos = env.step(["submit", "submit", None, None])
    assert infos["_group_result"].tolist() == [True, True, False, False]
    assert env.metrics.groups == 3


def test_a_graded_group_is_reset_whole_or_not_at_all(make):
    env = make(group_size=3, verify=False)
    one = np.array([True, False, False])
    env.reset()
    env.step(["submit", "submit", "true"])
    env.reset(options={"reset_mask": one})  # the group still works
    env.step(["submit", None, "submit"])
    assert env.metrics.groups == 1
    with pytest.raises(ValueError, match=r"reset_mask names members \[0\] of group .* graded already: .* \[0, 1, 2\]"):
        env.reset(options={"reset_mask": one})
    env.reset(options={"reset_mask": ~one | one})
    *_, infos = env.step(["submit"] * 3)
    assert len({record.id for record in infos[EPISODE_KEY]}) == 3
    assert (env.metrics.groups, env.metrics.episodes) == (2, 6)


@pytest.mark.parametrize("fault", [EnvironmentBuildError("no room"), OSError("no room")])
def test_a_base_tree_that_cannot_be_had_costs_only_the_ranking(make, monkeypatch, fault):
    def gone(*_):
        raise fault

    env = make(First())
    env.reset()
    env.step([FIX, OTHER_FIX, "true"])
    monkeypatch.setattr("gagar_env.group._base_of", gone)
    *_, infos = env.step(["submit"] * 3)
    result = infos["group_result"][0]
    assert (result.kept, result.fallback) == (True, f"{type(fault).__name__}: no room")
    assert infos["advantage"].tolist() == list(result.advantages_before)


def test_math_2_invalid_members_have_no_vote(make):
    env = make(First(), group_size=4)
    env.reset()
    env.step([FIX, "true", FIX, "true"])
    env.env.unwrapped.cut_member(2, "on purpose")
    *_, infos = env.step(["submit"] * 4)
    assert infos["advantage_valid"].tolist() == [True, True, False, True]
    assert infos["advantage"][2] == 0.0
    assert (env.metrics.invalid_episodes, env.metrics.cut_episodes) == (1, 1)


def test_a_grader_that_raises_costs_only_the_ranking(make, caplog):
    env = make(Broken())
    env.reset()
    env.step([FIX, OTHER_FIX, "true"])
    *_, infos = env.step(["submit"] * 3)
    result = infos["group_result"][0]
    assert result.advantages == result.advantages_before
    assert "the judge is away" in result.fallback
    assert env.metrics.grader_fallbacks == 1


def lockstep(mode, task, kind, number, **kwargs):
    vector_kwargs = {"autoreset_mode": AutoresetMode.DISABLED}
    if mode != "sync":  # whatever another library, torchrl for one, has made the default way to start a process
        vector_kwargs |= {"shared_memory": False, "context": "fork" if mode == "async" else mode}
    how = "sync" if mode == "sync" else "async"
    return gym.make_vec(
        REPO_EDIT_ID, number, vectorization_mode=how, vector_kwargs=vector_kwargs, task=task, sandbox=kind, **kwargs
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vec_2_it_works_over_the_vector_envs_of_gymnasium(registered, best_kind, mode):
    env = GroupRewardWrapper(lockstep(mode, registered, best_kind, 3), First())
    options = {}
    env.reset(seed=1, options=options)
    assert options == {}
    env.step((FIX, OTHER_FIX, "true"))
    env.step(("submit", "true", "true"))
    _, rewards, terminations, _, infos = env.step((None, "submit", "true"))
    assert (rewards.tolist(), terminations.tolist()) == ([0.0, 1.0, 0.0], [True, True, False])
    assert not infos["_group_result"].any()
    *_, infos = env.step((None, None, "submit"))
    check_infos(infos, 3)
    assert infos["group_result"][0].ranks == (0, 1, None)
    assert env.metrics.groups == 1
    env.close()


@pytest.mark.slow
def test_vec_2_spawned_environments_take_the_task_itself(registered, best_kind):
    env = GroupRewardWrapper(lockstep("spawn", load_task(registered), best_kind, 2), First())
    env.reset(seed=1)
    env.step((FIX, "true"))
    _, rewards, _, _, _ = env.step(("submit", "submit"))
    assert rewards.tolist() == [1.0, 0.0]
    assert env.metrics.groups == 1
    env.close()


@pytest.mark.slow
def test_a_spawned_environment_says_why_it_does_not_know_an_id(registered, best_kind, capfd):
    with pytest.raises((EOFError, ConnectionResetError)):
        lockstep("spawn", registered, best_kind, 1)
    assert "pass the Task instead of its id" in capfd.readouterr().err


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_vec_2_autoreset_is_refused_with_the_cure(registered, best_kind, mode):
    envs = gym.make_vec(
        REPO_EDIT_ID, 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode}, task=registered
    )
    with pytest.raises(ValueError, match=r"need autoreset_mode DISABLED.*vector_kwargs"):
        GroupRewardWrapper(envs)
    envs.close()


def test_it_works_around_wrappers_of_gymnasium(make):
    inner = make(group_size=2, verify=False).env
    env = GroupRewardWrapper(RecordEpisodeStatistics(inner))
    env.reset()
    *_, infos = env.step(["submit"] * 2)
    assert infos["group_result"][0].reason == "too_few_valid"
    assert infos["episode"]["l"].tolist() == [1, 1]


def test_bad_settings_are_found_at_once(make):
    with pytest.raises(ValueError, match="strength"):
        make(grading={"strength": 2.0})
    with pytest.raises(ValueError, match="seed must be 0 or more"):
        make(grading={"seed": -1})
    with pytest.raises(ValueError, match="preserve"):
        make(grading={"preserve": "tokens"})


def test_tokens_that_nobody_counted_cannot_be_preserved(make):
    env = make(First(), grading={"preserve": "token"})
    (batch,) = env.collect(Plan([[FIX], [OTHER_FIX], []]), 1)
    assert "preserve='token' needs `tokens`" in batch.result.fallback
    assert batch.result.advantages == batch.result.advantages_before
    assert env.metrics.grader_fallbacks == 1


def test_collect_gives_a_batch_for_each_kept_group(make):
    env = make(First(), num_groups=2, grading={"seed": 7})
    policy = Plan([[FIX], [OTHER_FIX], []])
    batches = list(env.collect(policy, 3))
    assert len(batches) == 3
    assert sorted(batch.attempt for batch in batches) == [0, 1, 2]
    for batch in batches:
        assert batch.result.kept
        assert batch.result.episode_ids == tuple(episode.id for episode in batch.episodes)
        assert {episode.group_id for episode in batch.episodes} == {batch.result.group_id}
        assert [episode.seed for episode in batch.episodes] == [batch.seed + i for i in range(3)]
        assert batch.task.id == batch.result.task_id
    assert len({batch.seed for batch in batches}) == 3
    assert (env.metrics.kept, env.metrics.groups, env.metrics.episodes) == (3, 3, 9)
    assert env.metrics.rollout_s > 0 < env.metrics.grading_s
    assert json.loads(json.dumps(env.metrics.as_dict()))["kept"] == 3


def test_math_3_dropped_groups_are_replaced_and_counted(make):
    env = make(group_size=2)
    policy = Plan([[FIX], [FIX]], [[], []], [[FIX], []])
    ended = []
    batches = list(env.collect(policy, 1, on_group=ended.append))
    assert [batch.attempt for batch in batches] == [2]
    assert [(group.attempt, group.result.reason.value) for group in ended] == [
        (0, "all_passed"),
        (1, "all_failed"),
        (2, "kept"),
    ]
    assert ended[2] is batches[0]
    assert env.metrics.dropped == {"all_passed": 1, "all_failed": 1}
    assert env.metrics.as_dict()["dropped/all_failed"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("script", "reason"), [([], "all_failed"), ([FIX], "all_passed")])
@pytest.mark.parametrize("end", ["short", "skip", "error"])
def test_math_3_a_hopeless_task_ends(make, script, reason, end, caplog):
    env = make(group_size=2)
    policy = Plan([script])
    batches = env.collect(policy, 2, max_attempts=2, on_exhausted=end)
    if end == "error":
        with pytest.raises(GagarError, match=rf"0 of 2 groups kept after 2 attempts .*2 {reason}"):
            list(batches)
    else:
        assert list(batches) == []
    assert len(policy.started) == 4
    assert env.metrics.dropped == {reason: 2}
    assert env.metrics.exhausted == 1


@pytest.mark.parametrize(("end", "given"), [("short", 1), ("skip", 0)])
def test_math_4_a_short_batch_is_given_or_skipped(make, end, given, caplog):
    env = make(group_size=2)
    policy = Plan([[FIX], []], [[], []])
    assert len(list(env.collect(policy, 2, max_attempts=2, on_exhausted=end))) == given


def test_a_policy_that_breaks_is_told_with_what_it_raised(make, caplog):
    def boom():
        raise ValueError("boom")

    assert list(make(group_size=2).collect(Plan([[boom], [boom]]), 1, max_attempts=1)) == []
    assert "2 too_few_valid" not in caplog.text
    assert "1 too_few_valid); the first error of an episode: policy plan: ValueError: boom" in caplog.text


def test_skip_gives_all_when_all_are_there(make):
    env = make(group_size=2)
    assert len(list(env.collect(Plan([[FIX], []]), 2, on_exhausted="skip"))) == 2


def test_tasks_are_taken_in_turn_and_seeds_follow_from_one(make, tiny_task, registered, caplog):
    other = tiny_task.model_copy(update={"id": "tiny-other"})

    def run(seed):
        env = make(group_size=2, verify=False, grading={"seed": seed})
        policy = Plan([[]])
        assert list(env.collect(policy, 1, tasks=[registered, other], max_attempts=3)) == []
        return sorted(policy.started)

    first = run(1)
    assert [task_id for member, task_id, _ in first if member == 0].count(registered) == 2
    assert first == run(1)
    assert first != run(2)
    seeds = {seed for *_, seed in first}
    assert len(seeds) == 6


def test_the_next_call_goes_on_in_the_schedule(make, tiny_task):
    tasks = [tiny_task, tiny_task.model_copy(update={"id": "tiny-other"})]
    env = make(group_size=2)
    policy = Plan([[FIX], []])
    batches = [batch for _ in range(3) for batch in env.collect(policy, 1, tasks=tasks)]
    assert [batch.task.id for batch in batches] == ["tiny-add", "tiny-other", "tiny-add"]
    assert [batch.attempt for batch in batches] == [0, 1, 2]
    assert len({batch.seed for batch in batches}) == 3


@pytest.mark.slow
def test_stragglers_are_cut_and_the_group_goes_on(make):
    env = make(group_size=3, grading={"rollout_deadline_s": 15.0})  # two are verified within it
    started = time.monotonic()
    batches = list(env.collect(Plan([[FIX], [], ["sleep 100"]]), 1))
    assert time.monotonic() - started < 60
    assert [episode.status for episode in batches[0].episodes] == ["submitted", "submitted", "cut"]
    assert batches[0].result.valid == (True, True, False)
    assert env.metrics.cut_episodes == 1


def test_leaving_the_loop_ends_what_runs(make):
    before = set(threading.enumerate())  # a member of another test may still wait for something
    env = make(group_size=2, num_groups=2)
    for _ in env.collect(Plan([[FIX], [], ["sleep 100"], ["sleep 100"]]), 2):
        break
    ends_at = time.monotonic() + 20
    while any(thread.name.startswith("gagar-member") for thread in set(threading.enumerate()) - before):
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def test_one_collect_at_a_time(make):
    env = make(group_size=2)
    policy = Plan([[FIX], []])
    first = env.collect(policy, 2)
    next(first)
    for other in (lambda: next(env.collect(policy, 1)), env.reset, lambda: env.step(["submit"] * 2)):
        with pytest.raises(GagarError, match="one at a time"):
            other()
    first.close()
    assert len(list(env.collect(policy, 1))) == 1


@pytest.mark.parametrize("num_groups", [1, 2])
def test_closing_ends_a_collect_in_another_thread(make, num_groups):
    begun, before = threading.Event(), live_sandboxes()
    env = make(group_size=2, num_groups=num_groups, verify=False)
    closer = threading.Thread(target=lambda: (begun.wait(60), env.close()))
    closer.start()
    with pytest.raises(GagarError, match=r"was (stopped|closed)"):
        list(env.collect(Plan([[lambda: (begun.set(), "sleep 100")[1]]]), 2))
    closer.join(60)
    assert live_sandboxes() <= before
    with pytest.raises(GagarError, match="environment was closed"):
        next(env.collect(Plan([[]]), 1))


def test_closing_ends_a_collect_in_lockstep(registered, best_kind):
    env = GroupRewardWrapper(lockstep("sync", registered, best_kind, 2))
    policy = Plan([[lambda: (env.close(), "true")[1]]])
    with pytest.raises(GagarError, match="environment was closed"):
        list(env.collect(policy, 2))
    assert len(policy.started) == 2


def test_an_interrupt_of_a_policy_passes_through(make):
    def interrupt():
        raise KeyboardInterrupt

    env = make(group_size=2)
    with pytest.raises(KeyboardInterrupt):
        list(env.collect(Plan([[interrupt], ["sleep 100"]]), 1))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_collect_works_in_lockstep(registered, best_kind, mode):
    def lose_it():
        raise ValueError("lost it")

    env = GroupRewardWrapper(lockstep(mode, registered, best_kind, 3), rollout_deadline_s=200)
    policy = Plan([[FIX], ["true", "true", "true"], ["true", lose_it]])
    batches = list(env.collect(policy, 2))
    assert [batch.attempt for batch in batches] == [0, 1]
    for batch in batches:
        assert [episode.passed for episode in batch.episodes] == [True, False, False]
        assert [episode.valid for episode in batch.episodes] == [True, True, False]
        assert batch.episodes[2].error == "policy plan: ValueError: lost it"
        assert [episode.seed for episode in batch.episodes] == [batch.seed + i for i in range(3)]
    env.close()


@pytest.mark.slow
def test_lockstep_cuts_at_the_deadline(registered, best_kind):
    env = GroupRewardWrapper(lockstep("sync", registered, best_kind, 2, verify=False), rollout_deadline_s=3)
    assert list(env.collect(Plan([["sleep 1"] * 50]), 1, max_attempts=1)) == []
    assert env.metrics.cut_episodes == 2
    env.close()


@pytest.mark.parametrize(
    "arguments", [{"n_groups": 0}, {"n_groups": 1, "max_attempts": 0}, {"n_groups": 1, "on_exhausted": "cry"}]
)
def test_bad_arguments_of_collect_are_refused_at_once(make, arguments):
    with pytest.raises(ValueError, match="collect needs"):
        make().collect(Plan([[]]), **arguments)


def test_metrics_can_be_started_anew(make):
    env = make(group_size=2, verify=False)
    env.reset()
    env.step(["submit"] * 2)
    assert env.metrics.dropped == {"too_few_valid": 1}
    env.metrics = GroupMetrics()
    assert env.metrics.as_dict()["groups"] == 0


def test_the_constructor_arguments_are_recorded(make):
    grader = First()
    env = make(grader, grading={"strength": 0.25, "rollout_deadline_s": 9.0})
    assert env._saved_kwargs == {
        "grader": grader,
        "rollout_deadline_s": 9.0,
        "seed": 0,
        "flag_policy": "flag",
        "grading_workers": 1,
        "strength": 0.25,
    }
