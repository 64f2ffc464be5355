"""`gagar grader` as a user runs it."""

import json
import re

import pytest
from chat_server import text
from judging import by_size, passing, submit

pytestmark = pytest.mark.slow

TASK = ("--tasks", "ledger-rounding")


def scores(request, number):
    """A listwise judge that likes short patches."""
    shown = next(m["content"] for m in request["messages"] if m["role"] == "user")
    parts = re.split(r"^Candidate (\w+)$", shown, flags=re.M)[1:]
    sizes = {label: body.count("\n| +") for label, body in zip(parts[::2], parts[1::2], strict=True)}
    worst = max(sizes.values()) or 1
    listed = [{"id": label, "score": 1 - size / worst, "explanation": ""} for label, size in sizes.items()]
    return text(json.dumps({"scores": listed}))


def test_eval_prints_a_table_and_the_same_numbers_as_json(gagar):
    run = ("grader", "eval", *TASK, "--groups", 4, "--seed", 2)
    table = gagar(*run).stdout
    for line in ("pairwise accuracy", "Kendall's tau", "tie accuracy", "slot bias", "length bias", "self-agreement"):
        assert line in table
    assert "grader 'rule' on 4 groups: 2 ordered, 1 equal, 1 attacked" in table
    first, second = (json.loads(gagar(*run, "--json").stdout) for _ in range(2))
    for report in (first, second):
        del report["seconds"], report["usage"]
    assert first == second
    assert first["measures"]["slot_bias"]["value"] == 0.0
    assert first["measures"]["self_agreement"]["value"] == 1.0
    value = first["measures"]["pairwise_accuracy"]["value"]
    assert f"{value:.3f}" in table


@pytest.mark.parametrize("grader", ["agentic", "listwise"])
def test_eval_of_a_grader_with_a_model(gagar, chat_server, tmp_path, grader):
    chat_server.script = scores if grader == "listwise" else (lambda request, number: by_size(request))
    model = ("--grader", grader, "--grader-model", "scripted", "--grader-url", chat_server.url)
    env = {"OPENAI_API_KEY": "none"}
    run = ("grader", "eval", *TASK, "--groups", 4, "--seed", 2, *model, "--jobs", 2)
    report = json.loads(gagar(*run, "--json", "--out", tmp_path / "g.jsonl", **env).stdout)
    assert report["grader"] == grader
    assert report["measures"]["fallback_rate"]["value"] == 0.0
    assert report["measures"]["pairwise_accuracy"]["value"] > 0.5
    assert report["measures"]["slot_bias"]["value"] == 0.0
    assert report["usage"]["calls"] >= 10
    assert report["usage"]["prompt_tokens"] > 0
    assert len((tmp_path / "g.jsonl").read_text().splitlines()) == 10  # 2 for each group, 2 more for the attacked one


def test_sessions_are_exported_for_training(gagar, chat_server, tmp_path):
    chat_server.script = lambda request, number: by_size(request)
    model = ("--grader", "agentic", "--grader-model", "scripted", "--grader-url", chat_server.url, "--grader-sessions")
    run = ("grader", "eval", *TASK, "--groups", 2, *model, "--out", "g.jsonl")
    assert "written to g.jsonl" in gagar(*run, OPENAI_API_KEY="none").stdout
    said = gagar("grader", "export", "g.jsonl", "--out", "data").stdout
    assert "eval: 0 examples of 0 tasks" in said
    records = [json.loads(line) for line in (tmp_path / "data/train.jsonl").read_text().splitlines()]
    assert records
    assert all(set(record) == {"messages", "tools"} for record in records)
    again = gagar("grader", "export", "g.jsonl", "--out", "data", expect=1)
    assert "--out data is there already" in again.stderr
    manifest = json.loads(gagar("grader", "export", "g.jsonl", "--out", "data2", "--json").stdout)
    assert len(manifest["examples"]) == len(records)


def test_nothing_to_learn_from_is_one_clear_line(gagar, one_line):
    gagar("grader", "eval", *TASK, "--groups", 1, "--out", "g.jsonl")
    assert "no session to learn from" in one_line(gagar("grader", "export", "g.jsonl", "--out", "data", expect=1))
    assert "nope.jsonl: No such file" in one_line(gagar("grader", "export", "nope.jsonl", "--out", "data", expect=1))


def test_a_judge_that_goes_by_place_is_found_out(gagar, chat_server):
    chat_server.script = lambda request, number: submit([[label] for label in sorted(passing(request))])
    model = ("--grader", "agentic", "--grader-model", "scripted", "--grader-url", chat_server.url)
    run = ("grader", "eval", *TASK, "--groups", 2, *model, "--json")
    measures = json.loads(gagar(*run, OPENAI_API_KEY="none").stdout)["measures"]
    assert measures["self_agreement"]["value"] < 1.0


def test_a_grader_that_always_fails_says_so_and_ends_with_1(gagar, chat_server):
    chat_server.script = lambda request, number: text("I cannot say.")
    model = ("--grader", "listwise", "--grader-model", "scripted", "--grader-url", chat_server.url)
    done = gagar("grader", "eval", *TASK, "--groups", 1, *model, "--json", expect=1, OPENAI_API_KEY="none")
    assert json.loads(done.stdout)["measures"]["fallback_rate"]["value"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--grader", "none"), "--grader none ranks nothing"),
        (("--grader", "agentic"), "--grader agentic needs --grader-model"),
        (("--grader-model", "x"), "--grader-model is for --grader"),
        (("--grader-sessions",), "--grader-sessions is for --grader agentic"),
        (("--tasks", "nope"), "no task 'nope'"),
        (("--out", "."), "--out . is there already"),
    ],
)
def test_wrong_input_is_one_clear_line(gagar, one_line, arguments, said):
    assert said in one_line(gagar("grader", "eval", *arguments, expect=1))
