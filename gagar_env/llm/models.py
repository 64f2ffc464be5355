"""Connects to models through pydantic-ai, with budgets and with retries of our own.

Needs the `llm` extra.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRequestTimeout,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from gagar_env.errors import GradingError, MissingDependencyError, ModelError, PromptTooLongError
from gagar_env.grading import FailureKind, Usage
from gagar_env.llm.budget import Meter, OverBudgetError
from gagar_env.llm.estimates import CHARACTERS_PER_TOKEN as CHARACTERS_PER_TOKEN
from gagar_env.llm.estimates import prompt_tokens
from gagar_env.llm.secrets import redact, secrets_of

_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
FIRST_WAIT_S = 0.5
_MOST_WAIT_S = 60.0
MOST_ASKED_S = 300.0
"""A provider that asks for a longer wait is given up."""


class RefusedError(ModelError):
    """The model declined."""


def connect(
    model: str | Model,
    *,
    base_url: str = "",
    api_key: str = "",
    meter: Meter | None = None,
    attempts: int = 5,
    request_s: float = 300.0,
    context_tokens: int | None = None,
) -> Model:
    """A model that keeps to a budget and bears with a provider's bad moments.

    What it holds open belongs to one event loop: make one for each, and use it in `async with`.

    Args:
        model: With `base_url`, the name that the endpoint knows. Without, a name of pydantic-ai's, `provider:name`, or
            a model object of pydantic-ai.
        base_url: Of an endpoint that speaks the chat-completions protocol: vLLM, SGLang, llama.cpp, hosted ones.
        api_key: For it; by default `OPENAI_API_KEY`, if the endpoint needs one.
        meter: What is spent counts here, and is limited by it.
        attempts: At most so many for one request: too many requests, server errors and broken connections are tried
            again after a wait that grows and is drawn, or as long as the provider asks for, if that
            is within the deadline and five minutes.
        request_s: Seconds for one attempt.
        context_tokens: A prompt that is longer, by estimate, is not sent.

    Raises:
        GradingError: If there is no such model, or it cannot be set up; says what is missing.
        MissingDependencyError: Naming the extra of pydantic-ai that a provider needs.
    """
    found = find_model(model, base_url=base_url, api_key=api_key)
    return Metered(found, meter or Meter(), attempts=attempts, request_s=request_s, context_tokens=context_tokens)


def find_model(model: str | Model, *, base_url: str = "", api_key: str = "") -> Model:
    """The bare model, without budget or retries; see `connect`."""
    try:
        if isinstance(model, Model):
            return model
        return _compatible(model, base_url, api_key) if base_url else infer_model(model)
    except ImportError as error:
        raise MissingDependencyError(f"model {model!r}: {_line(error)}") from error
    except (UserError, ValueError) as error:
        hint = "" if ":" in str(model) else "; name it provider:name, or give base_url"
        raise GradingError(f"model {model!r}: {_line(error)}{hint}") from error


def _compatible(name: str, base_url: str, api_key: str) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    provider = OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=api_key or None)
    return OpenAIChatModel(name, provider=provider)


class Metered(WrapperModel):
    """A model with a budget and retries; for the arguments see `connect`."""

    def __init__(
        self, wrapped: Model, meter: Meter, *, attempts: int, request_s: float, context_tokens: int | None
    ) -> None:
        super().__init__(wrapped)
        self._meter = meter
        self._attempts = attempts
        self._request_s = request_s
        self._context_tokens = context_tokens

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """One reply, after as many attempts as it takes."""
        length = prompt_tokens(messages)
        if self._context_tokens is not None and length > self._context_tokens:
            raise PromptTooLongError(f"a prompt of about {length} tokens is over the context of {self._context_tokens}")
        settings = ModelSettings(**(model_settings or {}))
        if "max_retries" not in self.wrapped.unsupported_settings:
            settings["max_retries"] = 0  # the retries are here, where they are counted
        for attempt in range(1, self._attempts + 1):
            self._meter.take(length)
            try:
                async with asyncio.timeout(self._request_s):  # type: ignore[attr-defined]  # the extra needs 3.11
                    response = await self.wrapped.request(messages, settings, model_request_parameters)
            except Exception as error:
                self._meter.add(Usage(failed_calls=1))
                wait_s = self._wait_s(error, attempt)
                if wait_s is None:
                    raise
                await asyncio.sleep(wait_s)
            except BaseException:  # cancelled
                self._meter.add(Usage(failed_calls=1))
                raise
            else:
                self._meter.add(_usage(response))
                return response
        raise AssertionError("the last attempt returns or raises")

    def _wait_s(self, error: Exception, attempt: int) -> float | None:
        """Seconds before the next attempt; None when there is none."""
        if attempt >= self._attempts or not _is_transient(error):
            return None
        asked = getattr(error, "retry_after", None)
        if asked is not None and float(asked) > MOST_ASKED_S:
            return None
        backoff = min(_MOST_WAIT_S, FIRST_WAIT_S * 2 ** (attempt - 1)) * random.uniform(0.5, 1.0)
        wait_s = backoff if asked is None else float(asked) + backoff * 0.1
        left_s = self._meter.left_s()
        return None if left_s is not None and wait_s >= left_s else wait_s


def _is_transient(error: Exception) -> bool:
    if isinstance(error, ModelQuotaExceededError):
        return False  # waiting brings no money
    if isinstance(error, ModelHTTPError):
        return error.status_code in _TRANSIENT
    return isinstance(error, (ModelConnectionError, ModelRequestTimeout, TimeoutError, ConnectionError)) or (
        type(error) is ModelAPIError
    )


def _usage(response: ModelResponse) -> Usage:
    tokens = response.usage
    cost, known = 0.0, True
    try:
        cost = float(response.cost().total_price if tokens.cost is None else tokens.cost)
    except (LookupError, ValueError, AssertionError):
        known = False
    return Usage(
        prompt_tokens=tokens.input_tokens,
        completion_tokens=tokens.output_tokens,
        cost_usd=cost,
        cost_known=known,
    )


def failure_of(error: BaseException, secrets: Iterable[str] | None = None) -> tuple[FailureKind, str]:
    """What kind of failure an exception of a model's run is, and one line about it.

    Args:
        error: The exception.
        secrets: What the line must not hold; None for the keys of the environment.
    """
    hidden = secrets_of() if secrets is None else tuple(secrets)
    seen: BaseException | None = error
    while seen is not None:
        if (kind := _kind(seen)) is not None:
            return kind, _line(seen, hidden)
        seen = seen.__cause__ or seen.__context__
    return FailureKind.ERROR, _line(error, hidden)


def _kind(error: BaseException) -> FailureKind | None:
    match error:
        case OverBudgetError() | UsageLimitExceeded():
            return FailureKind.BUDGET
        case RefusedError() | ContentFilterError():
            return FailureKind.REFUSED
        case PromptTooLongError() | ModelContextWindowExceededError():
            return FailureKind.OVERFLOW
        case ModelTimeoutError() | ModelRequestTimeout() | TimeoutError():
            return FailureKind.TIMEOUT
        case ModelHTTPError(status_code=status):
            if status == 429:
                return FailureKind.RATE_LIMIT
            return FailureKind.SERVER if status >= 500 else FailureKind.REJECTED
        case ModelAPIError():
            return FailureKind.UNREACHABLE
        case UnexpectedModelBehavior():
            return FailureKind.MALFORMED
        case asyncio.CancelledError():
            return FailureKind.CANCELLED
    return None


def _line(error: BaseException, secrets: Iterable[str] = (), most: int = 300) -> str:
    said = redact(" ".join(str(error).split()), secrets) or type(error).__name__
    return said if len(said) <= most else f"{said[:most]}..."
