import pickle
import threading
import uuid

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from pipelines import running, wait_until

from gagar_env.envs.group_vector import GroupVectorEnv, make_group_vector
from gagar_env.envs.member import Member
from gagar_env.envs.repo_edit import EPISODE_KEY, RepoEditEnv
from gagar_env.episode import EpisodeStatus
from gagar_env.errors import SandboxUnavailableError, TaskError, UnknownTaskError
from gagar_env.registration import REPO_EDIT_ID, register_envs
from gagar_env.sandbox.shell import Shell
from gagar_env.tasks.registry import register_task


@pytest.fixture
def make_group(tiny_task, best_kind):
    made = []

    def make(**kwargs):
        made.append(GroupVectorEnv(**{"tasks": tiny_task, "sandbox": best_kind, **kwargs}))
        return made[-1]

    yield make
    for env in made:
        env.close()


def test_a_group_runs_side_by_side_to_its_rewards(make_group, fix):
    env = make_group(group_size=3)
    observations, infos = env.reset(seed=5)
    assert observations in env.observation_space
    assert len(set(infos["group_id"])) == 1
    assert env.step((fix, fix.replace("+", "*"), "true"))[1].tolist() == [0, 0, 0]
    observations, rewards, terminations, truncations, infos = env.step(["submit"] * 3)
    assert (rewards.tolist(), terminations.tolist(), truncations.any()) == ([1, 0, 0], [True] * 3, False)
    assert (rewards.dtype, terminations.dtype, infos["passed"].dtype) == (np.float64, np.bool_, np.bool_)
    assert [record.seed for record in infos[EPISODE_KEY]] == [5, 6, 7]
    assert infos["valid"].tolist() == [True] * 3
    assert infos["_valid"].tolist() == [True] * 3


def test_members_run_at_the_same_time(make_group, monkeypatch):
    meeting, run = threading.Barrier(4, timeout=60), Shell.run

    def meet(self, command, **more):
        if command == "true # together":
            meeting.wait()  # all four have come as far as their sandbox
        return run(self, command, **more)

    monkeypatch.setattr(Shell, "run", meet)
    env = make_group(group_size=4, verify=False)
    env.reset()
    assert env.step(["true # together"] * 4)[4]["exit_code"].tolist() == [0] * 4


def test_finished_and_waiting_members_are_skipped(make_group, fix):
    env = make_group(group_size=3, verify=False)
    env.reset()
    env.step(["submit", fix, None])
    observations, rewards, terminations, _, infos = env.step(["rm -rf *", "git diff --stat", None])
    assert (rewards.tolist(), terminations.tolist()) == ([0, 0, 0], [True, False, False])
    assert infos["turn"].tolist() == [1, 2, 0]
    assert observations[0] == "Submitted."
    assert "gives -1" in observations[2]
    assert infos[EPISODE_KEY][0].status == "submitted"


def test_members_can_be_driven_one_by_one(make_group, fix):
    env = make_group(group_size=2)
    env.reset()
    env.step_member(1, fix)
    step = env.step_member(1, "submit")
    assert (step.reward, step.terminated, step.info["passed"]) == (1.0, True, True)
    assert env.step_member(1, "submit").reward == 0.0
    assert env.step_member(0, "true").info["turn"] == 1


def test_several_groups_have_their_own_tasks_and_ids(make_group, tiny_task):
    other = tiny_task.model_copy(update={"id": "tiny-other", "problem_statement": "Another one."})
    env = make_group(tasks=[tiny_task, other], num_groups=2, group_size=2, verify=False)
    observations, infos = env.reset()
    assert [text.split("\n")[0] for text in observations] == [tiny_task.problem_statement] * 2 + ["Another one."] * 2
    assert list(infos["task_id"]) == [tiny_task.id] * 2 + ["tiny-other"] * 2
    assert [infos["group_id"][0], infos["group_id"][2]] == list(env.group_ids)
    assert len(set(env.group_ids)) == 2


def test_a_mask_resets_only_what_it_names(make_group, tiny_task):
    other = tiny_task.model_copy(update={"id": "tiny-other"})
    env = make_group(num_groups=2, group_size=2, verify=False)
    _, before = env.reset()
    env.step(["submit", "true", "submit", "true"])
    mask = np.array([False, False, True, True])
    options = {"reset_mask": mask, "tasks": [tiny_task, other]}
    _, infos = env.reset(options=options)
    assert list(options) == ["reset_mask", "tasks"]
    assert infos["_task_id"].tolist() == mask.tolist()
    assert env.tasks == (tiny_task, other)
    assert env.group_ids[0] == before["group_id"][0]
    assert env.group_ids[1] != before["group_id"][2]
    _, _, terminations, _, infos = env.step([None] * 4)
    assert terminations.tolist() == [True, False, False, False]
    assert infos["turn"].tolist() == [1, 1, 0, 0]


def test_a_member_that_is_reset_alone_stays_in_its_group(make_group):
    env = make_group(group_size=2, verify=False)
    _, before = env.reset()
    env.step(["submit", "true"])
    _, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert infos["group_id"][0] == before["group_id"][1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reset_mask": [True]}, "reset_mask must be 2 booleans"),
        ({"reset_mask": np.zeros(2, dtype=bool)}, "one of them True"),
        ({"tasks": ["a", "b", "c"]}, "tasks must be 1 or 2"),
        ({"group_ids": ["a", "a"]}, "2 different texts"),
        ({"taks": "a"}, "unknown reset option taks"),
    ],
)
def test_bad_reset_options_are_refused(make_group, options, says):
    env = make_group(num_groups=2, group_size=1)
    with pytest.raises(ValueError, match=says):
        env.reset(options=options)


def test_bad_arguments_are_refused(make_group, tiny_task, tmp_path):
    with pytest.raises(ValueError, match="0 groups of 8"):
        make_group(num_groups=0)
    with pytest.raises(UnknownTaskError):
        make_group(tasks="no-such-task")
    env = make_group(group_size=2)
    with pytest.raises(ValueError, match="needs 2 actions"):
        env.step(["true"])
    with pytest.raises(ResetNeeded):
        env.step(["true"] * 2)
    with pytest.raises(SandboxUnavailableError):
        make_group(sandbox="nonesuch").reset()
    repo = tiny_task.repo.model_copy(update={"path": tmp_path / "nowhere"})
    with pytest.raises(TaskError):
        make_group(tasks=tiny_task.model_copy(update={"repo": repo})).reset()


def test_dist_2_a_fresh_environment_can_be_pickled(make_group, fix):
    made = make_group(group_size=2, turns=7, render_mode="ansi")
    env = pickle.loads(pickle.dumps(made))
    env.reset(seed=3)
    env.step([fix, "true"])
    assert env.step(["submit"] * 2)[1].tolist() == [1, 0]
    assert env.get_attr("limits")[0].turns == 7
    env.close()


def test_the_transcripts_are_rendered(make_group):
    env = make_group(group_size=2, verify=False, render_mode="ansi")
    env.reset()
    env.step(["echo one", "echo two"])
    assert ["echo one" in env.render()[0], "echo two" in env.render()[1]] == [True, True]


class Raises(RepoEditEnv):
    """Raises at one of its methods, as a wrapper of somebody else might."""

    at = ""

    def _maybe(self, where):
        if self.at == where:
            raise RuntimeError(f"broken in {where}")

    def reset(self, **kwargs):
        self._maybe("reset")
        return super().reset(**kwargs)

    def step(self, action):
        self._maybe("grading" if action == "submit" else "step")
        return super().step(action)

    def close(self):
        super().close()
        self._maybe("close")


@pytest.mark.slow
@pytest.mark.parametrize("at", ["reset", "step", "grading", "close"])
def test_dist_3_one_bad_member_costs_only_itself(tiny_task, best_kind, fix, at, caplog):
    made, before = [], set(threading.enumerate())  # a thread of another test may still wait for something

    def make_env():
        made.append(Raises(tiny_task, sandbox=best_kind))
        made[-1].at = at if len(made) == 3 else ""
        return made[-1]

    env = GroupVectorEnv(tiny_task, group_size=8, make_env=make_env)
    env.reset()
    env.step([fix] * 8)
    _, rewards, _, truncations, infos = env.step(["submit"] * 8)
    records = infos[EPISODE_KEY]
    lost = [] if at == "close" else [2]
    assert [i for i, record in enumerate(records) if not record.valid] == lost
    assert rewards.tolist() == [0.0 if i in lost else 1.0 for i in range(8)]
    assert [i for i in range(8) if truncations[i]] == lost
    assert len({record.group_id for record in records}) == 1
    for i in lost:
        assert records[i].status is EpisodeStatus.ERROR
        assert f"broken in {at}" in records[i].error
    env.close()
    assert all(member.episode for member in made if member.at != "reset")
    mine = set(threading.enumerate()) - before
    assert not [thread for thread in mine if thread.name.startswith("gagar")]


def test_dist_3_interrupts_pass_through(tiny_task, best_kind):
    class Interrupted(RepoEditEnv):
        def step(self, action):
            raise KeyboardInterrupt

    env = GroupVectorEnv(tiny_task, group_size=2, make_env=lambda: Interrupted(tiny_task, sandbox=best_kind))
    env.reset()
    with pytest.raises(KeyboardInterrupt):
        env.step(["true"] * 2)
    env.close()


def test_a_lost_member_works_again_after_a_reset(make_group):
    env = make_group(group_size=2, verify=False)
    env.reset()
    old = env.member(0)
    assert env.cut_member(0, "too late").status is EpisodeStatus.CUT
    env.reset()
    assert env.member(0) is not old
    assert env.step(["true"] * 2)[4]["status"].tolist() == ["running"] * 2


@pytest.mark.parametrize("when", ["before", "while"])
def test_a_member_that_is_stopped_before_its_reset_starts_nothing(tiny_task, best_kind, when):
    class Interrupted(RepoEditEnv):
        def reset(self, **kwargs):
            if when == "while":
                member.stop(EpisodeStatus.CUT, "too late")
            return super().reset(**kwargs)

    member = Member(lambda: Interrupted(tiny_task, sandbox=best_kind))
    if when == "before":
        member.stop(EpisodeStatus.CUT, "too late")
    step = member.reset(seed=0, options={"task": tiny_task, "group_id": "g"})
    assert (step.truncated, step.info["status"], member.episode.status) == (True, "cut", EpisodeStatus.CUT)
    env = member.env
    assert when == "while" or env.episode is None
    assert when == "before" or env.episode.status is EpisodeStatus.CUT  # its sandbox is closed


def test_closing_ends_a_running_step(make_group):
    env = make_group(group_size=2, verify=False)
    env.reset()
    steps = []
    endless = f"sleep 9{uuid.uuid4().int % 10**9:09}"  # no other worker's
    thread = threading.Thread(target=lambda: steps.append(env.step([endless] * 2)))
    thread.start()
    wait_until(lambda: len(running(endless.replace(" ", "\0"))) == 2)
    env.close()
    thread.join(60)
    assert steps[0][3].tolist() == [True, True]
    assert steps[0][4]["status"].tolist() == ["cut"] * 2


@pytest.mark.parametrize(("kwargs", "shape"), [({}, (1, 4)), ({"group_size": 2}, (2, 2))])
def test_make_vec_uses_it(tiny_task, best_kind, fix, kwargs, shape):
    register_envs()
    register_task(tiny_task)
    env = gym.make_vec(REPO_EDIT_ID, 4, task=tiny_task.id, sandbox=best_kind, verify=False, **kwargs)
    assert isinstance(env, GroupVectorEnv)
    assert (env.num_groups, env.group_size) == shape
    assert env.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    again = gym.make_vec(gym.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert (again.num_groups, again.group_size) == shape
    env.reset()
    assert env.step([fix] * 4)[4]["exit_code"].tolist() == [0] * 4
    env.close()
    again.close()


@pytest.mark.parametrize(("number", "size"), [(3, 2), (0, 0), (4, 0)])
def test_make_vec_refuses_sizes_that_do_not_fit(number, size):
    with pytest.raises(ValueError, match=f"num_envs={number} is no multiple of group_size={size}"):
        make_group_vector(number, group_size=size)
    with pytest.raises(ValueError, match="is no multiple"):
        make_group_vector(0)
