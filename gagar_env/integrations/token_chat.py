"""`TokenPolicy`: a local model acts, and every turn continues the very tokens of the turn before.

Encoding a chat anew in each turn gives other ids for text that the model itself wrote, now and then: the episode then
falls apart into several rows. Here nothing is encoded twice. What the model sampled stays as it is, and only the new
observation is added, framed as the chat template frames it. An episode is one row, whose history is never cut: when it
is full, the episode ends with status `policy_limit`, and is verified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gagar_env.acting import SampledTokens
from gagar_env.actions import ActionFormat
from gagar_env.agents.policies.batched import BatchedPolicy, Generated
from gagar_env.agents.policies.chat import system_prompt, without_thought
from gagar_env.errors import PolicyLimitError
from gagar_env.tasks.task import Task

Completion = tuple[Sequence[int], Sequence[float] | None]
"""Sampled ids, an end token included, and the log-probability of each, if they are known."""

Generate = Callable[[list[list[int]]], Sequence[Completion]]

_SENTINEL = "gagar0sentinel0gagar"


class ChatFrame:
    """Frames texts as a chat template does.

    Args:
        tokenizer: Of Hugging Face's `transformers`, with a chat template.
        template: Further arguments of `apply_chat_template`, such as `enable_thinking`.

    Raises:
        ValueError: If it has no chat template, or one that leaves out what an assistant said.
    """

    def __init__(self, tokenizer: Any, **template: Any) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError("the tokenizer has no chat template: set tokenizer.chat_template")
        self.tokenizer = tokenizer
        self._template = template
        said = [{"role": "system", "content": _SENTINEL}, {"role": "user", "content": "an observation"}]
        try:
            self._takes_system = _SENTINEL in self._render(said)  # some templates leave it out without a word
        except Exception:  # others refuse that role
            self._takes_system = False
        self.next("an observation")

    def first(self, system: str, observation: str) -> list[int]:
        """The ids of a whole prompt: a system message unless it is empty, and the first observation.

        Where the template has no such role, the system message comes before the observation.
        """
        messages = [{"role": "system", "content": system}] if system and self._takes_system else []
        said = f"{system}\n\n{observation}" if system and not self._takes_system else observation
        return self._encode(self._render([*messages, {"role": "user", "content": said}]))

    def next(self, observation: str, *, end_id: int | None = None) -> list[int]:
        """The ids between a sampled answer and the next one.

        Args:
            observation: What the model reads now.
            end_id: The end token that the answer has already; None if it was cut.
        """
        chat = [("user", "-"), ("assistant", _SENTINEL), ("user", observation)]
        text = self._render([{"role": role, "content": content} for role, content in chat])
        _, found, rest = text.partition(_SENTINEL)
        if not found:
            raise ValueError("the chat template does not show what the assistant said")
        end = "" if end_id is None else str(self.tokenizer.decode([end_id]))
        if end and rest.lstrip().startswith(end):
            rest = rest.lstrip().removeprefix(end)
        return self._encode(rest)

    def text(self, ids: Sequence[int]) -> str:
        """What ids say, without special tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def _render(self, messages: list[dict[str, str]]) -> str:
        rendered = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **self._template
        )
        return str(rendered)

    def _encode(self, text: str) -> list[int]:
        return [int(i) for i in self.tokenizer(text, add_special_tokens=False)["input_ids"]]


class TokenPolicy:
    """Generates for all episodes that wait, as `BatchedPolicy` does, from ids to ids.

    Args:
        generate: Prompts in, one completion each out. If it raises, the episodes of that batch end with status `error`.
        chat: Frames what the model reads.
        end_ids: Tokens that end an answer.
        max_new_tokens: Most tokens that `generate` gives.
        context_tokens: Most tokens of an episode, its first prompt included.
        completion_tokens: Most tokens after the first prompt, observations included; None sets no limit.
        max_batch, max_wait_s, system_prompt, name: See `BatchedPolicy`.

    Raises:
        ValueError: If a number is out of range.
    """

    def __init__(
        self,
        generate: Generate,
        chat: ChatFrame,
        *,
        end_ids: Sequence[int],
        max_new_tokens: int,
        context_tokens: int,
        completion_tokens: int | None = None,
        max_batch: int = 8,
        max_wait_s: float = 0.05,
        system_prompt: str | None = None,
        name: str = "model",
    ) -> None:
        if max_new_tokens < 1 or context_tokens <= max_new_tokens:
            raise ValueError(
                f"max_new_tokens must be 1 or more and below context_tokens, got {max_new_tokens} and {context_tokens}"
            )
        if completion_tokens is not None and completion_tokens < max_new_tokens:
            raise ValueError(f"completion_tokens must be max_new_tokens or more, got {completion_tokens}")

        def answers(chats: list[list[dict[str, Any]]]) -> list[Generated]:
            prompts = [chat[0]["ids"] for chat in chats]
            return [
                Generated.of(self.chat.text(ids), prompt, list(ids), logprobs)
                for prompt, (ids, logprobs) in zip(prompts, generate(prompts), strict=True)
            ]

        self.name = name
        self.chat = chat
        self.end_ids = frozenset(end_ids)
        self.max_new_tokens = max_new_tokens
        self.context_tokens = context_tokens
        self.completion_tokens = completion_tokens
        self.system_prompt = system_prompt
        self.batcher = BatchedPolicy(answers, max_batch=max_batch, max_wait_s=max_wait_s).batcher

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> TokenActor:
        """See `gagar_env.rollout.Policy`."""
        prompt = system_prompt(actions.name) if self.system_prompt is None else self.system_prompt
        return TokenActor(self, prompt, seed)


class TokenActor:
    """One of the episodes.

    Attributes:
        sampled: The tokens of the last answer.
    """

    def __init__(self, policy: TokenPolicy, system: str, seed: int) -> None:
        self.sampled: SampledTokens | None = None
        self._policy = policy
        self._system = system
        self._ids: list[int] = []
        self._first = 0
        self._seed = seed

    def act(self, observation: str) -> str:
        """See `gagar_env.rollout.Actor`."""
        policy, fresh = self._policy, not self._ids
        if fresh:
            prompt = policy.chat.first(self._system, observation)
            self._first = len(prompt)
        else:
            end_id = self._ids[-1] if self._ids[-1] in policy.end_ids else None
            prompt = [*self._ids, *policy.chat.next(observation, end_id=end_id)]
        size = len(prompt) + policy.max_new_tokens
        if size > policy.context_tokens and fresh:  # no episode of this task can ever begin: a fault of the set-up
            raise ValueError(
                f"the first prompt has {len(prompt)} tokens: no room for {policy.max_new_tokens} more in a context of "
                f"{policy.context_tokens}"
            )
        if size > policy.context_tokens:
            raise PolicyLimitError(f"{len(prompt)} tokens leave no room in a context of {policy.context_tokens}")
        if policy.completion_tokens is not None and size - self._first > policy.completion_tokens:
            raise PolicyLimitError(f"no room in {policy.completion_tokens} tokens after the first prompt")
        answer = policy.batcher.ask([{"ids": prompt}], self._seed)
        assert isinstance(answer, Generated)
        self.sampled = answer.sampled
        assert self.sampled is not None
        self._ids = [*prompt, *self.sampled.completion_ids]
        return without_thought(answer.text)
