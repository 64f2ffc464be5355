"""`ChatPolicy`: a model behind an OpenAI-compatible endpoint acts (vLLM, SGLang, llama.cpp, hosted ones)."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from gagar_env.acting import TokenUsage
from gagar_env.actions import ActionFormat
from gagar_env.agents.policies.chat_client import ChatClient, Reply, check_extra
from gagar_env.agents.policies.chat_history import History
from gagar_env.agents.policies.chat_tools import action_of, call_message, tools_of
from gagar_env.errors import PolicyLimitError, PromptTooLongError
from gagar_env.grading import Usage
from gagar_env.llm.budget import Budget, Meter, OverBudgetError
from gagar_env.tasks.task import Task

BASE_PROMPT = (
    "You resolve an issue in a repository. Look before you change, change what the issue needs and nothing else, "
    "run it to see that it works, then submit."
)
HOW_TO_ACT = {
    "bash": (
        "Answer each time with a short thought and exactly one ```bash block. "
        "To end, answer with a block that holds the word submit alone."
    ),
    "tools": "Answer each time with exactly one JSON object that calls a tool, and nothing else.",
    "native": "Act only by calling the tools that you are given, one call in each answer.",
}
_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>\s*", re.DOTALL)
_BUDGET = "the policy"
_NOTHING = "(no text)"
"""In the history for an answer without text, which some endpoints refuse."""


class ChatPolicy:
    """A model acts. Shown are the observations only; the task's secrets and the key are not.

    The action is the text as the model wrote it, without a leading `<think>` part: the environment's format
    takes the fenced block out of it. With `native_tools` the model calls the tools of the format, or `bash` and
    `submit` in other formats, and the first call of an answer becomes the action.

    - History: see `chat_history`: system prompt, first observation, and the newest turns that fit.
    - The endpoint says that the prompt is too long: it is asked once more with half of it. If that is too long
      too, the episode ends with status `policy_limit` and is verified.
    - A refusal or a filtered answer is counted and is an empty action, which does nothing; so is no text at all.
    - 429, 5xx and broken connections are tried again within `retries` and `deadline_s`; after that, as with a
      wrong key, the episode has no result (status `error`).
    - With a seed, each request has one of its own, drawn from it, the episode's and the turn's.

    Args:
        model: Name of the model at the endpoint.
        base_url: See `ChatClient`, as for `api_key`, `deadline_s` (of one answer) and `retries`.
        temperature: None leaves it to the endpoint, as for the next.
        max_tokens: Most tokens of one answer.
        context_tokens: Of the model: prompt and answer together fit in here.
        native_tools: Let the model call tools by the protocol; else it writes text.
        system_prompt: None for one that fits the format of actions; empty for none.
        seed: None sends no seeds: some endpoints take none.
        budget: Limits for all episodes together, or a meter that is shared with others. When it is spent, episodes end
            with status `policy_limit`; its seconds end a request in flight, too. Failed tries count as requests.
            Prices are not known here.
        extra_body: Further fields of each request, as the endpoint names them.

    Attributes:
        name: `chat:` and the model.

    Raises:
        ValueError: If a number is out of range.
        MissingDependencyError: Without the extra `llm`.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "",
        api_key: str = "",
        temperature: float | None = 1.0,
        max_tokens: int | None = 2048,
        context_tokens: int = 32_768,
        native_tools: bool = False,
        system_prompt: str | None = None,
        seed: int | None = 0,
        budget: Budget | Meter | None = None,
        extra_body: Mapping[str, Any] | None = None,
        deadline_s: float = 300.0,
        retries: int = 5,
    ) -> None:
        check_extra()
        if not model.strip():
            raise ValueError("a chat policy needs the name of a model")
        if context_tokens <= (max_tokens or 0):
            raise ValueError(f"context_tokens must be more than max_tokens, got {context_tokens} and {max_tokens}")
        self.name = f"chat:{model}"
        self.model = model
        self.client = ChatClient(base_url=base_url, api_key=api_key, deadline_s=deadline_s, retries=retries)
        self.native_tools = native_tools
        self.seed = seed
        self.meter = budget if isinstance(budget, Meter) else Meter(budget, name=_BUDGET)
        self._budget = self.meter.budget
        self.prompt_tokens = context_tokens - (max_tokens or 0)
        self.system_prompt = system_prompt
        self._request: dict[str, Any] = {"model": model}
        self._request |= {"temperature": temperature} if temperature is not None else {}
        self._request |= {"max_tokens": max_tokens} if max_tokens is not None else {}
        self._request |= {"extra_body": dict(extra_body)} if extra_body else {}
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "meter")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self.meter = Meter(self._budget, name=_BUDGET)  # each process counts for itself

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> ChatActor:
        """See `gagar_env.rollout.Policy`."""
        return ChatActor(self, actions, seed)

    @property
    def counts(self) -> dict[str, int]:
        """What happened so far: `answers`, their tokens, and of the rest (`retried`, `refused`, ...) what occurred."""
        with self._lock:
            return {**self._counts, **({"retried": self.client.retried} if self.client.retried else {})}

    def count(self, **what: int) -> None:
        """Add to `counts`; thread-safe."""
        with self._lock:
            self._counts.update({name: number for name, number in what.items() if number})

    def ask(self, history: History, **request: Any) -> tuple[Reply, TokenUsage]:
        """One answer to a history, and its tokens: the endpoint's count, or an estimate where it gives none.

        Raises:
            PolicyLimitError: If the context is full even with half of what is there, or the budget is spent.
            ModelError: If there is no answer.
        """
        for last in (False, True):
            messages = history.messages()
            try:
                reply = self.client.ask(
                    messages,
                    left_s=self.meter.left_s(),
                    before=lambda: self.meter.take(history.estimate()),
                    failed=lambda: self.meter.add(Usage(failed_calls=1)),
                    **{**self._request, **request},
                )
            except PromptTooLongError as error:
                self.count(overflowed=1)
                if last:
                    raise PolicyLimitError(f"the context is full: {error}") from error
                history.shrink()
                continue
            except (OverBudgetError, TimeoutError) as error:
                self.count(over_budget=1)
                raise PolicyLimitError(str(error)) from error
            usage = usage_of(reply, history)
            history.measured(reply.prompt_tokens)
            self.meter.add(Usage(**usage._asdict()))
            self.count(
                answers=1,
                **usage._asdict(),
                shortened=bool(history.dropped),
                refused=bool(reply.refusal),
                cut=reply.cut,
                empty=not (reply.text.strip() or reply.calls or reply.refusal),
            )
            return reply, usage
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections. It may be used again."""
        self.client.close()

    def __enter__(self) -> ChatPolicy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class ChatActor:
    """A model at work in one episode.

    Attributes:
        usage: Tokens of the last answer.
    """

    def __init__(self, policy: ChatPolicy, actions: ActionFormat, seed: int) -> None:
        self.usage: TokenUsage | None = None
        self._policy = policy
        self._actions = actions
        self._seed = seed
        self._tools = tools_of(actions) if policy.native_tools else []
        system = policy.system_prompt
        self._history = History(
            system_prompt("native" if self._tools else actions.name) if system is None else system,
            policy.prompt_tokens,
        )

    def act(self, observation: str) -> str:
        """See `gagar_env.rollout.Actor`."""
        history = self._history
        history.read(observation)
        request: dict[str, Any] = {"tools": self._tools} if self._tools else {}
        if self._policy.seed is not None:
            chance = random.Random(f"{self._policy.seed} {self._seed} {history.turns}")
            request["seed"] = chance.randrange(2**31)
        reply, self.usage = self._policy.ask(history, **request)
        calls = reply.calls if self._tools else ()
        text = without_thought(reply.text)
        if calls:
            history.said(call_message(text, calls))
            return action_of(calls[0], self._actions)
        history.said({"role": "assistant", "content": text or reply.refusal or _NOTHING})
        return "" if reply.refusal else text


def usage_of(reply: Reply, history: History) -> TokenUsage:
    """See `ChatPolicy.ask`."""
    written = len(reply.text) + sum(len(call.arguments) for call in reply.calls)
    return TokenUsage(reply.prompt_tokens or history.estimate(), reply.completion_tokens or -(-written // 4))


def system_prompt(how: str) -> str:
    """The prompt for a format of actions, or `native`."""
    return f"{BASE_PROMPT} {HOW_TO_ACT[how]}" if how in HOW_TO_ACT else BASE_PROMPT


def without_thought(text: str) -> str:
    """The text without a leading part in `<think>` tags."""
    return _THOUGHT.sub("", text, count=1)
