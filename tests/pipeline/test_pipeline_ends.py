"""How a run ends before its end: nothing is left, and nobody waits for what does not come back."""

import os
import signal
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import pytest
from chat_server import slow
from pipelines import FIX, LONG_S, MIXED, First, Scripted, gagar_threads, running, wait_for, wait_until

from gagar_env.agents.graders.agentic import AgenticGrader
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.errors import GagarError
from gagar_env.jobs import GroupJob

MARK = f"97{uuid.uuid4().int % 10**9:09}"  # of this process alone: other workers run these tests too
ENDLESS = f"sleep {MARK}"
PLUGINS = Path(__file__).parents[1] / "plugins"


@pytest.fixture(autouse=True)
def no_process_stays():
    yield
    wait_until(lambda: not running(MARK))


@pytest.fixture
def threads():
    """Counts threads of this test whose name begins so: those of other tests may still wait for something."""
    before = set(threading.enumerate())
    return lambda *names: sum(t.name.startswith(names) for t in set(threading.enumerate()) - before)


@pytest.mark.slow
def test_a_policy_that_never_comes_back_holds_up_nothing(make, jobs, threads):
    hold = threading.Event()
    policy = Scripted(["true"], [lambda seed: hold.wait(LONG_S) and "true"])
    try:
        with make(policy, group_size=2, groups=2, verify=False, deadline_s=10) as pipeline:
            batches = list(pipeline.run(jobs(2, size=2)))
        for batch in batches:
            assert [episode.status for episode in batch.episodes] == ["submitted", "cut"]
            assert batch.episodes[1].error == "deadline of the group"
        assert threads("gagar-member") == 2
        assert not threads("gagar-group", "gagar-grading")
    finally:
        hold.set()


def test_leaving_the_loop_ends_what_runs(make, jobs, threads):
    begun = threading.Event()
    policy = Scripted([lambda seed: "submit" if seed < 2 else (begun.set(), ENDLESS)[1]], ["submit"])
    with make(policy, group_size=2, groups=2, verify=False) as pipeline:
        for batch in pipeline.run(jobs(9, size=2)):
            assert batch.attempt == 0
            wait_for(begun)
            break
        assert not threads("gagar-group", "gagar-grading")


@pytest.mark.usefixtures("judged_at_once")
@pytest.mark.parametrize("knows_cancel", [True, False])
def test_leaving_the_loop_cancels_what_is_graded(make, jobs, threads, knows_cancel):
    asked, cancelled = threading.Event(), threading.Event()

    def judge(workspace):
        if workspace.seed:
            asked.set()
            cancelled.wait(LONG_S)

    grader = First(judge)
    if knows_cancel:
        grader.cancel = lambda workspace: cancelled.set()
    with make(Scripted(*MIXED), grader, groups=1) as pipeline:
        for _ in pipeline.run(jobs(3)):
            wait_for(asked)
            break
        assert not threads("gagar-group", "gagar-grading")
    assert cancelled.is_set() == knows_cancel
    cancelled.set()


@pytest.mark.slow
def test_leaving_the_loop_ends_the_requests_of_a_judge(make, jobs, judged_at_once, chat_server, threads):
    asked = threading.Event()
    chat_server.script = lambda request, number: (asked.set(), slow(600))[1]
    judge = AgenticGrader("m", base_url=chat_server.url, cache=False, sandbox="none")

    def given():
        yield from jobs(1)
        wait_for(asked)
        raise OSError("enough")

    with make(Scripted(*MIXED), judge) as pipeline, pytest.raises(OSError, match="enough"):
        list(pipeline.run(given()))
    wait_until(lambda: not threads("gagar"))
    assert len(chat_server.requests) == 1


@pytest.mark.slow
def test_leaving_the_loop_ends_test_runs(make, tiny_task, tmp_path):
    (tmp_path / "test_calc.py").write_text(f"import os\n\n\ndef test_add():\n    os.system({ENDLESS!r})\n")
    tests = tiny_task.tests.model_copy(update={"folder": tmp_path, "pass_to_pass": (), "timeout_s": 600.0})
    hangs = tiny_task.model_copy(update={"id": "hangs", "tests": tests})
    with make(Scripted([FIX]), group_size=1, groups=2) as pipeline:

        def given():
            yield GroupJob(0, hangs, seed=0)
            wait_until(lambda: running(MARK))
            assert pipeline.levels()["verifying"] == 1
            raise OSError("enough")

        with pytest.raises(OSError, match="enough"):
            list(pipeline.run(given()))
        wait_until(lambda: not running(MARK))
    assert not any(pipeline.levels().values())


def test_leaving_the_loop_does_not_wait_for_a_task_that_is_prepared(make, jobs, tiny_task, monkeypatch):
    quick, begun, hold, started = GroupVectorEnv.prepare, threading.Event(), threading.Event(), []
    before = set(gagar_threads())  # of other tests

    def prepare(self, task):
        if task.id == "slow":
            begun.set()
            assert hold.wait(LONG_S)
        quick(self, task)

    class Counts(Scripted):
        def start(self, **arguments):
            started.append(arguments["task"].id)
            return super().start(**arguments)

    monkeypatch.setattr(GroupVectorEnv, "prepare", prepare)

    def given():
        yield GroupJob(0, tiny_task.model_copy(update={"id": "slow"}), seed=0)
        wait_for(begun)
        yield from jobs(1)  # it is run and handed out meanwhile

    with make(Counts([]), verify=False) as pipeline:
        for batch in pipeline.run(given()):
            assert batch.task is tiny_task
            assert pipeline.levels()["preparing"] == 1
            break
        assert not hold.is_set()
    hold.set()
    wait_until(lambda: not set(gagar_threads()) - before)
    assert set(started) == {tiny_task.id}


def test_jobs_that_raise_end_the_run(make, jobs):
    def given():
        yield from jobs(2)
        raise OSError("the list is torn")

    with make(Scripted([ENDLESS]), verify=False) as pipeline, pytest.raises(OSError, match="the list is torn"):
        list(pipeline.run(given()))


def test_a_listener_that_raises_ends_the_run(make, jobs):
    def told(job, episode):
        raise OSError("the disk is full")

    policy = Scripted([], [ENDLESS])
    with make(policy, verify=False, on_episode=told) as pipeline, pytest.raises(OSError, match="the disk is full"):
        list(pipeline.run(jobs(4)))


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_dist_3_an_interrupt_inside_of_a_policy_passes_through(make, jobs, interrupt):
    def raise_it(seed):
        raise interrupt

    with make(Scripted([ENDLESS], ["true", raise_it]), verify=False) as pipeline, pytest.raises(interrupt):
        list(pipeline.run(jobs(4)))


def test_closing_from_another_thread_ends_a_run_that_waits(make, jobs):
    begun = threading.Event()
    pipeline = make(Scripted([lambda seed: (begun.set(), ENDLESS)[1]]), verify=False)
    closer = threading.Thread(target=lambda: (wait_for(begun), pipeline.close()))
    closer.start()
    with pytest.raises(GagarError, match="the run was stopped"):
        list(pipeline.run(jobs(4)))
    closer.join()


SCRIPT = """
import os, sys, threading
from gagar_env.pipeline import GroupJob, Pipeline
from gagar_env.tasks.registry import load_task
from pipelines import Scripted

task = load_task("ledger-rounding")

def act(seed):
    os.write(1, b"acting\\n")  # whole, as `print` of many threads would not be
    if sys.argv[1] == "hangs":
        threading.Event().wait()
    return os.environ["ENDLESS"]  # not in the command line of this program, where it would be found

settings = {"deadline_s": 3} if sys.argv[1] == "hangs" else {}
with Pipeline(Scripted([act]), group_size=2, groups=2, verify=False, sandbox=sys.argv[2], **settings) as pipeline:
    for batch in pipeline.run(GroupJob(n, task, seed=n) for n in range(2)):
        print("batch", flush=True)
"""


@pytest.fixture
def program(best_kind):
    started = []

    def start(what):
        environment = {**os.environ, "PYTHONPATH": str(PLUGINS), "GAGAR_UNCHECKED": "ignore", "ENDLESS": ENDLESS}
        command = [sys.executable, "-c", SCRIPT, what, best_kind]
        started.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        )
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()


@pytest.mark.slow
def test_the_end_of_the_process_does_not_wait_for_a_policy_that_hangs(program):
    one = program("hangs")
    out, err = one.communicate(timeout=LONG_S)
    assert (one.returncode, out.count("batch"), err) == (0, 2, "")


@pytest.mark.slow
def test_dist_3_ctrl_c_ends_a_run_and_all_of_its_processes(program):
    one = program("works")
    for _ in range(4):
        assert one.stdout.readline() == "acting\n"
    wait_until(lambda: running(MARK))
    one.send_signal(signal.SIGINT)
    _, err = one.communicate(timeout=LONG_S)
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert one.returncode == -signal.SIGINT
    wait_until(lambda: not running(MARK))
