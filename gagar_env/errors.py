"""Every exception of the package.

A failing test, a bad action and a refused patch are results, not errors: they are recorded and the run goes on. These
exceptions are for what stops a caller: broken set-up, a broken harness, wrong arguments.

    GagarError
    ├── TaskError (ValueError)              a task, or the file or folder it comes from, is broken
    │   ├── UnknownTaskError                no task of that name; says which ones are near
    │   └── RefusedError                    no task can be made of this; its `reason` is a word that is counted
    ├── EnvironmentBuildError (RuntimeError) what tasks need is not to be had here: Python, packages, git, a cache
    ├── SandboxError (RuntimeError)         the sandbox itself failed: never the agent's fault
    │   ├── SandboxUnavailableError         this kind does not work on this machine; says what to install
    │   ├── SandboxDiedError                it ended while it was in use: its container was killed, its engine went away
    │   └── SandboxClosedError              used after `close()`
    ├── PatchError (ValueError)             a patch that does not apply, or is over the limit
    │   └── PathEscapeError (PermissionError) a path that would leave the work tree
    ├── VerifyError (RuntimeError)          the test harness broke; failing tests are a result
    ├── GradingError (ValueError)           a grader without a valid verdict
    ├── PolicyLimitError (RuntimeError)     a policy cannot go on by a limit of its own; raised by actors
    ├── ModelError (RuntimeError)           the endpoint of a model: unreachable, unauthorized, busy for too long
    │   └── PromptTooLongError            the prompt is longer than its context
    ├── UnknownNameError (ValueError)       no policy, grader or learner of that name; says which there are
    ├── PassthroughError (ValueError)       a learner is set so that it would change the advantages; names every setting
    └── MissingDependencyError (ImportError) names the extra to install

All of them pickle with their message and fields: they carry one positional string and nothing else.
"""

from __future__ import annotations


class GagarError(Exception):
    """Base of all errors of this package."""


class TaskError(GagarError, ValueError):
    """A task, or the file or folder it comes from, is broken."""


class UnknownTaskError(TaskError):
    """No task of that name is registered."""


class RefusedError(TaskError):
    """No task can be made of this.

    Attributes:
        reason: Why, in one word that can be counted, such as `no_tests`; `refused` unless it is set.
    """

    reason = "refused"


def refusal(reason: str, detail: str) -> RefusedError:
    """The error for a reason that is counted and a line that explains it."""
    error = RefusedError(detail)
    error.reason = reason
    return error


class EnvironmentBuildError(GagarError, RuntimeError):
    """What a task needs is not to be had on this machine: its interpreter, its packages, git, a cache with room.

    An infrastructure error, never a failed patch.
    """


class SandboxError(GagarError, RuntimeError):
    """The sandbox itself failed: an infrastructure error, never the agent's fault."""


class SandboxUnavailableError(SandboxError):
    """This kind of sandbox does not work on this machine."""


class SandboxDiedError(SandboxError):
    """The sandbox ended while it was in use: its container was killed, or the engine went away."""


class SandboxClosedError(SandboxError):
    """The sandbox was used after `close()`."""


class PatchError(GagarError, ValueError):
    """A patch that does not apply, or is larger than the limit."""


class PathEscapeError(PatchError, PermissionError):
    """A path that would leave the work tree."""


class VerifyError(GagarError, RuntimeError):
    """The test harness broke. Tests that fail are a result, not an error."""


class GradingError(GagarError, ValueError):
    """A grader that has no valid verdict."""


class PolicyLimitError(GagarError, RuntimeError):
    """A policy cannot go on by a limit of its own, such as a full context or a spent budget.

    Raised by an actor: the episode ends, is verified, and is no infrastructure error.
    """


class ModelError(GagarError, RuntimeError):
    """The endpoint of a model gave no answer: unreachable, unauthorized, or busy for too long."""


class PromptTooLongError(ModelError):
    """The prompt is longer than the model's context."""


class UnknownNameError(GagarError, ValueError):
    """No policy, grader or learner of that name, or it cannot be had that way."""


class PassthroughError(GagarError, ValueError):
    """A learner is set so that it would change the advantages on their way into the loss.

    Attributes:
        settings: The names of the settings to change; empty where no setting helps.
    """

    settings: tuple[str, ...] = ()


class MissingDependencyError(GagarError, ImportError):
    """An optional dependency is missing; the message names the extra to install."""
