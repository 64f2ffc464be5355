"""A function in this process as the judge."""

import json

import pytest
from judging import by_size, passing

from gagar_env.agents.graders import AgenticGrader
from gagar_env.agents.graders.agentic.local import local_model, read_reply
from gagar_env.grading import FailureKind, VerdictOutcome


def written(name, arguments):
    return f"I look.\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


@pytest.fixture
def workspace(bench):
    with bench.workspace() as made:
        yield made


def test_text_with_calls_is_a_judge(workspace):
    seen = []

    def generate(messages, tools):
        seen.append((messages, tools))
        if messages[-1]["role"] != "tool":
            return written("diff", {"label": passing({"messages": messages})[0]})
        call = by_size({"messages": messages})["message"]["tool_calls"][0]["function"]
        return written("submit", json.loads(call["arguments"]))

    verdict = AgenticGrader(local_model(generate, name="mine"), sandbox="none").grade(workspace)
    assert verdict.outcome is VerdictOutcome.RANKED
    assert verdict.record["model"] == "mine"
    assert verdict.usage.calls == 4
    messages, tools = seen[1]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    assert isinstance(messages[2]["tool_calls"][0]["function"]["arguments"], dict)
    assert {"diff", "submit"} <= {tool["function"]["name"] for tool in tools}


def test_noise_is_a_failure_and_no_crash(workspace):
    verdict = AgenticGrader(local_model(lambda messages, tools: "<tool_call>%"), sandbox="none").grade(workspace)
    assert (verdict.outcome, verdict.failure) == (VerdictOutcome.FAILED, FailureKind.MALFORMED)


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "<tool_call>{</tool_call>",
        '<tool_call>{"name": "nope", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "diff", "arguments": "x"}</tool_call>',
        "<tool_call>[1]</tool_call>",
    ],
)
def test_what_is_no_call_stays_text(text):
    assert [part.content for part in read_reply(text, {"diff"})] == [text]


def test_several_calls_are_read_in_order():
    parts = read_reply(written("diff", {"label": "A"}) + written("submit", {"tiers": []}), {"diff", "submit"})
    assert [(part.tool_name, part.args) for part in parts] == [("diff", {"label": "A"}), ("submit", {"tiers": []})]
