"""Conversations of a judge as training data: what is taken, what is not, and that no task is in both splits."""

import json

import pytest
from chat_server import tool_call
from judging import by_size, passing, submit

from gagar_env.agents.graders import AgenticGrader, RuleGrader
from gagar_env.errors import GradingError
from gagar_env.grader_eval.evaluate import evaluate
from gagar_env.grader_eval.export import Manifest, export
from gagar_env.grader_eval.records import Grading, gradings, write_gradings
from gagar_env.grader_eval.sessions import collect, read_gradings
from gagar_env.grader_eval.splits import clusters, held_out

pytestmark = pytest.mark.slow


def looks_first(request, number):
    """One look, then the smaller patch is the better one."""
    if request["messages"][-1]["role"] == "tool":
        return by_size(request)
    return tool_call("diff", {"label": passing(request)[0]})


@pytest.fixture
def judged(shop_task, best_kind, chat_server):
    def run(script, groups=3, seed=1):
        chat_server.script = script
        grader = AgenticGrader("scripted", base_url=chat_server.url, cache=False, sandbox="none", keep_sessions=True)
        return evaluate(grader, [shop_task], groups=groups, seed=seed, sandbox=best_kind, jobs=1)

    return run


def as_task(grading, task_id, statement):
    result = grading.result.model_copy(update={"task_id": task_id})
    return grading.model_copy(update={"task_id": task_id, "statement": statement, "result": result})


def test_right_sessions_become_chat_records_with_tools(judged, tmp_path):
    found = judged(looks_first)
    write_gradings(tmp_path / "g.jsonl", found.graded)
    manifest = export([tmp_path / "g.jsonl"], tmp_path / "data", eval_share=0.5)
    assert Manifest.model_validate_json((tmp_path / "data/manifest.json").read_text()) == manifest
    lines = [json.loads(line) for line in (tmp_path / "data/train.jsonl").read_text().splitlines()]
    assert (tmp_path / "data/eval.jsonl").read_text() == ""  # one task cannot be in both
    assert len(lines) == len(manifest.examples) >= 2
    for record in lines:
        assert set(record) == {"messages", "tools"}
        assert [message["role"] for message in record["messages"]] == [
            *("system", "user", "assistant", "tool", "assistant")
        ]
        names = {tool["function"]["name"] for tool in record["tools"]}
        assert {"diff", "read_file", "submit"} <= names
        last = record["messages"][-1]["tool_calls"][0]["function"]
        assert last["name"] == "submit"
        assert isinstance(last["arguments"]["tiers"], list)
        assert {c["function"]["name"] for m in record["messages"] for c in m.get("tool_calls", ())} <= names
    by_group = {example.group_id for example in manifest.examples}
    right = {
        g.result.group_id
        for g in gradings(found.graded)
        if all(
            (g.result.verdict.rank(a) > g.result.verdict.rank(b)) == (g.strengths[a] > g.strengths[b])
            for a in g.strengths
            for b in g.strengths
        )
    }
    assert by_group <= right


def test_wrong_rankings_and_disagreeing_votes_are_left_out(judged):
    backwards = judged(lambda request, n: submit(json.loads(_tiers(by_size(request)))[::-1]))
    found = collect(gradings(backwards.graded), {})
    assert {result.item.family for result in backwards.graded} == {"ordered", "equal", "attacked"}
    kinds = {session.group_id.partition("-")[0] for session in found.sessions}
    assert not kinds & {"ordered", "attacked"}
    assert found.dropped["the ranking is wrong"]
    by_place = collect(gradings(judged(lambda r, n: submit([[label] for label in passing(r)])).graded), {})
    assert by_place.sessions == []
    assert by_place.dropped["the votes disagree"]


def _tiers(reply):
    return json.dumps(json.loads(reply["message"]["tool_calls"][0]["function"]["arguments"])["tiers"])


def test_the_same_conversation_is_taken_once(judged):
    every = list(gradings(judged(looks_first).graded))
    once, twice = collect(every, {}), collect([*every, *every], {})
    assert once.sessions == twice.sessions
    assert (
        twice.dropped["the same conversation again"]
        == len(once.sessions) + once.dropped["the same conversation again"] * 2
    )


def test_tasks_that_are_alike_stay_together(judged, tmp_path):
    right = [g for g in gradings(judged(looks_first).graded) if g.family == "ordered" and collect([g], {}).sessions]
    assert right
    statements = {
        "a": "The total of a basket ignores the extra price that the caller hands in.",
        "b": "Sorting the catalogue by name puts umlauts behind all other letters.",
        "c": "The total of a basket ignores the extra price that a caller hands in!",
        "d": "Reading an empty configuration file raises instead of giving the defaults.",
    }
    moved = [as_task(grading, name, text) for grading in right for name, text in statements.items()]
    lines = [grading.model_dump_json() for grading in moved]
    for place in range(len(lines)):  # another task has other files: its conversations are others
        lines[place] = lines[place].replace("shop.py", f"shop{moved[place].task_id}.py")
    (tmp_path / "g.jsonl").write_text("\n".join(lines))
    for seed in range(4):
        manifest = export([tmp_path / "g.jsonl"], tmp_path / f"data{seed}", eval_share=0.4, seed=seed)
        train, held = (set(manifest.tasks[name]) for name in ("train", "eval"))
        assert train
        assert held
        assert not train & held
        assert train | held == set("abcd")
        assert ("a" in train) == ("c" in train)
        assert manifest.alike == (("a", "c"),)


def test_a_run_is_read_as_well(judged, tmp_path):
    result = next(g.result for g in gradings(judged(looks_first).graded) if collect([g], {}).sessions)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/groups.jsonl").write_text(result.model_dump_json() + "\n")
    (read,) = read_gradings(tmp_path / "run")
    assert read == result
    sessions = collect([read], {result.task_id: "what the task says"}).sessions
    assert {session.statement for session in sessions} == {"what the task says"}
    record = {"ranked_by": "agentic", "earlier": [], "record": result.verdict.record}
    chain = result.model_copy(update={"verdict": result.verdict.model_copy(update={"record": record})})
    assert [s.messages for s in collect([chain], {}).sessions] == [s.messages for s in sessions]


def test_what_cannot_be_used_is_one_clear_line(shop_task, best_kind, tmp_path):
    found = evaluate(RuleGrader(), [shop_task], groups=2, sandbox=best_kind)
    write_gradings(tmp_path / "g.jsonl", found.graded)
    with pytest.raises(GradingError, match=r"no session to learn from: \d+ x fewer than two votes"):
        export([tmp_path / "g.jsonl"], tmp_path / "data")
    assert not (tmp_path / "data").exists()
    (tmp_path / "broken.jsonl").write_text('{"statement": 1, "strengths": 2}\n')
    with pytest.raises(GradingError, match=r"broken\.jsonl: line 1 is no grading: family"):
        export([tmp_path / "broken.jsonl"], tmp_path / "data")
    with pytest.raises(ValueError, match="eval_share"):
        export([], tmp_path / "data", eval_share=1.0)


def test_clusters_chain_and_splits_keep_them_whole():
    text = "one two three four five six seven eight nine ten"
    statements = {"a": text, "b": text + " eleven twelve", "c": text + " eleven twelve x y z", "d": "something else"}
    assert sorted(clusters(statements)) == [("a", "b", "c"), ("d",)]
    assert clusters({"e": "", "f": ""}) in ([("e", "f")], [("f", "e")])
    sizes = dict.fromkeys("abcd", 1)
    for seed in range(10):
        assert held_out([("a", "b", "c"), ("d",)], sizes, share=0.3, seed=seed) == {"d"}
        assert held_out([("a", "b", "c", "d")], sizes, share=0.3, seed=seed) == frozenset()
        assert held_out([("a", "b", "c"), ("d",)], sizes, share=0, seed=seed) == frozenset()


def test_gradings_replay_from_their_file(judged, tmp_path):
    found = judged(looks_first)
    write_gradings(tmp_path / "g.jsonl", found.graded)
    assert list(read_gradings(tmp_path / "g.jsonl")) == list(gradings(found.graded))
    assert all(isinstance(grading, Grading) for grading in read_gradings(tmp_path / "g.jsonl"))
