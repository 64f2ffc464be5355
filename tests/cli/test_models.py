"""`gagar run` with models: a real server stands in for them."""

import json

import pytest
from chat_server import error, replies, text, tool_call

pytestmark = pytest.mark.slow

TASK = "feed-missing-filter"
KEY = "key-that-nobody-may-see"


def act_and_judge(request, number):
    """As a policy: reads one file and submits. As a judge: what it is asked for, all equal."""
    if request["model"] == "judge":
        return text("I would rather not say.")
    if "tools" in request:
        return tool_call("submit", {})
    turn = sum(message["role"] == "assistant" for message in request["messages"])
    return text(["```bash\nls\n```", "submit"][turn], usage=(100, 7))


@pytest.fixture
def run(gagar):
    def call(*arguments, task=TASK, size=2, expect=0, **env):
        env = {"OPENAI_API_KEY": KEY, **env}
        return gagar("run", "--tasks", task, "--group-size", size, *arguments, expect=expect, **env)

    return call


def test_a_model_acts(chat_server, run, tmp_path):
    chat_server.script = act_and_judge
    arguments = ("--policy", "chat", "--model", "scripted", "--model-url", chat_server.url, "--temperature", 0.5)
    (group,) = json.loads(run(*arguments, "--out", tmp_path / "run", "--json").stdout)
    assert group["acting"] == {"prompt_tokens": 400, "completion_tokens": 28}
    assert group["grading"] is None
    assert {request["temperature"] for request in chat_server.requests} == {0.5}
    assert all(headers["authorization"] == f"Bearer {KEY}" for headers in chat_server.headers)
    written = [path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert b'"chat:scripted"' in b"".join(written)
    assert not any(KEY.encode() in each for each in written)


def test_a_model_calls_tools(chat_server, run):
    chat_server.script = act_and_judge
    done = run("--policy", "chat", "--model", "scripted", "--model-url", chat_server.url, "--native-tools")
    assert "chat:scripted: " in done.stdout
    assert "completion tokens" in done.stdout
    assert KEY not in done.stdout + done.stderr
    assert [tool["function"]["name"] for tool in chat_server.requests[0]["tools"]][:2] == ["bash", "view"]


def judged(chat_server, run, *more):
    """A run whose judge never answers."""
    chat_server.script = act_and_judge
    judge = ("--grader", "listwise", "--grader-model", "judge", "--grader-url", chat_server.url)
    return run(*judge, *more, task="ledger-rounding", size=4)


def test_a_judge_that_fails_leaves_the_plain_advantages_and_says_so(chat_server, run, tmp_path):
    done = judged(chat_server, run, "--out", tmp_path / "run")
    said = done.stdout
    assert "1 kept, 1 without the ranking that was wanted" in said
    assert "the grader failed on every group; advantages are the plain ones: malformed" in done.stderr
    assert "plain ledger" not in said
    assert "listwise: 2 calls" in said
    assert "price not known" in said
    group = json.loads((tmp_path / "run/groups.jsonl").read_text())
    assert group["advantages"] == group["advantages_before"]


def test_a_judge_that_fails_has_another_behind_it(chat_server, run):
    (group,) = json.loads(judged(chat_server, run, "--grader-fallback", "rule", "--json").stdout)
    grading = group["grading"]
    assert (grading["outcome"], grading["fell_back"], grading["plain_because"]) == ("ranked", True, "")
    assert grading["grader"] == "fallback(listwise,rule)"
    assert (grading["calls"], grading["cost_known"]) == (2, False)
    assert grading["prompt_tokens"] > 0
    assert grading["seconds"] > 0


def test_a_judge_that_fails_is_said_beside_json_and_once(chat_server, run):
    done = judged(chat_server, run, "--groups", 2, "--budget-tokens", 1, "--json")
    assert len(json.loads(done.stdout)) == 2
    assert "budget: the next request would be over the 1 tokens of this run" in done.stderr
    assert done.stderr.count("plain ones") == 1
    assert len(chat_server.requests) == 1  # at the start, to see whether the model is there


def test_what_a_model_does_not_take_is_not_sent(chat_server, run):
    chat_server.script = act_and_judge
    chat = ("--policy", "chat", "--model", "scripted", "--model-url", chat_server.url)
    run(*chat, "--temperature", "none", "--no-seed")
    for grader in ("agentic", "listwise"):
        judge = ("--grader", grader, "--grader-model", "judge", "--grader-url", chat_server.url)
        run(*judge, "--grader-temperature", "none", "--grader-no-seed", task="ledger-rounding", size=4)
    assert len({request["model"] for request in chat_server.requests}) == 2
    assert not any({"temperature", "seed"} & set(request) for request in chat_server.requests)


def test_settings_of_a_judge(chat_server, run):
    settings = ("--grader-temperature", "none", "--grader-orders", 3)
    judged(chat_server, run, *settings)
    assert len(chat_server.requests) == 1 + 3 * 2  # the first sees whether the model is there
    assert not any("temperature" in request for request in chat_server.requests)
    chat_server.requests.clear()
    judged(chat_server, run, "--grader-temperature", 0.3)
    assert {request["temperature"] for request in chat_server.requests[1:]} == {0.3}


NOWHERE = "http://127.0.0.1:9/v1"
CHAT = ("--policy", "chat", "--model", "m")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--policy", "chat"), "--policy chat needs --model"),
        (("--model", "m"), "--model is for --policy chat, not for --policy sample"),
        (("--model-url", NOWHERE), "--model-url is for --policy chat"),
        (("--native-tools",), "--native-tools is for --policy chat"),
        ((*CHAT, "--model-url", NOWHERE), f"--model m: {NOWHERE}: APIConnectionError"),
        ((*CHAT, "--model-url", NOWHERE, "--context-tokens", 100), "context_tokens"),
        (("--grader", "agentic"), "--grader agentic needs --grader-model"),
        (("--grader", "listwise", "--grader-model", "m", "--grader-url", NOWHERE), f"--grader-model m: {NOWHERE}"),
        (("--grader", "listwise", "--grader-model", "m"), "provider:name"),
        (("--grader-model", "m"), "--grader-model is for --grader agentic or listwise"),
        (("--model-url", NOWHERE, "--policy", "noop"), "--model-url is for --policy chat, not for --policy noop"),
        (("--no-seed",), "--no-seed is for --policy chat"),
        ((*CHAT, "--temperature", "hot"), "--temperature hot: give a number of at least 0, or none"),
        (("--grader-temperature", "1"), "--grader-temperature is for --grader agentic or listwise"),
        (("--budget-tokens", "9"), "--budget-tokens is for --grader agentic or listwise"),
        (
            ("--grader", "listwise", "--grader-model", "m", "--grader-rubric", "x"),
            "--grader-rubric is for --grader agentic",
        ),
        (
            ("--grader", "agentic", "--grader-model", "m", "--budget-usd", "0"),
            "--budget-usd: budget: usd must be above 0",
        ),
        (("--grader-output", "tool"), "--grader-output is for --grader agentic"),
        (("--grader", "none", "--grader-fallback", "rule"), "--grader-fallback"),
        (("--grader-fallback", "ruel"), "did you mean 'rule'"),
    ],
)
def test_wrong_models_are_one_clear_line(run, one_line, arguments, says):
    assert says in one_line(run(*arguments, expect=1))


@pytest.mark.parametrize("which", ["policy", "grader"])
@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (error(401, f"wrong key {KEY}"), "wrong key ***"),
        (error(404, "there is no such model"), "there is no such model; it has scripted"),
    ],
)
def test_a_model_that_cannot_be_asked_is_found_before_any_episode(chat_server, run, one_line, which, reply, says):
    chat_server.script = replies(reply)
    flags = ("--policy", "chat", "--model", "other", "--model-url", chat_server.url)
    if which == "grader":
        flags = ("--grader", "listwise", "--grader-model", "other", "--grader-url", chat_server.url)
    line = one_line(run(*flags, expect=1))
    assert says in line
    assert KEY not in line
    assert len(chat_server.requests) == 1


def test_no_key_is_one_clear_line(run, one_line):
    line = one_line(run("--policy", "chat", "--model", "m", OPENAI_API_KEY="", expect=1))
    assert "set OPENAI_API_KEY" in line
