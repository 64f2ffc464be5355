"""`BatchedPolicy`: a local model acts, with the answers of many episodes generated together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gagar_env.acting import SampledTokens, TokenUsage
from gagar_env.actions import ActionFormat
from gagar_env.agents.policies.chat import system_prompt, without_thought
from gagar_env.agents.policies.chat_history import History, Message
from gagar_env.tasks.task import Task


class Generated(NamedTuple):
    """An answer with its tokens: how many, or with `Generated.of` which."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    sampled: SampledTokens | None = None

    @classmethod
    def of(
        cls,
        text: str,
        prompt_ids: Sequence[int],
        completion_ids: Sequence[int],
        logprobs: Sequence[float] | None = None,
    ) -> Generated:
        """An answer with the ids that were read and sampled, see `SampledTokens`: what a learner trains on."""
        sampled = SampledTokens(prompt_ids, completion_ids, logprobs)
        return cls(text, len(prompt_ids), len(completion_ids), sampled)


Generate = Callable[..., Sequence[str | Generated]]
"""Chats in, one answer for each out; with `seeded`, a number for each chat as second argument."""


class BatchedPolicy:
    """Collects what concurrent episodes ask and generates for all of them in one call.

    A batch goes out when it is full, or `max_wait_s` after its first question. One call runs at a time, in the
    thread of one of those who wait: there is no thread of its own. If `generate` raises, the episodes of that
    batch end with status `error`.

    Args:
        generate: Chats in, one text for each out (or `Generated`, so that tokens are recorded).
        max_batch: Most chats of one call.
        max_wait_s: How long the first one waits for others.
        seeded: Whether `generate` is given a number for each chat as well, made from the seed of its episode and the
            turn: what is sampled with it does not depend on which chats happen to share a batch.
        context_tokens: What a chat is cut to, see `chat_history`.
        system_prompt: None for one that fits the format of actions; empty for none.
        name: Recorded with each episode.

    Raises:
        ValueError: If a number is out of range.
    """

    def __init__(
        self,
        generate: Generate,
        *,
        max_batch: int = 8,
        max_wait_s: float = 0.05,
        seeded: bool = False,
        context_tokens: int = 8192,
        system_prompt: str | None = None,
        name: str = "batched",
    ) -> None:
        if max_batch < 1 or not max_wait_s >= 0 or context_tokens < 1:
            raise ValueError("max_batch and context_tokens must be 1 or more, and max_wait_s 0 or more")
        self.name = name
        self.batcher = _Batcher(generate, max_batch, max_wait_s, seeded)
        self.context_tokens = context_tokens
        self.system_prompt = system_prompt

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> BatchedActor:
        """See `gagar_env.rollout.Policy`."""
        prompt = system_prompt(actions.name) if self.system_prompt is None else self.system_prompt
        return BatchedActor(self.batcher, History(prompt, self.context_tokens), seed)


class BatchedActor:
    """One of the episodes.

    Attributes:
        usage: Tokens of the last answer, if they are counted.
        sampled: The tokens themselves, if they are known.
    """

    def __init__(self, batcher: _Batcher, history: History, seed: int) -> None:
        self.usage: TokenUsage | None = None
        self.sampled: SampledTokens | None = None
        self._batcher = batcher
        self._history = history
        self._seed = seed

    def act(self, observation: str) -> str:
        """See `gagar_env.rollout.Actor`."""
        self._history.read(observation)
        answer = self._batcher.ask(self._history.messages(), _number(self._seed, self._history.turns))
        self.usage = self.sampled = None
        if isinstance(answer, Generated):
            self.sampled = answer.sampled
            self.usage = TokenUsage(answer.prompt_tokens, answer.completion_tokens)
            self._history.measured(answer.prompt_tokens)
            answer = answer.text
        text = without_thought(answer)
        self._history.said({"role": "assistant", "content": text})
        return text


class _Question:
    def __init__(self, messages: list[Message], seed: int) -> None:
        self.messages = messages
        self.seed = seed
        self.asked = time.monotonic()
        self.answer: str | Generated | None = None
        self.fault = ""


class _Batcher:
    """Whoever finds a batch ready, and nobody at work, runs it for all that are in it."""

    def __init__(self, generate: Generate, max_batch: int, max_wait_s: float, seeded: bool) -> None:
        self._generate = generate
        self._seeded = seeded
        self._max_batch = max_batch
        self._max_wait_s = max_wait_s
        self._waiting: list[_Question] = []
        self._busy = False
        self._changed = threading.Condition()

    def ask(self, messages: list[Message], seed: int) -> str | Generated:
        """The answer to one chat."""
        question = _Question(messages, seed)
        with self._changed:
            self._waiting.append(question)
            self._changed.notify_all()
        while question.answer is None and not question.fault:
            batch = self._next(question)
            if batch:
                self._run(batch)
        if question.answer is None:
            raise RuntimeError(question.fault)
        return question.answer

    def _next(self, question: _Question) -> list[_Question]:
        """The batch to run now; empty when `question` was answered or it is not yet time."""
        with self._changed:
            if question.answer is not None or question.fault:
                return []
            wait_s: float | None = None
            if not self._busy and self._waiting:
                wait_s = self._waiting[0].asked + self._max_wait_s - time.monotonic()
                if len(self._waiting) >= self._max_batch or wait_s <= 0:
                    batch, self._waiting = self._waiting[: self._max_batch], self._waiting[self._max_batch :]
                    self._busy = True
                    return batch
            self._changed.wait(wait_s)
            return []

    def _run(self, batch: list[_Question]) -> None:
        answers: list[str | Generated] = []
        fault = "the call was interrupted"
        try:
            seeds = [[question.seed for question in batch]] if self._seeded else []
            answers = list(self._generate([question.messages for question in batch], *seeds))
            fault = _fault(answers, len(batch))
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
        finally:
            with self._changed:
                for number, question in enumerate(batch):
                    question.fault = fault
                    question.answer = None if fault else answers[number]
                self._busy = False
                self._changed.notify_all()


def _number(seed: int, turn: int) -> int:
    """63 bits for one answer of one episode."""
    return int(np.random.SeedSequence((seed, turn)).generate_state(1, np.uint64)[0] >> 1)


def _fault(answers: list[str | Generated], wanted: int) -> str:
    if len(answers) != wanted:
        return f"generate gave {len(answers)} answers to {wanted} chats"
    strange = [type(a).__name__ for a in answers if not isinstance(a, (str, Generated))]
    return f"generate must give texts, it gave {strange[0]}" if strange else ""
