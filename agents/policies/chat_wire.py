"""One request on the wire, bounded as a whole: a limit of the library is for one read, and each byte starts it anew."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import openai

T = TypeVar("T")


class OutOfTimeError(Exception):
    """The time is over. Whoever still waits for the server gives up by itself."""


class NoCompletionError(Exception):
    """The endpoint answered something else."""


def within(seconds: float, call: Callable[[], T]) -> T:
    """What `call` gives or raises. It runs in a thread, which is left behind when the time is over.

    Raises:
        OutOfTimeError: If it takes longer.
    """
    given: list[T] = []
    fault: list[BaseException] = []
    over = threading.Event()

    def work() -> None:
        try:
            given.append(call())
        except BaseException as error:
            fault.append(error)
        over.set()

    threading.Thread(target=work, name="gagar-chat", daemon=True).start()
    if not over.wait(seconds):
        raise OutOfTimeError(f"the server was still sending after {seconds:.3g} seconds")
    if fault:
        raise fault[0]
    return given[0]


def complete(client: openai.OpenAI, seconds: float, request: dict[str, Any]) -> Any:
    """A chat completion, as an object of the library.

    Raises:
        OutOfTimeError: If it is not there, whole, in time.
        NoCompletionError: If the reply is something else.
        openai.OpenAIError: What the library raises.
    """
    ends_at = time.monotonic() + seconds
    return within(seconds, lambda: _complete(client, seconds, ends_at, request))


def _complete(client: openai.OpenAI, seconds: float, ends_at: float, request: dict[str, Any]) -> Any:
    import openai
    from openai.types.chat import ChatCompletion

    body = bytearray()
    with client.chat.completions.with_streaming_response.create(timeout=seconds, **request) as response:
        try:
            for part in response.iter_bytes():
                body += part
                if time.monotonic() >= ends_at:
                    break  # nobody waits any more
        except Exception as error:  # of the HTTP library, which is another one in each version
            raise openai.APIConnectionError(request=response.http_request) from error
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("choices"), list):
        raise NoCompletionError(f"the reply is no chat completion: {bytes(body[:100]).decode('utf-8', 'replace')}")
    return ChatCompletion.construct(**found)
