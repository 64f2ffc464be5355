"""What bounds the judge: prompts, commands, deadlines; and what is kept and recorded of it."""

import asyncio
import threading
import time

import pytest
from chat_server import error, replies, tool_call, tool_calls
from judging import by_size, passing, submit

from gagar_env.agents.graders.agentic import AgenticGrader, commands
from gagar_env.agents.graders.agentic.commands import CommandRunner
from gagar_env.agents.graders.agentic.desk import Desk
from gagar_env.errors import PromptTooLongError
from gagar_env.grading import FailureKind, VerdictOutcome
from gagar_env.llm.budget import Meter
from gagar_env.llm.quoting import Quoter
from gagar_env.sandbox.base import ExecResult, SandboxSpec


@pytest.fixture
def judge(chat_server):
    def make(script=None, **options):
        if script is not None:
            chat_server.script = script
        options = {"base_url": chat_server.url, "cache": False, "sandbox": "none", **options}
        return AgenticGrader("scripted", **options)

    return make


@pytest.fixture
def workspace(bench):
    with bench.workspace() as made:
        yield made


class Box:
    """A sandbox that opens when it is let, and runs until it is closed or let."""

    def __init__(self):
        self.closed = threading.Event()
        self.running = threading.Event()
        self.closed_by = None

    def run(self, command, **limits):
        self.running.set()
        if command == "for ever":
            self.closed.wait(20)
        return ExecResult(exit_code=0, output=b"out")

    def close(self):
        self.closed_by = threading.current_thread()
        self.closed.set()


@pytest.fixture
def boxes(monkeypatch):
    """Boxes instead of sandboxes, for faults that real ones have only now and then."""
    made, gate, lock = [], threading.Event(), threading.Lock()
    gate.set()
    opening = threading.Event()

    def open_box(kind, spec):
        opening.set()
        gate.wait(20)
        box = Box()
        with lock:
            made.append(box)
        return box

    monkeypatch.setattr(commands, "open_sandbox", open_box)
    monkeypatch.setattr(CommandRunner, "_prepared", lambda self: ("bwrap", SandboxSpec(tree=self._task.repo.path)))
    open_box.made, open_box.gate, open_box.opening = made, gate, opening
    return open_box


def abandoned(workspace, command, when):
    """A command that is cancelled when an event comes; the loop is closed afterwards."""

    async def go():
        runner = CommandRunner(workspace.task, "bwrap")
        task = asyncio.create_task(runner.run(workspace.candidates["A"], command, 30))
        while not when():
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())


def test_a_sandbox_that_opens_too_late_is_closed_and_not_waited_for(workspace, boxes):
    boxes.gate.clear()
    abandoned(workspace, "true", boxes.opening.is_set)  # ends while it is opening
    assert boxes.made == []
    boxes.gate.set()
    deadline = time.monotonic() + 20
    while not (boxes.made and boxes.made[0].closed.is_set()):
        assert time.monotonic() < deadline, "the sandbox is left open"
        time.sleep(0.005)
    assert not boxes.made[0].running.is_set()


def test_a_command_that_nobody_waits_for_is_ended_off_the_loop(workspace, boxes):
    abandoned(workspace, "for ever", lambda: boxes.made and boxes.made[0].running.is_set())
    assert boxes.made[0].closed.wait(20)
    assert boxes.made[0].closed_by is not threading.current_thread()


def test_few_commands_at_once_and_none_when_nothing_more_can_be_shown(workspace, boxes):
    labels = {name: name for name in workspace.candidates}
    desk = Desk(
        workspace,
        labels,
        quoter=Quoter(),
        runner=CommandRunner(workspace.task, "bwrap"),
        meter=Meter(),
        show_chars=6_000,
        flagged={},
    )

    async def many():
        tasks = [asyncio.create_task(desk.run("A", "for ever")) for _ in range(60)]
        while len(boxes.made) < 2:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        at_once = len(boxes.made)
        for task in tasks:
            while not task.done():
                for box in list(boxes.made):
                    box.closed.set()
                await asyncio.sleep(0)
        return at_once, [task.result() for task in tasks]

    at_once, said = asyncio.run(many())
    assert at_once == 2
    assert "no more of output" in said[-1]
    assert len(boxes.made) < 30


def test_calls_without_end_in_one_reply_are_over_the_budget(judge, workspace, chat_server):
    verdict = judge(replies(tool_calls(*[("list_candidates", {})] * 500))).grade(workspace)
    assert (verdict.outcome, verdict.failure) == (VerdictOutcome.FAILED, FailureKind.BUDGET)
    assert len(chat_server.requests) == 1


@pytest.mark.slow
@pytest.mark.parametrize("usage", [None, (0, 0)], ids=["counted", "not counted"])
def test_a_long_look_is_no_overflow(judge, workspace, usage):
    def script(request, number):
        if number < 45:
            return tool_call("list_candidates", {}, usage=usage)
        return {**submit([passing(request)]), "usage": usage}

    verdict = judge(script, orders=1).grade(workspace)
    assert verdict.outcome is VerdictOutcome.TIED, verdict.error


def test_a_judge_that_can_be_shown_nothing_does_not_rank(judge, workspace, chat_server):
    verdict = judge(lambda request, number: by_size(request), context_tokens=4_000).grade(workspace)
    assert (verdict.outcome, verdict.failure) == (VerdictOutcome.FAILED, FailureKind.OVERFLOW)
    assert "context_tokens" in verdict.error
    assert chat_server.requests == []
    with pytest.raises(PromptTooLongError, match="smaller groups"):
        Desk(
            workspace,
            dict.fromkeys("AB", "A"),
            quoter=Quoter(),
            runner=CommandRunner(workspace.task, "none"),
            meter=Meter(),
            show_chars=2_999,
            flagged={},
        )


def test_what_is_kept_had_no_failure_and_fits_the_sandbox_and_the_sessions(judge, workspace, tmp_path):
    def one_fails(request, number):
        return error(400) if number == 1 else by_size(request)

    verdict = judge(one_fails, orders=3, cache=tmp_path).grade(workspace)
    assert verdict.outcome is VerdictOutcome.RANKED
    assert [bool(vote["failure"]) for vote in verdict.record["votes"]] == [False, True, False]
    assert list(tmp_path.iterdir()) == []

    def good(request, number):
        return by_size(request)

    assert not judge(good, cache=tmp_path).grade(workspace).cached
    assert judge(good, cache=tmp_path).grade(workspace).cached
    told = judge(good, cache=tmp_path, keep_sessions=True).grade(workspace)
    assert not told.cached
    assert told.record["votes"][0]["session"]
    assert not judge(good, cache=tmp_path, sandbox="bwrap").grade(workspace).cached


KEY = "key-of-the-endpoint"


def test_no_key_gets_into_a_record(judge, workspace, chat_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-environment")
    url = chat_server.url.replace("http://", "http://user:pass-word@")
    said = f"bad key {KEY} or key-of-the-environment, Bearer abcdefghijklmnop, sk-abcdefghijklmnop"
    failed = judge(replies(error(401, said)), base_url=url, api_key=KEY).grade(workspace)
    assert "bad key" in failed.error
    talked = judge(
        lambda request, number: submit([passing(request)], reasons={passing(request)[0]: f"{KEY} is the key"}),
        api_key=KEY,
        keep_sessions=True,
    ).grade(workspace)
    assert talked.outcome is VerdictOutcome.TIED
    assert failed.record["url"] == chat_server.url
    for verdict in (failed, talked):
        kept = verdict.model_dump_json()
        for secret in (KEY, "key-of-the-environment", "pass-word", "abcdefghijklmnop"):
            assert secret not in kept, secret


def test_the_sandbox_is_provisioned_before_the_clock_of_the_votes_starts(judge, workspace, monkeypatch):
    done = []

    class Clock(Meter):
        def __init__(self, *args, **more):
            done.append("clock")
            super().__init__(*args, **more)

    grader = judge(lambda request, number: by_size(request), sandbox="bwrap")
    monkeypatch.setattr(CommandRunner, "_prepared", lambda self: done.append("provisioned"))
    monkeypatch.setattr("gagar_env.agents.graders.agentic.grader.Meter", Clock)
    assert grader.grade(workspace).outcome is VerdictOutcome.RANKED
    assert done[:2] == ["provisioned", "clock"]
