"""What an action is, and what a format of actions must do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gagar_env.sandbox.base import ExecResult, Sandbox


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
