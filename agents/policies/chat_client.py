"""Asks an OpenAI-compatible endpoint, patiently and within a deadline, and says in one line what went wrong."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gagar_env.agents.policies.chat_history import Message
from gagar_env.agents.policies.chat_wire import NoCompletionError, OutOfTimeError, complete
from gagar_env.errors import MissingDependencyError, ModelError, PromptTooLongError

if TYPE_CHECKING:
    import openai

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
_MAX_SAID = 300
_OVERFLOW = re.compile(
    r"context[ _](length|size|window)|maximum (context|model|prompt)|too many (input )?tokens|prompt is too long"
    r"|exceeds? (the )?(available |maximum |model)?context|input is too long|reduce the length",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool, as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What an endpoint answered.

    Attributes:
        text: Empty when there is none.
        calls: Of tools.
        refusal: What the model, or a filter, said in place of an answer; empty when it answered.
        cut: It ended at the limit of tokens.
        prompt_tokens: As the endpoint counted them; 0 when it does not say, as for the next.
        completion_tokens: Of this reply.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    refusal: str = ""
    cut: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatClient:
    """One endpoint. Thread-safe; pickles without its connections.

    What is worth another try (429, 408, 409, 5xx, a broken connection, a reply that is no completion) is tried
    again after the time that the endpoint names, or after a wait that doubles from half a second, with jitter.

    Args:
        base_url: Of the endpoint, with its version, such as `http://127.0.0.1:8000/v1`; empty for OpenAI's own
            or what OPENAI_BASE_URL says.
        api_key: Empty for what OPENAI_API_KEY says. An endpoint that has a `base_url` may need none.
        deadline_s: Seconds for one answer, waits included.
        retries: Further tries of one answer.
    """

    def __init__(self, *, base_url: str = "", api_key: str = "", deadline_s: float = 300.0, retries: int = 5) -> None:
        if not deadline_s > 0 or retries < 0:
            raise ValueError(f"deadline_s must be > 0 and retries >= 0, got {deadline_s} and {retries}")
        self.base_url = base_url
        self.retried = 0
        self._api_key = api_key
        self._deadline_s = deadline_s
        self._retries = retries
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._openai: openai.OpenAI | None = None

    def __repr__(self) -> str:
        return f"ChatClient({self.base_url!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_closed", "_openai")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def close(self) -> None:
        """Close the connections; whoever waits for another try gives up. A later `ask` opens it again."""
        with self._lock:
            client, self._openai = self._openai, None
            self._closed.set()
            self._closed = threading.Event()
        if client is not None:
            client.close()

    def ask(
        self,
        messages: list[Message],
        *,
        left_s: float | None = None,
        before: Callable[[], None] | None = None,
        failed: Callable[[], None] | None = None,
        **request: Any,
    ) -> Reply:
        """One answer.

        Args:
            messages: What was said so far.
            left_s: Seconds for it, if that is less than `deadline_s`.
            before: Called before each try; what it raises ends it.
            failed: Called after each try that brought no reply.
            request: Further fields.

        Raises:
            PromptTooLongError: If the prompt is too long.
            ModelError: One line, if there is no answer within tries and deadline.
            TimeoutError: If `left_s` is over, or would be before another try.
            MissingDependencyError: Without the extra `llm`.
        """
        client, closed = self._client()
        limit_s = self._deadline_s if left_s is None else min(left_s, self._deadline_s)
        ends_at = time.monotonic() + limit_s
        for attempt in range(self._retries + 1):
            if before is not None:
                before()
            try:
                left = max(0.01, ends_at - time.monotonic())
                return _read(complete(client, left, {"messages": messages, **request}))
            except Exception as error:
                fault = self._fault(error)
                late = isinstance(error, OutOfTimeError) or time.monotonic() >= ends_at
                wait_s = None if late else _wait_s(error, attempt)
            if failed is not None:
                failed()
            if late or (wait_s is not None and time.monotonic() + wait_s >= ends_at and attempt < self._retries):
                kind = ModelError if limit_s == self._deadline_s else TimeoutError
                raise kind(f"no answer in {round(limit_s, 2):g} seconds: {fault}")
            if wait_s is None or attempt == self._retries:
                raise fault
            with self._lock:
                self.retried += 1
            if closed.wait(wait_s):
                raise ModelError(f"closed while it waited for another try: {fault}")
        raise AssertionError("unreachable")

    def _client(self) -> tuple[openai.OpenAI, threading.Event]:
        with self._lock:
            if self._openai is None:
                self._openai = open_client(self.base_url, self._api_key)
            return self._openai, self._closed

    def _fault(self, error: Exception) -> ModelError:
        said = self.one_line(error)
        if getattr(error, "status_code", None) in (400, 413, 422, 500) and _overflows(error):
            return PromptTooLongError(said)
        return ModelError(said)

    def one_line(self, error: Exception) -> str:
        """What went wrong, without the key, should the endpoint have repeated it."""
        where = self.base_url or os.environ.get("OPENAI_BASE_URL") or "OpenAI's endpoint"
        text = " ".join(str(error).split())
        for secret in (self._api_key, os.environ.get("OPENAI_API_KEY", "")):
            if secret:
                text = text.replace(secret, "***")
        cause = error.__cause__
        if cause is not None and not hasattr(error, "status_code"):
            text = f"{text} ({type(cause).__name__}: {' '.join(str(cause).split())})"
        return f"{where}: {type(error).__name__}: {text[:_MAX_SAID]}"


def check_extra() -> None:
    """Say at once what a policy lacks, not once in each of its episodes.

    Raises:
        MissingDependencyError: Without the extra `llm`.
    """
    if importlib.util.find_spec("openai") is None:
        raise MissingDependencyError("asking a model needs the extra `llm`: pip install 'gagar-env[llm]'")


def open_client(base_url: str, api_key: str) -> openai.OpenAI:
    """A client of OpenAI's library that does not try again by itself.

    Raises:
        MissingDependencyError: Without the extra `llm`.
        ModelError: If there is no key and OpenAI's own endpoint wants one.
    """
    check_extra()
    import openai

    key = api_key or os.environ.get("OPENAI_API_KEY") or ""
    if not key and not (base_url or os.environ.get("OPENAI_BASE_URL")):
        raise ModelError("no model endpoint: give its base URL, or set OPENAI_API_KEY for OpenAI's own")
    return openai.OpenAI(base_url=base_url or None, api_key=key or "none", max_retries=0)


def _wait_s(error: Exception, attempt: int) -> float | None:
    """Seconds until another try; None when it is of no use."""
    import openai

    if isinstance(error, openai.APIStatusError):
        code = error.status_code
        quota = "insufficient_quota" in str(getattr(error, "code", ""))
        if quota or _overflows(error) or not (code in (408, 409, 429) or code >= 500):
            return None
        hint = error.response.headers.get("retry-after", "")
        try:
            return min(max(0.0, float(hint)), 3600.0)
        except ValueError:
            pass
    elif not isinstance(error, (openai.APIConnectionError, openai.APIResponseValidationError, NoCompletionError)):
        return None
    return min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0**attempt) * random.uniform(0.5, 1.0)


def _overflows(error: Exception) -> bool:
    code = getattr(error, "code", None)
    return "context_length" in str(code) or bool(_OVERFLOW.search(str(error)))


def _read(completion: Any) -> Reply:
    choices = completion.choices
    usage = getattr(completion, "usage", None)
    prompt, written = (_count(getattr(usage, name, 0)) for name in ("prompt_tokens", "completion_tokens"))
    message = getattr(choices[0], "message", None) if choices else None
    if message is None:
        return Reply(prompt_tokens=prompt, completion_tokens=written)
    content = getattr(message, "content", None)
    finish = getattr(choices[0], "finish_reason", None)
    text = content if isinstance(content, str) else ""
    refusal = str(getattr(message, "refusal", None) or "")
    if finish == "content_filter" and not refusal:
        refusal = text or "a content filter stopped it"
    calls: list[Call] = []
    for call in getattr(message, "tool_calls", None) or ():
        function = getattr(call, "function", None)
        name, arguments = getattr(function, "name", None), getattr(function, "arguments", None)
        shown = arguments if isinstance(arguments, str) else ""
        calls.append(Call(id=str(getattr(call, "id", None) or f"call_{len(calls)}"), name=str(name), arguments=shown))
    return Reply(
        text=text,
        calls=tuple(calls),
        refusal=refusal,
        cut=finish == "length",
        prompt_tokens=prompt,
        completion_tokens=written,
    )


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
