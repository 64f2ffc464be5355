"""What an action is, and what a format of actions must do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from gagar_env.sandbox.base import ExecResult, Sandbox
from gagar_env.trajectory import SampledTokens


@runtime_checkable
class SandboxAction(Protocol):
    """An action that does something in the sandbox. Formats may bring their own."""

    def perform(self, sandbox: Sandbox, *, timeout_s: float, max_output_bytes: int) -> ExecResult:
        """Do it; the result is what the agent reads next.

        Raises:
            SandboxError: If the sandbox broke. What the agent did wrong is a result with an exit
                code.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Run a bash script in the work tree."""

    command: str

    def perform(
        self,
        sandbox: Sandbox,
        *,
        timeout_s: float,
        max_output_bytes: int,
    ) -> ExecResult:
        """See `SandboxAction.perform`."""
        return sandbox.run(self.command, timeout_s=timeout_s, max_output_bytes=max_output_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """The agent is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadAction:
    """The text is no action; `problem` is the observation that explains it."""

    problem: str


class Answer(str):
    """The text of an action with what is known about it. Survives pickling, so it reaches worker processes.

    Attributes:
        prompt_tokens: What the model read for it.
        completion_tokens: What the model wrote.
        ends: Why the policy cannot go on, if it cannot: the episode ends here and the text is not run.
        sampled: The tokens themselves, where they are known.
    """

    prompt_tokens: int
    completion_tokens: int
    ends: str
    sampled: SampledTokens | None

    def __new__(
        cls,
        text: str = "",
        *,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        ends: str = "",
        sampled: SampledTokens | None = None,
    ) -> Answer:
        """An answer.

        Raises:
            ValueError: If a count is not a whole number >= 0.
        """
        if not all(type(n) is int and n >= 0 for n in (prompt_tokens, completion_tokens)):
            raise ValueError(f"tokens must be counts >= 0, got {prompt_tokens!r} and {completion_tokens!r}")
        made = super().__new__(cls, text)
        made.prompt_tokens, made.completion_tokens, made.ends = prompt_tokens, completion_tokens, ends
        made.sampled = sampled
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _answer, (str(self), self.prompt_tokens, self.completion_tokens, self.ends, self.sampled)


def _answer(
    text: str, prompt_tokens: int, completion_tokens: int, ends: str, sampled: SampledTokens | None = None
) -> Answer:
    counts = {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens}
    return Answer(text, **counts, ends=ends, sampled=sampled)


class ActionFormat(Protocol):
    """Reads actions, and writes them for scripted policies."""

    @property
    def name(self) -> str:
        """What `get_format` knows it by."""
        ...

    def instructions(self) -> str:
        """What the first observation tells the agent about acting and submitting."""
        ...

    def parse(self, text: str) -> object:
        """A `SandboxAction` such as `RunCommand`, or `Submit`, or `BadAction`. Never raises."""
        ...

    def bash(self, command: str) -> str:
        """The text that runs `command`."""
        ...

    def submit(self) -> str:
        """The text that submits."""
        ...
