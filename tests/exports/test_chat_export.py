"""Chat records: strict JSON, native tool calls where the actions were calls, advantages beside."""

import json

import pytest

from gagar_env.exports import export_run


@pytest.fixture
def lines(run, tmp_path):
    def lines(**more):
        export_run(run, tmp_path / "chat.jsonl", format="openai", **more)
        return [json.loads(line) for line in (tmp_path / "chat.jsonl").read_bytes().split(b"\n")[:-1]]

    return lines


def test_a_conversation_of_scripts(lines, episodes):
    record = next(r for r in lines() if r["episode_id"] == "a/1")
    result, place, _ = episodes["a/1"]
    assert record["messages"] == [
        {"role": "user", "content": "Fix add."},
        {"role": "assistant", "content": "I look.\n```bash\ncat calc.py\n```"},
        {"role": "user", "content": "def add …\n"},
        {"role": "assistant", "content": "submit"},
    ]
    assert "tools" not in record
    assert record["advantage"] == result.advantages[place] != record["advantage_before"]
    assert (record["reward"], record["passed"], record["mask"]) == (1.0, True, True)


def test_a_conversation_of_tool_calls(lines):
    record = next(r for r in lines() if r["episode_id"] == "b/1")
    names = [tool["function"]["name"] for tool in record["tools"]]
    assert names == ["bash", "view", "edit", "create", "submit"]
    told = record["messages"][1:]
    assert [m["role"] for m in told] == ["assistant", "tool", "assistant", "tool", "assistant", "user", "assistant"]
    calls = [m["tool_calls"][0] for m in told if "tool_calls" in m]
    assert [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in calls] == [
        ("bash", {"command": "ls"}),
        ("view", {"path": "calc.py", "start": 1}),
        ("submit", {}),
    ]
    answers = [m["tool_call_id"] for m in told if m["role"] == "tool"]
    assert answers == [calls[0]["id"], calls[1]["id"]]
    assert all(m["content"] is None for m in told if "tool_calls" in m)
    assert told[4] == {"role": "assistant", "content": "no call at all"}
    assert len({c["id"] for c in calls}) == 3


def test_a_system_prompt_comes_first(lines):
    assert all(r["messages"][0] == {"role": "system", "content": "Be brief."} for r in lines(system_prompt="Be brief."))


def test_every_answer_stays_in_the_record(lines, episodes):
    for record in lines():
        _, _, episode = episodes[record["episode_id"]]
        assert sum(m["role"] == "assistant" for m in record["messages"]) == len(episode.turns)
