"""Modes exit_code and reward_file, and tests that stand outside of the work tree."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gagar_env.changes import FileState
from gagar_env.episode import Outcome
from gagar_env.errors import SandboxError
from gagar_env.reward_file import NoRewardError, read_reward
from gagar_env.sandbox import open_sandbox, register_sandbox, why_unavailable

CHECK = "python -c 'import calc; assert calc.add(1, 2) == 3'"
HARBOR = """#!/bin/bash
python -m pytest -o addopts= -p no:cacheprovider /tests/test_outputs.py
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""
WROTE = "#!/bin/sh\nif python -c 'import calc; assert calc.add(1, 2) == 3'; then {good}; else {bad}; fi\n"


def changes(**files):
    return {path.replace("__", "/") + ".py": FileState(text.encode()) for path, text in files.items()}


def lists(**more):
    return {"files": (), "fail_to_pass": (), "pass_to_pass": (), "support": (), **more}


@pytest.fixture(scope="module")
def verifier(arena):
    if reason := why_unavailable("bwrap"):
        pytest.skip(reason)
    return arena.verifier("bwrap")


@pytest.fixture(scope="module")
def exit_task(arena):
    return arena.task(**lists(mode="exit_code", script=f"set -e\n{CHECK}\n"))


@pytest.fixture(scope="module")
def reward_task(arena):
    def reward_task(good="", bad="", **more):
        script = WROTE.format(good=good or ":", bad=bad or ":")
        return arena.task(**lists(mode="reward_file", script=script, **more))

    return reward_task


def put(text, name="reward.txt"):
    return f"printf '%s' '{text}' > /logs/verifier/{name}"


def both(json, text):
    return f"{put(text)}; {put(json, 'reward.json')}"


def test_exit_code_0_passes(arena, exit_task, verifier):
    report = verifier.verify(exit_task, arena.fix)
    assert (report.outcome, report.reason, report.evidence, report.exit_code) == ("passed", "", "exit_code", 0)
    assert report.tests == {}
    report = verifier.verify(exit_task, {})
    assert (report.outcome, report.reason) == (Outcome.FAILED, "the script ended with exit code 1")


@pytest.mark.parametrize("source", ["import os\nos._exit(9)\n", "import os, signal\nos.kill(-1, signal.SIGKILL)\n"])
@pytest.mark.slow
def test_test_2_a_script_that_was_ended_did_not_pass(exit_task, verifier, source):
    assert verifier.verify(exit_task, changes(calc=source)).outcome is Outcome.FAILED


@pytest.mark.slow
def test_a_process_that_leaves_with_0_passes_and_is_flagged(exit_task, verifier):
    """What an exit code cannot prevent. It is said in docs/rewards.md."""
    report = verifier.verify(exit_task, changes(calc="import os\nos._exit(0)\n"))
    assert (report.outcome, {flag.kind for flag in report.flags}) == (Outcome.PASSED, {"exits_process"})


@pytest.mark.slow
def test_test_4_hang_and_start_of_a_script_that_exits(arena, verifier):
    hanging = arena.task(**lists(mode="exit_code", script="sleep 600\n", timeout_s=2))
    report = verifier.verify(hanging, {})
    assert (report.outcome, report.timed_out, report.exit_code) == (Outcome.FAILED, True, None)
    absent = arena.task(**lists(mode="exit_code", script="#!/nowhere/sh\n"))
    report = verifier.verify(absent, arena.fix)
    assert (report.outcome, report.valid) == (Outcome.ERROR, False)
    # what the script itself does not find is the script's own end
    missing = arena.task(**lists(mode="exit_code", script="nonesuch\n"))
    assert verifier.verify(missing, {}).reason == "the script ended with exit code 127"


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (put("1"), put("0")),
        (put('{"reward": 1.0, "speed": 3}', "reward.json"), put('{"reward": 0, "speed": 3}', "reward.json")),
        (put('{"score": 1}', "reward.json"), put('{"score": 0.5}', "reward.json")),
        (f"{put('0')}; {put('{}', 'x')}; {put('1')}", put("0.99\n")),
        # both: the object wins
        (both('{"reward": 1}', "0"), both('{"reward": 0}', "1")),
    ],
)
@pytest.mark.slow
def test_the_reward_decides(arena, reward_task, verifier, good, bad):
    task = reward_task(good, bad)
    report = verifier.verify(task, arena.fix)
    assert (report.outcome, report.reason, report.evidence, report.score) == ("passed", "", "reward_file", 1.0)
    report = verifier.verify(task, {})
    assert (report.outcome, report.score < 1) == (Outcome.FAILED, True)
    assert report.reason == f"the reward is {report.score:g}, 1 passes"


def test_what_passes_is_the_tasks_to_say(arena, reward_task, verifier):
    assert verifier.verify(reward_task(put("0.5"), put("0.4"), pass_at=0.5), arena.fix).passed


@pytest.mark.parametrize(
    "wrong",
    [
        ":",
        put("nan"),
        put("inf"),
        put("one"),
        put('{"reward": NaN}', "reward.json"),
        put('{"a": 1, "b": 1}', "reward.json"),
        "ln -s /x /logs/verifier/reward.txt",
        both("", "1"),
    ],
)
@pytest.mark.slow
def test_test_4_a_script_without_a_verdict_is_no_result_unless_the_work_is_to_blame(
    arena, reward_task, verifier, wrong
):
    broken = verifier.verify(reward_task(wrong, wrong), arena.fix)
    assert (broken.outcome, broken.attempts) == (Outcome.ERROR, 2)
    assert "gives no reward for any tree" in broken.reason
    # it gives one for the reference: leaving it out is no way out of a loss
    lost = verifier.verify(reward_task(put("1"), wrong), {})
    assert (lost.outcome, lost.score, lost.attempts) == (Outcome.FAILED, None, 1)
    assert lost.reason


@pytest.mark.slow
def test_hack_3_a_reward_that_the_work_writes_itself(arena, reward_task, verifier):
    script_ended = "import os\nopen('/logs/verifier/reward.json', 'w').write('{\"reward\": 1}')\nos._exit(1)\n"
    report = verifier.verify(reward_task(put("1"), put("0")), changes(calc=script_ended))
    assert report.outcome is Outcome.FAILED
    assert report.reason == "the reward is in reward.json and reward.txt, and the script itself writes reward.txt"
    # in the tree, or where no work tree is
    beside = {"logs/verifier/reward.json": FileState(b'{"reward": 1}'), "reward.txt": FileState(b"1")}
    assert verifier.verify(reward_task(put("1"), put("0")), beside).reason == "the reward is 0, 1 passes"


@pytest.mark.slow
def test_hack_9_a_process_that_writes_the_reward_again_is_flagged(reward_task, verifier):
    """What the folder cannot prevent. It is said in docs/rewards.md."""
    source = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    end = time.time() + 20\n"
        "    while time.time() < end:\n        open('/logs/verifier/reward.txt', 'w').write('1')\n    os._exit(0)\n"
    )
    report = verifier.verify(reward_task(put("1"), f"{put('0')}; sleep 0.2"), changes(calc=source))
    assert "reads_test_environment" in {flag.kind for flag in report.flags}


class Faulty:
    """A real sandbox that breaks at one method."""

    def __init__(self, inner, at):
        self._inner, self._at = inner, at

    def __getattr__(self, name):
        if name == self._at:
            raise SandboxError("it broke")
        return getattr(self._inner, name)


@pytest.mark.parametrize("at", ["write", "write_scratch", "run", "read_scratch"])
@pytest.mark.slow
def test_test_4_a_sandbox_that_breaks_is_no_result(arena, reward_task, at, verifier):
    register_sandbox(f"script-faulty-{at}", lambda spec: Faulty(open_sandbox("bwrap", spec), at))
    report = arena.verifier(f"script-faulty-{at}", attempts=2).verify(reward_task(put("1"), put("0")), arena.fix)
    assert (report.outcome, report.reason, report.attempts) == (Outcome.ERROR, "it broke", 2)


@pytest.fixture(scope="module")
def harbor(arena, tmp_path_factory):
    folder = tmp_path_factory.mktemp("placed")
    (folder / "data").mkdir()
    (folder / "test_outputs.py").write_text(
        "import subprocess\nimport sys\n\nsys.path.insert(0, '/testbed')\n\n\ndef test_add():\n    import calc\n\n"
        "    assert calc.add(1, 2) == 3\n    assert subprocess.check_output(['/tests/data/run']) == b'x' * 1000\n"
    )
    (folder / "data/run").write_text("#!/bin/sh\nprintf '%s' " + "x" * 1000 + "\n")
    (folder / "data/run").chmod(0o755)
    (folder / "data/link").symlink_to("run")
    return arena.task(**lists(mode="reward_file", script=HARBOR, folder=folder, place="/tests", patch=b""))


@pytest.mark.slow
def test_official_tests_outside_of_the_work_tree(arena, harbor, verifier):
    report = verifier.verify(harbor, arena.fix)
    assert (report.outcome, report.reason, report.score) == (Outcome.PASSED, "", 1.0)
    assert verifier.verify(harbor, {}).reason == "the reward is 0, 1 passes"
    evil = {
        "tests/test_outputs.py": FileState(b"def test_add(): pass\n"),
        "conftest.py": FileState(b"raise SystemExit(0)\n"),
    }
    assert verifier.verify(harbor, evil).reason == "the reward is 0, 1 passes"


def test_folders_beside_the_work_tree_need_a_sandbox_of_their_own(arena, harbor):
    report = arena.verifier("process", attempts=1).verify(harbor, {})
    assert report.outcome is Outcome.ERROR
    assert "no file system of its own, and this task needs /tests: use bwrap" in report.reason


def test_a_reward_folder_in_the_work_tree_is_refused(arena, verifier):
    task = arena.task(**lists(mode="reward_file", script="true", reward_folder="/testbed/logs"))
    report = verifier.verify(task, {})
    assert (report.outcome, report.attempts) == (Outcome.ERROR, 1)
    assert "must be apart" in report.reason


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers() | st.text(max_size=20))
def test_rewards_are_finite_numbers(value):
    for name in ("reward.txt", "reward.json"):
        try:
            found = read_reward({name: str(value).encode("utf-8", "surrogatepass")})
        except NoRewardError as error:
            said = str(error)
            assert "\n" not in said
        else:
            assert math.isfinite(found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"reward": 1, "reward": 0}',
        '{"reward": 1e999}',
        '{"reward": "1"}',
        '{"a": {"b": 1}}',
        "1",
        "[" * 9999,
    ],
)
def test_objects_that_hold_no_reward(text):
    with pytest.raises(NoRewardError):
        read_reward({"reward.json": text.encode(), "reward.txt": b"1"})
