import json
import pickle
import threading
import time
import uuid
import warnings

import gymnasium as gym
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics
from pipelines import running, wait_until

from gagar_env.envs.repo_edit import EPISODE_KEY, RepoEditEnv
from gagar_env.episode import EpisodeStatus, Outcome
from gagar_env.errors import SandboxError, SandboxUnavailableError, TaskError, UnknownTaskError
from gagar_env.registration import REPO_EDIT_ID, register_envs
from gagar_env.sandbox import open_sandbox, register_sandbox
from gagar_env.tasks.registry import register_task

TASK = "add(2, 3) gives -1, it should give 5."
INFO_TYPES = {
    "task_id": str,
    "group_id": str,
    "turn": int,
    "exit_code": int,
    "timed_out": bool,
    "status": str,
    "valid": bool,
    "passed": bool,
}


def check_info(info):
    assert set(info) == {*INFO_TYPES, EPISODE_KEY}
    assert {key: type(info[key]) for key in INFO_TYPES} == INFO_TYPES
    assert (info["status"] == "running") == (info[EPISODE_KEY] is None)


@pytest.fixture
def registered(tiny_task):
    register_envs()
    register_task(tiny_task)
    return tiny_task.id


def test_a_right_fix_earns_the_reward(sandbox_kind, env, fix):
    observation, info = env.reset(seed=3, options={"group_id": "g1", "policy": "me"})
    check_info(info)
    assert "add(2, 3) gives -1" in observation
    assert "submit" in observation
    observation, reward, terminated, truncated, info = env.step(f"{fix}\ncat calc.py")
    check_info(info)
    assert (reward, terminated, truncated, info["exit_code"], info["valid"]) == (0.0, False, False, 0, True)
    assert observation.endswith("return 2 * a\n[exit code 0]")
    _, reward, terminated, truncated, info = env.step("submit")
    check_info(info)
    assert (reward, terminated, truncated, info["passed"], info["turn"]) == (1.0, True, False, True, 2)
    episode = info[EPISODE_KEY]
    assert (episode.status, episode.group_id, episode.seed, episode.policy) == ("submitted", "g1", 3, "me")
    assert b"+    return a + b" in episode.patch
    assert [turn.exit_code for turn in episode.turns] == [0, None]
    assert episode.report.outcome is Outcome.PASSED
    assert episode.timings.verify_s > 0 < episode.timings.reset_s


def test_a_wrong_fix_earns_nothing_but_counts(env):
    env.reset()
    _, reward, terminated, _, info = env.step("submit")
    assert (reward, terminated, info["valid"], info["passed"]) == (0.0, True, True, False)


def test_nothing_of_the_secrets_is_shown(env, fix):
    observation, _ = env.reset()
    texts = [observation, *(env.step(action)[0] for action in (f"{fix}; grep -r test_add . ; git log -p", "submit"))]
    assert "test_add" not in "".join(texts).replace("grep -r test_add .", "")


def test_gym_1_check_env_passes_with_real_output(sandbox_kind, registered, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(REPO_EDIT_ID, task=registered, sandbox=kind)
        check_env(env.unwrapped)
        env.close()


def test_gym_1_the_action_space_takes_any_action_and_the_observation_fits(env, fix):
    env.reset()
    for action in ("", "\n", "\t\x00", "é😀", "a" * 100_000, "\udcff\ud800", fix):
        assert action in env.action_space
        assert env.step(action)[0] in env.observation_space


def test_the_spec_goes_through_json(registered, kind):
    spec = gym.make(REPO_EDIT_ID, task=registered, sandbox=kind, turns=7).spec
    again = gym.envs.registration.EnvSpec.from_json(spec.to_json())
    env = gym.make(again)
    assert env.unwrapped.task.id == registered
    assert json.loads(spec.to_json())["kwargs"]["turns"] == 7
    env.close()


def test_statistics_of_gymnasium_fit_beside_ours(registered, kind):
    env = RecordEpisodeStatistics(gym.make(REPO_EDIT_ID, task=registered, sandbox=kind))
    env.reset()
    *_, info = env.step("submit")
    assert (info["episode"]["l"], info[EPISODE_KEY].task_id) == (1, registered)
    env.close()


def test_registering_twice_is_fine(registered):
    register_envs()
    assert REPO_EDIT_ID in gym.registry


def test_step_before_reset_says_so(env):
    with pytest.raises(ResetNeeded, match="reset"):
        env.step("ls")


def test_step_after_the_end_changes_nothing(env, fix):
    env.reset()
    env.step(fix)
    first = env.step("submit")
    again = env.step("rm -rf *")
    assert (again[0], again[1], again[2], again[3]) == (first[0], 0.0, True, False)
    assert again[4] == first[4]
    assert again[4] is not first[4]


def test_an_env_can_be_used_again(env, fix):
    env.reset()
    env.step(fix)
    env.step("submit")
    env.reset()
    observation, *_ = env.step("git status --porcelain; git log --oneline | wc -l")
    assert observation == "1\n[exit code 0]"


@pytest.mark.parametrize(("verify", "reward"), [(True, 1.0), (False, 0.0)])
def test_gym_2_the_turn_limit_truncates_and_grades_by_a_switch(make_env, fix, verify, reward):
    env = make_env(turns=2, verify_on_truncation=verify)
    env.reset()
    env.step(fix)
    observation, got, terminated, truncated, info = env.step("true")
    assert (got, terminated, truncated, info["status"]) == (reward, False, True, "turn_limit")
    assert "2 answers are used" in observation
    assert (info["valid"], info["passed"]) == (verify, verify)
    assert b"a + b" in info[EPISODE_KEY].patch


def test_gym_2_the_time_limit_holds_while_a_command_runs(sandbox_kind, make_env, fix):
    env = make_env(episode_s=2.0, command_s=60)
    env.reset()
    started = time.monotonic()
    observation, reward, terminated, truncated, info = env.step(f"{fix}; echo before; sleep 100")
    assert time.monotonic() - started < 30
    assert (reward, terminated, truncated) == (1.0, False, True)
    assert (info["status"], info["timed_out"], info["exit_code"]) == ("time_limit", True, 124)
    assert observation.startswith("before\n[exit code 124; killed at its limit of ")
    assert "2 seconds are used" in observation


def test_gym_2_the_time_limit_counts_the_time_to_think(make_env, fix):
    env = make_env(episode_s=0.5)
    env.reset()
    time.sleep(0.6)
    observation, reward, _, truncated, info = env.step(fix)
    assert (reward, truncated, info["status"]) == (0.0, True, "time_limit")
    assert "was not run" in observation
    assert info[EPISODE_KEY].patch == b""


def test_a_command_limit_is_an_observation(make_env):
    env = make_env(command_s=1.5)
    env.reset()
    observation, _, _, truncated, info = env.step("echo a; sleep 100")
    assert (info["timed_out"], truncated) == (True, False)
    assert observation == "a\n[exit code 124; killed at its limit of 1.5 seconds]"
    assert env.step("echo on")[0] == "on\n[exit code 0]"


def test_exec_2_a_background_job_does_not_hold_the_step(sandbox_kind, env):
    env.reset()
    started = time.monotonic()
    number = f"9{uuid.uuid4().int % 10**9:09}"  # without isolation those of other workers' tests are seen as well
    observation, *_, info = env.step(f"sleep {number} & echo hi")
    assert time.monotonic() - started < 60
    assert (observation, info["timed_out"]) == ("hi\n[exit code 0]", False)
    assert env.step(f"pgrep -c -f '[s]leep {number}'")[0].startswith("0\n")


@pytest.mark.parametrize("command", ["cat", "python3", "read x", "git commit -a", "git rebase -i HEAD", "less calc.py"])
def test_exec_3_commands_that_wait_for_a_keyboard_end(sandbox_kind, make_env, command):
    env = make_env(command_s=20)
    env.reset()
    *_, info = env.step(command)
    assert not info["timed_out"]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (r"printf '\377\376'", "\ufffd\ufffd"),
        (r"printf 'a\000b'", r"a\x00b"),
        (r"printf '\033[1mx\r\n\tz'", "\\x1b[1mx\\r\n\tz"),
        (r"printf '\302\205'", r"\x85"),
        ("printf 'é😀'", "é😀"),
        ("head -c 1000 /dev/zero", r"\x00" * 1000),
    ],
)
def test_enc_1_bytes_are_shown(sandbox_kind, env, command, shown):
    env.reset()
    observation, *_ = env.step(command)
    assert observation == f"{shown}\n[exit code 0]"
    assert observation in env.observation_space


def test_enc_1_the_grade_does_not_depend_on_odd_bytes(env, fix):
    env.reset()
    env.step(rf"{fix}; printf '\377\000' > junk.bin; printf '# \377\n' >> README.md")
    *_, info = env.step("submit")
    assert info["passed"]


def test_enc_2_output_is_cut_in_the_middle(sandbox_kind, make_env):
    env = make_env(output_bytes=1000)
    env.reset()
    observation, *_ = env.step("echo first; yes ä | head -c 300000000; echo last")
    assert observation.startswith("first\n")
    assert "last\n" in observation
    assert "bytes of the output left out" in observation.splitlines()[-1]
    assert len(observation) < 2000


def test_enc_2_a_patch_over_the_limit_is_refused(make_env, tiny_task, fix):
    limits = tiny_task.limits.model_copy(update={"patch_bytes": 2000})
    env = make_env(task=tiny_task.model_copy(update={"limits": limits}))
    env.reset()
    env.step(f"{fix}; head -c 200000 /dev/urandom | base64 > big.txt")
    _, reward, terminated, _, info = env.step("submit")
    episode = info[EPISODE_KEY]
    assert (reward, terminated, info["valid"], info["passed"]) == (0.0, True, True, False)
    assert "patch refused" in episode.report.reason
    assert episode.patch == b""


@pytest.mark.parametrize("text", ["echo \udcff\ud800", "echo a\0b", "# " + "x" * 100_000_000, "submit" * 1_000_000])
def test_any_action_survives(env, text):
    env.reset()
    observation, _, terminated, truncated, info = env.step(text)
    assert (terminated, truncated) == (False, False)
    observation.encode()
    json.loads(env.cut("done").model_dump_json())
    check_info(info)


@pytest.mark.parametrize("action", [None, 3, b"ls"])
def test_what_is_no_text_is_explained(env, action):
    env.reset()
    assert "An action is a text, not" in env.step(action)[0]


def test_tools_do_the_same_work(make_env):
    env = make_env(action_format="tools")
    observation, _ = env.reset()
    assert '{"tool": "submit"}' in observation
    assert "no tool" in env.step('{"tool": "x"}')[0]
    edit = {"tool": "edit", "path": "calc.py", "old": "a - b", "new": "a + b"}
    assert env.step(json.dumps(edit))[0] == "edited calc.py at line 2\n[exit code 0]"
    assert env.step('{"tool": "submit"}')[1] == 1.0


class Faulty:
    """A sandbox of the given kind that breaks at one call."""

    def __init__(self, spec, kind, at):
        if at == "open":
            raise SandboxError("broken on purpose")
        self._inner, self._at = open_sandbox(kind, spec), at

    def __getattr__(self, name):
        if name == self._at:
            raise SandboxError("broken on purpose")
        return getattr(self._inner, name)


@pytest.mark.parametrize("at", ["open", "run", "capture"])
def test_test_4_a_broken_sandbox_is_no_failure_of_the_agent(make_env, kind, at, caplog):
    register_sandbox("faulty", lambda spec: Faulty(spec, kind, at))
    env = make_env(sandbox="faulty")
    observation, info = env.reset()
    check_info(info)
    for action in ("true", "submit"):
        observation, reward, terminated, truncated, info = env.step(action)
        if truncated:
            break
    check_info(info)
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["status"], info["valid"], info["passed"]) == ("error", False, False)
    assert "broken on purpose" in observation
    assert "broken on purpose" in info[EPISODE_KEY].error
    assert info[EPISODE_KEY].reward is None


def test_test_4_a_sandbox_that_does_not_close_costs_nothing(make_env, kind, fix, caplog):
    boxes = []
    register_sandbox("faulty", lambda spec: boxes.append(Faulty(spec, kind, "close")) or boxes[-1])
    env = make_env(sandbox="faulty", verify=False)
    env.reset()
    env.step(fix)
    *_, info = env.step("submit")
    assert info["status"] == "submitted"
    boxes[0]._inner.close()


def test_an_unknown_kind_of_sandbox_raises(make_env):
    with pytest.raises(SandboxUnavailableError):
        make_env(sandbox="nonesuch").reset()


def test_a_broken_task_raises(make_env, tiny_task, tmp_path):
    repo = tiny_task.repo.model_copy(update={"path": tmp_path / "nowhere"})
    with pytest.raises(TaskError):
        make_env(task=tiny_task.model_copy(update={"id": "broken", "repo": repo})).reset()
    with pytest.raises(UnknownTaskError):
        RepoEditEnv("no-such-task")


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"turns": 0}, "turns=0"),
        ({"command_s": -1}, "command_s=-1"),
        ({"action_format": "xml"}, "xml"),
        ({"render_mode": "human"}, "ansi"),
    ],
)
def test_bad_arguments_are_one_line(tiny_task, kwargs, says):
    with pytest.raises(ValueError, match=says) as caught:
        RepoEditEnv(tiny_task, **kwargs)
    assert "\n" not in str(caught.value)


def test_an_unknown_reset_option_is_refused(env):
    with pytest.raises(ValueError, match="unknown reset option taks"):
        env.reset(options={"taks": "x"})


def test_reset_chooses_another_task(env, tiny_task):
    other = tiny_task.model_copy(update={"id": "other", "problem_statement": "Something else."})
    observation, info = env.reset(options={"task": other})
    assert (info["task_id"], env.task.id) == ("other", "other")
    assert observation.startswith("Something else.")
    assert env.reset()[1]["task_id"] == tiny_task.id


def test_group_ids_are_unique_unless_given(env):
    ids = {env.reset()[1]["group_id"] for _ in range(3)}
    assert len(ids) == 3


def test_render_shows_the_transcript(make_env, fix):
    env = make_env(render_mode="ansi")
    assert env.render() == ""
    env.reset()
    env.step(fix)
    env.step("submit")
    text = env.render()
    assert [part in text for part in ("gives -1", fix, "[exit code 0]", "submitted, tests passed")] == [True] * 4


def test_without_verification_there_is_no_reward(make_env, fix):
    env = make_env(verify=False)
    env.reset()
    env.step(fix)
    _, reward, terminated, _, info = env.step("submit")
    assert (reward, terminated, info["valid"]) == (0.0, True, False)
    assert info[EPISODE_KEY].report is None


def test_an_episode_can_be_cut_while_a_command_runs(sandbox_kind, env):
    env.reset()
    steps = []
    endless = f"sleep 9{uuid.uuid4().int % 10**9:09}"  # no other worker's
    thread = threading.Thread(target=lambda: steps.append(env.step(endless)))
    thread.start()
    wait_until(lambda: running(endless.replace(" ", "\0")))
    episode = env.cut("deadline")
    thread.join(60)
    assert not thread.is_alive()
    assert (episode.status, episode.error, episode.valid) == (EpisodeStatus.CUT, "deadline", False)
    _, reward, terminated, truncated, info = steps[0]
    assert (reward, terminated, truncated, info["status"]) == (0.0, False, True, "cut")
    assert env.cut("again") is episode


def test_close_may_come_twice_and_at_any_time(env):
    env.close()
    env.reset()
    env.close()
    env.close()
    assert env.step("ls")[3] is True


def test_dist_2_episodes_and_infos_pickle(env):
    env.reset()
    *_, info = env.step("submit")
    assert pickle.loads(pickle.dumps(info)) == info


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_vec_1_sync_and_async_show_the_same(sandbox_kind, registered, kind, fix, mode):
    kwargs = {"shared_memory": False} if mode == "async" else {}
    envs = gym.make_vec(REPO_EDIT_ID, 2, vectorization_mode=mode, vector_kwargs=kwargs, task=registered, sandbox=kind)
    observations, infos = envs.reset(seed=1, options={"group_id": "g"})
    assert [text.split("\n")[0] for text in observations] == [TASK, TASK]
    assert list(infos["group_id"]) == ["g", "g"]
    observations, *_, infos = envs.step((f"{fix}; cat calc.py", "echo é; exit 3"))
    assert observations[0].endswith("return 2 * a\n[exit code 0]")
    assert observations[1] == "é\n[exit code 3]"
    assert list(infos["exit_code"]) == [0, 3]
    assert list(infos[EPISODE_KEY]) == [None, None]
    observations, rewards, terminations, _, infos = envs.step(("submit", "true"))
    assert (list(rewards), list(terminations)) == ([1.0, 0.0], [True, False])
    assert (infos[EPISODE_KEY][0].passed, infos[EPISODE_KEY][1]) == (True, None)
    assert (infos["status"][0], list(infos["passed"])) == ("submitted", [True, False])
    envs.close()


def test_vec_1_default_shared_memory_is_refused_with_the_cure(registered):
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.make_vec(REPO_EDIT_ID, 2, vectorization_mode="async", task=registered)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_vec_2_the_record_is_in_the_right_place_under_autoreset(registered, kind, fix, mode):
    envs = gym.make_vec(
        REPO_EDIT_ID,
        2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        task=registered,
        sandbox=kind,
    )
    envs.reset()
    envs.step((fix, "true"))
    observations, rewards, _, _, infos = envs.step(("submit", "true"))
    ended = infos if mode == "NextStep" else infos["final_info"]
    assert rewards[0] == 1.0
    assert ended[EPISODE_KEY][0].passed
    assert ended[EPISODE_KEY][1] is None
    assert observations[0].startswith("Submitted" if mode == "NextStep" else "add(2, 3)")
    envs.close()
