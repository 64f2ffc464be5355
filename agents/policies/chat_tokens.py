"""`ChatTokens`: prompts of a local chat model as ids that continue exactly what was sampled before."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from gagar_env.agents.policies.chat_history import Message


class ChatTokens:
    """Encodes chats with a tokenizer's chat template, and answers as the ids that the model sampled.

    To encode an answer again can give other ids than were sampled; the episode then falls into several rows, and its
    log-probabilities belong to other tokens. So what was sampled is remembered by the chat that it answered, and a
    longer chat becomes those ids and the encoding of what its template adds. Where a template rewrites earlier
    messages (some drop the thoughts of earlier answers), the whole chat is encoded anew.

    Safe to share between threads.

    Args:
        tokenizer: With `apply_chat_template`, as those of the transformers library.
        remember: Most answers that are kept; older ones are encoded anew.
    """

    def __init__(self, tokenizer: Any, *, remember: int = 4096) -> None:
        self.tokenizer = tokenizer
        self._remember = remember
        self._known: OrderedDict[tuple[tuple[str, str], ...], list[int]] = OrderedDict()
        self._lock = threading.Lock()

    def prompt(self, chat: Sequence[Message]) -> list[int]:
        """The ids to generate from: the chat, and the header of an answer."""
        text = self._text(chat, ask=True)
        for end in range(len(chat) - 1, 0, -1):
            if chat[end - 1]["role"] != "assistant":
                continue
            with self._lock:
                ids = self._known.get(_key(chat[:end]))
            if ids is None:
                continue
            before = self._text(chat[:end], ask=False)
            tail = self._end_of(chat, end, before, ids)
            if tail is not None and text.startswith(before):
                return [*ids, *self._encode(tail + text[len(before) :])]
            break
        return self._encode(text)

    def sampled(
        self, chat: Sequence[Message], answer: str, prompt_ids: Sequence[int], completion: Sequence[int]
    ) -> None:
        """Remember what was sampled in answer to a chat.

        Args:
            chat: What `prompt` was given.
            answer: The text as it will stand in the history.
            prompt_ids: What `prompt` returned.
            completion: The sampled ids, with the end token if it was sampled.
        """
        key = (*_key(chat), ("assistant", answer))
        with self._lock:
            self._known[key] = [*prompt_ids, *completion]
            while len(self._known) > self._remember:
                self._known.popitem(last=False)

    def _end_of(self, chat: Sequence[Message], end: int, before: str, ids: Sequence[int]) -> str | None:
        """What the template writes after an answer and the model did not sample; None where it cannot be told."""
        ended = bool(ids) and ids[-1] == self.tokenizer.eos_token_id
        header = self._text(chat[: end - 1], ask=True)
        answer = str(chat[end - 1]["content"])
        if not before.startswith(header + answer):
            return None
        closing = before[len(header) + len(answer) :]
        if not ended:
            return closing
        eos = str(self.tokenizer.eos_token)
        return closing.removeprefix(eos) if closing.startswith(eos) else None

    def _text(self, chat: Sequence[Message], *, ask: bool) -> str:
        text: str = self.tokenizer.apply_chat_template(list(chat), tokenize=False, add_generation_prompt=ask)
        return text

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])


def _key(chat: Sequence[Message]) -> tuple[tuple[str, str], ...]:
    return tuple((str(message["role"]), str(message.get("content") or "")) for message in chat)
