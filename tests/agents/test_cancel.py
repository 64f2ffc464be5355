"""A group that nobody waits for any more: nothing further is asked, whenever that is said."""

import asyncio
import threading

import pytest
from chat_server import slow
from judging import by_size

from gagar_env.agents.graders import EnsembleGrader, FallbackGrader
from gagar_env.agents.graders.agentic import AgenticGrader
from gagar_env.agents.graders.agentic.loops import Loops
from gagar_env.grading import FailureKind, Verdict, VerdictOutcome


@pytest.fixture
def judge(chat_server):
    return lambda: AgenticGrader("m", base_url=chat_server.url, cache=False, sandbox="none")


class Never:
    name = "never"

    def __init__(self):
        self.asked = 0

    def grade(self, workspace):
        self.asked += 1
        return Verdict(grader=self.name, outcome="failed", error="no")


@pytest.mark.parametrize("together", [FallbackGrader, lambda *graders: EnsembleGrader(graders)])
def test_no_further_grader_is_asked(judge, bench, chat_server, together):
    asked, verdicts, last = threading.Event(), [], Never()

    def script(request, number):
        asked.set()
        return slow(600)

    chat_server.script = script
    grader = together(judge(), judge(), last)
    with bench.workspace() as workspace:
        thread = threading.Thread(target=lambda: verdicts.append(grader.grade(workspace)))
        thread.start()
        assert asked.wait(20)
        grader.cancel(workspace)
        thread.join(20)
    assert [verdict.outcome for verdict in verdicts] == [VerdictOutcome.FAILED]
    assert (len(chat_server.requests), last.asked) == (1, 0)


def test_what_was_cancelled_before_it_began_asks_nothing(judge, bench, chat_server):
    chat_server.script = lambda request, number: by_size(request)
    grader = judge()
    with bench.workspace() as gone, bench.workspace(seed=2) as other:
        grader.cancel(gone)
        verdict = grader.grade(gone)
        assert (verdict.outcome, verdict.failure) == (VerdictOutcome.FAILED, FailureKind.CANCELLED)
        assert chat_server.requests == []
        assert grader.grade(other).outcome is VerdictOutcome.RANKED


def test_a_loop_that_begins_after_it_was_cancelled_ends_at_once():
    class Thing:
        pass

    loops, thing, done = Loops(), Thing(), []

    async def work():
        await asyncio.sleep(0)
        done.append(True)

    loops.cancel(thing)
    loops.run(thing, work())
    assert done == []
    loops.run(Thing(), work())
    assert done == [True]
