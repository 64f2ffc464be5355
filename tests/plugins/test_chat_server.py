"""The stand-in for a model, asked by a plain client."""

import http.client
import json

import pytest
from chat_server import cut, error, refusal, replies, reset, slow, text, tool_call


def ask(server, **request):
    client = http.client.HTTPConnection(server.url.split("/")[2], timeout=5)
    try:
        client.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "messages": [], **request}))
        reply = client.getresponse()
        return reply.status, reply.headers, json.loads(reply.read())
    finally:
        client.close()


def test_it_says_what_the_script_says_and_keeps_what_it_was_asked(chat_server):
    chat_server.script = replies(text("one"), tool_call("submit", {"a": 1}), refusal(), error(429, retry_after=2))
    assert ask(chat_server, seed=1)[2]["choices"][0]["message"]["content"] == "one"
    call = ask(chat_server)[2]["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("submit", {"a": 1})
    assert ask(chat_server)[2]["choices"][0]["message"]["refusal"]
    status, headers, body = ask(chat_server)
    assert (status, headers["Retry-After"], body["error"]["message"]) == (429, "2", "no")
    assert [r.get("seed") for r in chat_server.requests] == [1, None, None, None]


def test_it_breaks_as_servers_break(chat_server):
    chat_server.script = replies(cut(), reset(), slow(0.01, text("at last")))
    with pytest.raises(http.client.IncompleteRead):
        ask(chat_server)
    with pytest.raises(ConnectionResetError):
        ask(chat_server)
    assert ask(chat_server)[2]["choices"][0]["message"]["content"] == "at last"
