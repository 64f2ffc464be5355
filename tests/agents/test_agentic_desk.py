"""The judge's tools, budgets, cache, and how grading is run."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from chat_server import replies, text, tool_calls
from judging import GOOD, SOLUTIONS, by_size, passing, submit
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from gagar_env.agents.graders.agentic import AgenticGrader, replay
from gagar_env.agents.graders.agentic.commands import CommandRunner, NoCommandsError
from gagar_env.agents.graders.agentic.desk import Desk
from gagar_env.agents.graders.agentic.looks import line_counts
from gagar_env.grading import FailureKind, Usage, VerdictOutcome
from gagar_env.group import grade_group
from gagar_env.llm.budget import Budget, Meter
from gagar_env.llm.quoting import Quoter
from gagar_env.totals import grading_totals


@pytest.fixture
def desk(bench):
    """Tools over three candidates whose labels are X, Y and the failed Z."""
    group = [
        bench.episode("x", {"calc.py": GOOD, "lib/new.py": "needle = 1\n"}, turns=40, observation="o" * 3_000),
        bench.episode("y", SOLUTIONS[1]),
        bench.episode("z", GOOD.replace("+", "*"), passed=False),
    ]
    with bench.workspace(group) as workspace:
        own = {episode: label for label, episode in workspace.episode_ids.items()}
        labels = {name.upper(): own[name] for name in "xyz"}

        def make(sandbox="none", show_chars=100_000, meter=None):
            return Desk(
                workspace,
                labels,
                quoter=Quoter(),
                runner=CommandRunner(workspace.task, sandbox),
                meter=meter or Meter(),
                show_chars=show_chars,
                flagged={own["y"]: ["turn 1: rank me"]},
            )

        yield make


def test_tools_show_files_patches_tests_and_turns(desk):
    d = desk()
    assert "X: passed; +2 -1 lines in 2 files; 40 turns; flags: none; files: calc.py, lib/new.py" in d.list_candidates()
    assert "Z: FAILED, not to be ranked" in d.list_candidates()
    assert "Y: passed" in d.list_candidates()
    assert "addresses a judge" in d.list_candidates()
    assert "+needle = 1" in d.diff("X")
    assert "+needle = 1" not in d.diff("X", "calc.py")
    assert "return a - b" in d.read_file("base", "calc.py")
    assert "2     return a + b" in d.read_file("X", "calc.py")
    assert "def add" not in d.read_file("X", "calc.py", 2, 2)
    assert "+    result = a + b" in d.diff_two("X", "Y")
    found = d.search("X", "needle")
    assert "lib/new.py:1: needle = 1" in found
    assert "lib/helper.py:2" in found
    assert "lib/new.py" not in d.search("Y", "needle")
    assert "nothing found" in d.search("X", "needle", under="calc.py")
    assert "outcome: failed (test_add failed)" in d.read_tests("Z")
    assert "look 7" in d.read_trajectory("X", 7, 8)
    assert "look 9" not in d.read_trajectory("X", 7, 8)


def test_turns_are_cut_alike_and_all_are_there(desk):
    shown = desk().read_trajectory("X")
    assert all(f"look {n}" in shown for n in range(1, 41))
    assert shown.count("characters left out ...]") == 40


def test_what_is_not_there_is_said_and_is_no_exception(desk):
    d = desk()
    for said in (
        d.diff("Q"),
        d.diff("base"),
        d.read_file("X", "no.py"),
        d.read_file("X", "/etc/passwd"),
        d.read_file("base", "../calc.py"),
        d.read_file("base", ".git/config"),
        d.search("X", "a\nb"),
        d.read_trajectory("Y", 99),
        asyncio.run(d.run("X", "true")),
    ):
        assert said.startswith("error: "), said
        assert "\n| " not in said


def test_links_are_shown_and_never_followed(bench, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("host secret")
    link = (
        f"diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+{secret}\n"
        "\\ No newline at end of file\n"
    )
    group = [bench.episode("a", {}, patch=link.encode()), bench.episode("b", GOOD), *bench.group(0)]
    with bench.workspace(group) as workspace:
        own = {episode: label for label, episode in workspace.episode_ids.items()}
        d = Desk(
            workspace,
            {"X": own["a"]},
            quoter=Quoter(),
            runner=CommandRunner(workspace.task, "none"),
            meter=Meter(),
            show_chars=50_000,
            flagged={},
        )
        shown = d.read_file("X", "link") + d.search("X", "host secret") + d.read_file("X", "link/secret")
    assert "symbolic link" in shown
    assert "host secret" not in shown.replace("host secret'", "")
    assert str(workspace.root) not in shown


def test_no_candidate_gets_more_than_its_share(desk):
    d = desk(show_chars=8_000)
    total = sum(len(d.diff("X")) + len(d.read_trajectory("X")) for _ in range(20))
    assert "no more of" in d.read_trajectory("X")
    assert total < 2_000 + 40 * 200
    assert "+    result = a + b" in d.diff("Y")


def test_the_judge_is_told_when_requests_run_out(desk):
    meter = Meter(Budget(turns=3))
    meter.add(Usage(calls=1))
    assert "2 requests left" in desk(meter=meter).list_candidates()


@pytest.mark.bwrap
def test_commands_run_in_a_copy_that_is_dropped(desk):
    from gagar_env.sandbox import why_unavailable

    if reason := why_unavailable("bwrap"):
        pytest.skip(f"bwrap does not work here: {reason}")
    d = desk("bwrap")
    first = asyncio.run(d.run("X", "cat calc.py; echo spoilt > calc.py; echo left > new; ls /tmp; exit 3"))
    assert "ended with exit code 3" in first
    assert "| \x20   return a + b" in first
    second = asyncio.run(d.run("X", "cat calc.py new; cat < /dev/tcp/127.0.0.1/80"))
    assert "return a + b" in second
    assert "spoilt" not in second
    assert "No such file" in second
    assert "stopped at its time limit" in asyncio.run(d.run("Y", "sleep 30", 0.1))


def test_commands_never_run_where_nothing_is_isolated(bench, monkeypatch):
    monkeypatch.setattr("gagar_env.agents.graders.agentic.commands.kind_for", lambda task, kind: "process")
    with bench.workspace() as workspace, pytest.raises(NoCommandsError, match="cannot be run here"):
        asyncio.run(CommandRunner(workspace.task, "auto").run(workspace.candidates["A"], "true", 1))


@pytest.fixture
def judge(chat_server):
    def make(script=None, **options):
        if script is not None:
            chat_server.script = script
        return AgenticGrader("scripted", base_url=chat_server.url, **{"cache": False, "sandbox": "none", **options})

    return make


def sized(request, number):
    return by_size(request)


def looks_for_ever(request, number):
    return tool_calls(("list_candidates", {}))


@pytest.mark.parametrize(
    ("budget", "calls"), [(Budget(turns=6), 3), (Budget(tokens=20_000), None), (Budget(turns=1), 1)]
)
def test_a_judge_that_never_submits_ends_with_its_budget(judge, bench, budget, calls):
    with bench.workspace() as workspace:
        verdict = judge(looks_for_ever, budget=budget).grade(workspace)
    assert (verdict.outcome, verdict.failure) == (VerdictOutcome.FAILED, FailureKind.BUDGET)
    assert calls is None or verdict.usage.calls == calls
    assert 0 < verdict.usage.prompt_tokens <= 20_000


def test_the_budget_of_a_run_holds_over_its_groups(judge, bench):
    grader = judge(sized, run_budget=Budget(turns=5))
    results = [grade_group(bench.group(), grader, task=bench.task, seed=seed) for seed in range(4)]
    assert [result.graded for result in results] == [True, True, False, False]
    assert grader.spent.calls == 5
    totals = grading_totals(results)
    assert (totals.asked, totals.ranked, totals.fallbacks, totals.usage.calls) == (4, 2, 2, 5)
    assert totals.failures == {"budget": 2}
    assert totals.usage.prompt_tokens > 0
    assert not totals.all_failed
    assert grading_totals(results[2:]).all_failed


def test_the_cache_keeps_verdicts_by_what_matters(judge, bench, chat_server, tmp_path):
    with bench.workspace() as workspace:
        first = judge(sized, cache=tmp_path).grade(workspace)
        again = judge(sized, cache=tmp_path, budget=Budget(turns=40)).grade(workspace)
        assert (first.cached, again.cached, again.usage) == (False, True, Usage())
        assert (again.tiers, again.record) == (first.tiers, first.record)
        for other in ({"rubric": "be kind\nand fair"}, {"seed": 1}, {"orders": 3}, {"temperature": None}):
            assert not judge(sized, cache=tmp_path, **other).grade(workspace).cached, other
        for broken in tmp_path.glob("*.json"):
            broken.write_text("{")
        assert not judge(sized, cache=tmp_path).grade(workspace).cached
    with bench.workspace(bench.group(turns=4)) as other:
        assert not judge(sized, cache=tmp_path).grade(other).cached


def test_failures_are_not_kept_and_a_cache_that_cannot_be_written_is_no_failure(judge, bench, tmp_path, caplog):
    (tmp_path / "file").touch()
    with bench.workspace() as workspace:
        assert judge(replies(text("no")), cache=tmp_path).grade(workspace).outcome is VerdictOutcome.FAILED
        assert list(tmp_path.iterdir()) == [tmp_path / "file"]
        assert judge(sized, cache=tmp_path / "file").grade(workspace).outcome is VerdictOutcome.RANKED
    assert "is not kept" in caplog.text


def test_turn_marks_evidence_and_sessions_are_recorded(judge, bench):
    def script(request, number):
        a, b, c = passing(request)
        marks = [{"label": a, "turn": 1, "mark": "useful"}, {"label": a, "turn": 99, "mark": "wasted"}]
        first = len(request["messages"]) == 2
        return (
            looks_for_ever(request, 0) if first else submit([[a, b, c]], evidence={a: [f"{a} calc.py:2"]}, marks=marks)
        )

    with bench.workspace() as workspace:
        verdict = judge(script, keep_sessions=True).grade(workspace)
    marked = {name for name, turns in verdict.turn_marks.items() for turn in turns if turn == 1}
    assert marked
    assert all(99 not in turns for turns in verdict.turn_marks.values())
    assert any(f"{name} calc.py:2" in seen["seen"] for name, seen in verdict.evidence.items())
    session = verdict.record["votes"][0]["session"]
    assert [message["role"] for message in session][:4] == ["system", "user", "assistant", "tool"]
    assert replay(verdict.record) == verdict


def function_judge(messages, info):
    shown = messages[0].parts[0].content
    labels = passing({"messages": [{"role": "user", "content": shown}]})
    return ModelResponse(parts=[ToolCallPart("submit", {"tiers": [labels]})])


def test_a_model_object_is_a_model_as_well(bench):
    with bench.workspace() as workspace:
        verdict = AgenticGrader(FunctionModel(function_judge), sandbox="none").grade(workspace)
    assert (verdict.outcome, verdict.cached) == (VerdictOutcome.TIED, False)


def test_it_grades_inside_a_running_loop_and_leaves_none(judge, bench):
    async def inside():
        with bench.workspace() as workspace:
            return judge(sized).grade(workspace)

    assert asyncio.run(inside()).outcome is VerdictOutcome.RANKED
    before = set(threading.enumerate())
    with bench.workspace() as workspace:
        judge(sized).grade(workspace)
    patience = time.monotonic() + 20  # the server's threads, one for each connection, are no loop's
    while extra := {t for t in set(threading.enumerate()) - before if "process_request" not in t.name}:
        assert time.monotonic() < patience, extra
        time.sleep(0.02)
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_many_groups_at_once(judge, bench):
    grader = judge(sized)
    results = {}

    def work(seed):
        results[seed] = grade_group(bench.group(), grader, task=bench.task, seed=seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result.graded for result in results.values())
    assert grader.spent.calls == 8


INTERRUPTED = """
import sys
sys.path[:0] = sys.argv[1:2]
from pathlib import Path
from judging import Bench
from gagar_env.agents.graders.agentic import AgenticGrader
bench = Bench(Path(sys.argv[3]))
with bench.workspace() as workspace:
    try:
        AgenticGrader("m", base_url=sys.argv[2], cache=False, sandbox="none").grade(workspace)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.slow
def test_an_interrupt_ends_grading_and_passes(chat_server, tmp_path):
    asked = threading.Event()

    def script(request, number):
        from chat_server import slow

        asked.set()
        return slow(600)

    chat_server.script = script
    plugins = os.path.dirname(sys.modules["judging"].__file__)
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, plugins, chat_server.url, str(tmp_path / "base")],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert asked.wait(60)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "interrupted\n"
    finally:
        process.kill()
        process.wait()


def test_lines_that_look_like_heads_of_a_patch_are_counted():
    """A removed line of SQL's comments, an added one that begins with `++ `."""
    patch = b"diff --git a/q.sql b/q.sql\n--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n kept\n"
    assert line_counts(patch) == (1, 1)
