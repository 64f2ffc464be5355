"""A real HTTP server that speaks the chat-completions protocol and says what a script says. Stands in for a model.

A script is a function of the request (its JSON) and its number, from 0, that gives a reply: `text("...")`,
`tool_call("submit", {...})`, `tool_calls(...)`, `refusal()`, `filtered()`, `error(429, retry_after=1)`, `cut()`,
`reset()` or `slow(seconds, reply)`. `replies(a, b, c)` is the script that gives one after the other, the last for ever.

    def test_it(chat_server):
        chat_server.script = replies(error(500), text("hello"))
        ...  # ask chat_server.url, which ends in /v1
        assert len(chat_server.requests) == 2
"""

import json
import os
import socket
import struct
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Request = dict[str, Any]
Reply = dict[str, Any]
Script = Callable[[Request, int], Reply]


def text(content: str | None, *, finish: str = "stop", usage: tuple[int, int] | None = None) -> Reply:
    """Plain text. `finish="length"` is a reply that was cut at the token limit; `usage` are prompt and completion."""
    return {"message": {"role": "assistant", "content": content}, "finish": finish, "usage": usage}


def tool_calls(*calls: tuple[str, Any], content: str | None = None, usage: tuple[int, int] | None = None) -> Reply:
    """Calls of tools, each a name and arguments; arguments that are a string are sent as they are."""
    made = [
        {
            "id": f"call_{number}_{name}",
            "type": "function",
            "function": {"name": name, "arguments": args if isinstance(args, str) else json.dumps(args)},
        }
        for number, (name, args) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": content, "tool_calls": made}
    return {"message": message, "finish": "tool_calls", "usage": usage}


def tool_call(name: str, args: Any, *, usage: tuple[int, int] | None = None) -> Reply:
    """One call of a tool."""
    return tool_calls((name, args), usage=usage)


def refusal(said: str = "I can't help with that.") -> Reply:
    """A refusal field beside empty content."""
    return {"message": {"role": "assistant", "content": None, "refusal": said}, "finish": "stop", "usage": None}


def filtered() -> Reply:
    """A reply that a content filter blocked: no text."""
    return text(None, finish="content_filter")


def error(
    status: int, message: str = "no", *, code: str | None = None, retry_after: float | str | None = None
) -> Reply:
    """An error of the server or provider."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    body = {"error": {"message": message, "type": "error", "param": None, "code": code}}
    return {"status": status, "headers": headers, "body": body}


def overflow() -> Reply:
    """What providers say when the prompt is longer than the context."""
    return error(400, "This model's maximum context length is 8192 tokens.", code="context_length_exceeded")


def cut() -> Reply:
    """The connection ends in the middle of the body."""
    return {"fault": "cut"}


def reset() -> Reply:
    """The connection is reset before a reply."""
    return {"fault": "reset"}


def drip(part: str = "body") -> Reply:
    """A byte now and then, without an end: of the `body`, or of the `headers`."""
    return {"fault": f"drip {part}"}


def slow(seconds: float, reply: Reply | None = None) -> Reply:
    """The reply comes late; with many seconds, never. The end of the server does not wait for it."""
    return {**(reply or text("late")), "after_s": seconds}


def replies(*given: Reply) -> Script:
    """One after the other, the last for ever."""
    return lambda request, number: given[min(number, len(given) - 1)]


class ChatServer:
    """The server. Listens from the start; `close` ends every connection and thread."""

    def __init__(self) -> None:
        self.script: Script = replies(text("hello"))
        self.requests: list[Request] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[BaseException] = []
        """What scripts raised: the test fails for it."""
        self.over = threading.Event()
        self.lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="chat-server")
        self._thread.start()

    @property
    def url(self) -> str:
        """Base URL, for clients of OpenAI's protocol."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer(self, request: Request, headers: dict[str, str]) -> Reply:
        """What the script says to a request, which is noted."""
        with self.lock:
            number = len(self.requests)
            self.requests.append(request)
            self.headers.append(headers)
        try:
            return self.script(request, number)
        except Exception as fault:
            self.faults.append(fault)
            return error(400, f"the script of the test raised {fault!r}")

    def opened(self, connection: socket.socket) -> None:
        with self.lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self.lock:
            self._connections.discard(connection)

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        with self.lock:
            for connection in self._connections:
                with _ignored():
                    connection.shutdown(socket.SHUT_RDWR)
        self._server.server_close()  # joins the threads


class _ignored:
    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        return kind is not None and issubclass(kind, OSError)


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 64

    def __init__(self, chat: ChatServer) -> None:
        self.chat = chat
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self):
        socket.socket.bind(self.socket, self.server_address)  # the library's looks up the host's name
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address

    def handle_error(self, request, client_address):
        """Clients that go away are what these tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self):
        super().setup()
        self.server.chat.opened(self.connection)

    def finish(self):
        self.server.chat.closed(self.connection)
        with _ignored():
            super().finish()

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = [{"id": "scripted", "object": "model", "created": 0, "owned_by": "tests"}]
        self._send(200, {}, {"object": "list", "data": models})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/chat/completions"):
            self._send(404, {}, {"error": {"message": f"no {self.path}"}})
            return
        reply = self.server.chat.answer(request, dict(self.headers.items()))
        if wait := reply.get("after_s"):
            self.server.chat.over.wait(wait)
        if fault := reply.get("fault"):
            self._break(fault)
        elif "status" in reply:
            self._send(reply["status"], reply["headers"], reply["body"])
        else:
            self._send(200, {}, _completion(request, reply))

    def _break(self, fault):
        self.close_connection = True
        if fault == "cut":
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"
                b'{"id": "half", "choices": [{"mess'
            )
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
        elif fault.startswith("drip"):
            body = b"Content-Type: application/json\r\nContent-Length: 99999\r\n\r\n"
            with _ignored():
                self.wfile.write(b"HTTP/1.1 200 OK\r\n" + (body if fault == "drip body" else b"X-Slow: "))
                while not self.server.chat.over.wait(0.05):
                    self.wfile.write(b" ")
        else:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()  # the server's shutdown finds it closed: a reset goes out

    def _send(self, status, headers, body):
        data = json.dumps(body).encode()
        with _ignored():
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            return
        self.close_connection = True


def _completion(request, reply):
    message = reply["message"]
    prompt, completion = reply["usage"] or (len(json.dumps(request)) // 4, len(json.dumps(message)) // 4)
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.get("model", "scripted"),
        "choices": [{"index": 0, "message": message, "finish_reason": reply["finish"], "logprobs": None}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
    }


@pytest.fixture
def chat_server(monkeypatch, tmp_path):
    """A server of the test's own; what its script raised fails the test."""
    if "SSL_CERT_FILE" not in os.environ:
        monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))  # there is no TLS here, and reading all certificates is slow
    server = ChatServer()
    try:
        yield server
    finally:
        server.close()
    assert not server.faults, server.faults
