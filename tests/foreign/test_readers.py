"""Readers: real files of mini-swe-agent, the shapes of SWE-agent and ATIF, and anything that JSON can hold."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.foreign import TrajectoryError, find_trajectories, read_trajectory
from gagar_env.foreign.atif import read_atif
from gagar_env.foreign.mini import read_mini
from gagar_env.foreign.sweagent import read_swe_agent
from gagar_env.foreign.trajectory import patch_of
from gagar_env.store.atif import to_atif

SAMPLES = Path(__file__).parent / "samples/mini"
DIFF = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-x\n+y\n"


def sample(name):
    return SAMPLES / name / "tiny-add/tiny-add.traj.json"


@pytest.fixture
def file(tmp_path):
    def file(name, data):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(data if isinstance(data, str) else json.dumps(data))
        return path

    return file


@pytest.mark.parametrize("name", ["text", "calls", "responses"])
def test_mini_swe_agent_in_each_of_its_forms(name):
    found = read_trajectory(sample(name))
    assert found.status is EpisodeStatus.SUBMITTED
    assert found.names[0] == "tiny-add"
    assert found.first_observation == "Please fix: add(2, 3) gives -1, it should give 5."
    commands = ["cat calc.py", "sed -i 's/a - b/a + b/' calc.py"]
    commands.append("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff")
    assert [turn.action for turn in found.turns] == [
        f"Step {n}.\n\n```bash\n{command}\n```" for n, command in enumerate(commands, 1)
    ]
    assert "def add(a, b):" in found.turns[0].observation
    assert [turn.exit_code for turn in found.turns] == [0, 0, None]
    assert all(turn.seconds >= 0 for turn in found.turns)
    assert b"+    return a + b" in found.patch
    assert found.policy.startswith("mini-swe-agent:deterministic")


def test_mini_swe_agent_at_its_limit_has_work_that_is_empty():
    found = read_trajectory(sample("limit"))
    assert (found.status, found.error, found.patch) == (EpisodeStatus.TURN_LIMIT, "LimitsExceeded", b"")
    assert len(found.turns) == 2


@pytest.mark.parametrize(
    ("status", "submission", "said"),
    [
        ("IndexError", "", "it ended with IndexError: there is no work to judge"),
        ("UserInterruption", "", "it ended with UserInterruption: there is no work to judge"),
        ("", "", "it has not ended: there is no work to judge"),
        ("Submitted", "I am done.", "there is no patch in it, and no a.patch beside it"),
    ],
)
def test_mini_swe_agent_without_work(file, status, submission, said):
    data = json.loads(sample("text").read_bytes())
    data["info"] |= {"exit_status": status, "submission": submission}
    path = file("a.traj.json", data)
    with pytest.raises(TrajectoryError) as caught:
        read_trajectory(path)
    assert str(caught.value) == f"{path}: {said}"


def test_a_limit_of_mini_swe_agent_whose_message_is_in_the_place_of_the_patch_is_work_that_is_empty(file):
    data = json.loads(sample("limit").read_text())
    for said in (None, "too many format errors"):
        data["info"] |= {"exit_status": "RepeatedFormatError", "submission": said}
        found = read_trajectory(file("a/b.traj.json", data))
        assert (found.status, found.patch) == (EpisodeStatus.POLICY_LIMIT, b"")


def test_a_patch_beside_the_file(file):
    data = json.loads(sample("text").read_bytes())
    data["info"]["submission"] = "I am done."
    path = file("a.traj.json", data)
    path.with_name("a.pred").write_text(json.dumps({"model_patch": DIFF}))
    assert read_trajectory(path).patch == DIFF.encode()
    path.with_name("a.patch").write_bytes(b"--- \xff")
    assert read_trajectory(path).patch == b"--- \xff"


def swe_agent(**info):
    step = {"action": "ls -F\n", "observation": "a.py\n", "response": "I look.", "thought": "I look.", "state": "{}"}
    said = [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": "a demonstration", "is_demo": True},
        {"role": "assistant", "content": "of another task", "is_demo": True},
        {"role": "user", "content": [{"type": "text", "text": "Fix it."}]},
        {"role": "assistant", "content": "I look.", "action": "ls -F\n"},
    ]
    return {
        "trajectory": [step | {"execution_time": 0.5}, {"action": "", "response": "", "observation": "Exited"}],
        "history": said,
        "info": {"exit_status": "submitted", "submission": DIFF, **info},
        "environment": "swe_main",
        "replay_config": json.dumps({"problem_statement": {"id": "some__task-1"}, "agent": {"model": {"name": "m"}}}),
    }


def test_swe_agent(file):
    found = read_trajectory(file("elsewhere/one.traj", swe_agent()))
    assert found.names == ("some__task-1", "one", "elsewhere")
    assert found.first_observation == "Fix it."
    (turn,) = found.turns
    assert (turn.action, turn.observation, turn.seconds) == ("I look.\n\n```bash\nls -F\n```", "a.py\n", 0.5)
    assert (found.patch, found.status, found.policy) == (DIFF.encode(), EpisodeStatus.SUBMITTED, "swe-agent:m")


@pytest.mark.parametrize(
    ("ended", "submission", "status", "patch"),
    [
        ("submitted (exit_cost)", DIFF, EpisodeStatus.TURN_LIMIT, DIFF.encode()),
        ("submitted (exit_some_new_limit)", DIFF, EpisodeStatus.POLICY_LIMIT, DIFF.encode()),
        ("exit_cost", None, EpisodeStatus.TURN_LIMIT, b""),
        ("exit_context", None, EpisodeStatus.POLICY_LIMIT, b""),
        ("exit_total_execution_time", None, EpisodeStatus.TIME_LIMIT, b""),
        ("submitted", "", EpisodeStatus.SUBMITTED, b""),
    ],
)
def test_how_swe_agent_ended(ended, submission, status, patch):
    found = read_swe_agent(swe_agent(exit_status=ended, submission=submission))
    assert (found.status, found.patch) == (status, patch)


@pytest.mark.parametrize("ended", ["exit_error", "exit_environment_error", "exit_api", "early_exit", None])
def test_swe_agent_broke(ended):
    with pytest.raises(TrajectoryError, match="no work to judge"):
        read_swe_agent(swe_agent(exit_status=ended, submission=None))
    with pytest.raises(TrajectoryError, match="no work to judge"):  # it submits what is there when it breaks
        read_swe_agent(swe_agent(exit_status=ended and f"submitted ({ended})", submission=DIFF))


def atif(**more):
    call = {"tool_call_id": "c1", "function_name": "bash_command", "arguments": {"keystrokes": "ls\n", "duration": 1}}
    result = {"source_call_id": "c1", "content": [{"type": "text", "text": "a.py"}], "extra": {"exit_code": 3}}
    other = {"tool_call_id": "c2", "function_name": "read", "arguments": {"path": "a.py"}}
    steps = [
        {"step_id": 1, "source": "system", "message": "Be good."},
        {"step_id": 2, "source": "user", "message": "Fix it."},
        {"step_id": 3, "source": "agent", "message": "copied", "is_copied_context": True},
        {
            "step_id": 4,
            "source": "agent",
            "message": "I look.",
            "tool_calls": [call, other],
            "observation": {"results": [result, {"source_call_id": "c2", "content": "x"}]},
            "metrics": {"prompt_tokens": 12, "completion_tokens": 4},
        },
        {"step_id": 5, "source": "user", "message": "Go on."},
        {"step_id": 6, "source": "agent", "message": "Done."},
    ]
    agent = {"name": "terminus-2", "version": "2.0", "model_name": "m"}
    return {"schema_version": "ATIF-v1.8", "session_id": "s", "agent": agent, "steps": steps, **more}


def test_atif_by_its_own_models_and_by_our_reader(file):
    package = pytest.importorskip("atif")
    whole = atif(extra={"instance_id": "some__task-1", "patch": DIFF})
    data = package.Trajectory.model_validate(whole).to_json_dict()
    found = read_trajectory(file("trial/agent/trajectory.json", data))
    check_atif(found)


def test_atif(file):
    found = read_trajectory(file("trial/agent/trajectory.json", atif(extra={"task_id": "some__task-1", "patch": DIFF})))
    check_atif(found)


def check_atif(found):
    assert found.names == ("some__task-1", "trajectory", "trial")
    assert found.first_observation == "Fix it."
    first, last = found.turns
    assert first.action == 'I look.\n\n```bash\nls\n\n```\n\n{"tool": "read", "path": "a.py"}'
    assert (first.observation, first.exit_code) == ("a.py\nx\nGo on.", 3)
    assert (first.prompt_tokens, first.completion_tokens) == (12, 4)
    assert (last.action, last.observation) == ("Done.", "")
    assert (found.patch, found.policy, found.status) == (DIFF.encode(), "terminus-2:m", EpisodeStatus.SUBMITTED)


def test_atif_of_this_package_is_the_whole_record(file):
    turns = (Turn(action="ls", observation="a.py", exit_code=2, seconds=0.5, completion_tokens=3),)
    report = TestReport(outcome=Outcome.FAILED, reason="no")
    common = {"id": "e/1", "group_id": "g", "task_id": "our/task", "turns": turns, "policy": "p"}
    episode = Episode(**common, status="time_limit", patch=b"--- \xff", report=report, first_observation="Fix it.")
    found = read_trajectory(file("one.json", to_atif(episode).decode()))
    assert (found.patch, found.turns, found.policy) == (episode.patch, turns, "p")
    assert (found.status, found.names[0]) == (EpisodeStatus.TIME_LIMIT, "our/task")
    for status in ("error", "cut"):
        broken = Episode(**common, status=status, patch=b"--- a", error="no disk")
        with pytest.raises(TrajectoryError, match=f"it ended with {status}: there is no work to judge"):
            read_trajectory(file("two.json", to_atif(broken).decode()))


def test_atif_of_a_trial_of_harbor_is_named_by_its_result(file):
    path = file("job/task__x1/agent/trajectory.json", atif())
    file("job/task__x1/result.json", {"task_name": "org/the-task"})
    path.with_name("trajectory.diff").write_text(DIFF)
    assert read_trajectory(path).names == ("trajectory", "org/the-task", "the-task", "task__x1")


def test_what_is_found_in_a_folder(file, tmp_path):
    wanted = [file("b/b.traj", {}), file("a/a.traj.json", {}), file("c/t.json", atif())]
    file("preds.json", {"a": {"model_patch": DIFF}})
    file("notes.txt", "x")
    (tmp_path / "link.traj").symlink_to(wanted[0])
    assert list(find_trajectories([tmp_path, wanted[0]])) == sorted(wanted)
    with pytest.raises(TrajectoryError, match="nowhere: there is no such file or folder"):
        list(find_trajectories([tmp_path / "nowhere"]))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"a": 1}', "[" * 5000])
def test_a_file_of_no_known_kind_is_one_line(file, text):
    path = file("a.traj", text)
    with pytest.raises(TrajectoryError) as caught:
        read_trajectory(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def damaged(whole):
    """A real file with one value, at any depth, replaced by another one."""

    @st.composite
    def draw_one(draw):
        data = json.loads(json.dumps(whole))
        places = []

        def walk(value):
            for key in list(value) if isinstance(value, dict) else range(len(value)):
                places.append((value, key))
                if isinstance(value[key], (dict, list)):
                    walk(value[key])

        walk(data)
        inside, key = draw(st.sampled_from(places))
        inside[key] = draw(anything)
        return data

    return draw_one()


@pytest.mark.parametrize(
    ("read", "whole"),
    [
        (read_mini, json.loads(sample("calls").read_bytes())),
        (read_mini, json.loads(sample("responses").read_bytes())),
        (read_swe_agent, swe_agent()),
        (read_atif, atif(extra={"patch": DIFF})),
    ],
    ids=["mini-calls", "mini-responses", "swe-agent", "atif"],
)
def test_disk_1_a_damaged_file_is_read_or_refused_and_what_is_read_can_be_stored(read, whole):
    @settings(max_examples=30, deadline=None)
    @given(damaged(whole))
    def check(data):
        try:
            found = read(data)
        except (TrajectoryError, ValueError, TypeError):  # `read_trajectory` makes one line of them
            return
        for turn in found.turns:
            turn.model_dump_json()
        "".join((found.first_observation, found.error, found.policy, *found.names)).encode()

    check()


@settings(max_examples=30, deadline=None)
@given(st.text(st.characters(), max_size=30))
def test_disk_1_a_patch_is_bytes_whatever_its_text(text):
    assert patch_of(f"--- a\n{text}").endswith(b"\n")
    assert patch_of("--- a\n\udcff").endswith(b"\xff\n")
