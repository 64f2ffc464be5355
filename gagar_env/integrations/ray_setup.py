"""`Setup`: what is sent to every node once, and whether it can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gagar_env.acting import Policy
from gagar_env.flag_policy import FlagPolicy
from gagar_env.grading import Grader

_PARTS = ("policy", "policy_factory", "grader", "grader_factory", "env_kwargs")


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What every worker of a run is made of; sent to the nodes once, pickled.

    Raises:
        TypeError: If there is not one policy, or more than one grader.
    """

    policy: Policy | None
    policy_factory: Callable[[], Policy] | None
    grader: Grader | None
    grader_factory: Callable[[], Grader] | None
    verifications: int | None
    flag_policy: FlagPolicy
    grading: Mapping[str, Any]
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.policy is None) == (self.policy_factory is None):
            raise TypeError("give either policy or policy_factory")
        if self.grader is not None and self.grader_factory is not None:
            raise TypeError("give either grader or grader_factory")
        if self.policy is not None and not isinstance(self.policy, Policy):
            raise TypeError(f"policy must have `name` and `start(...)`, got {type(self.policy).__name__}")


def pickled(setup: Setup) -> bytes:
    """The set-up as bytes.

    Raises:
        TypeError: If a part of it does not pickle; says which, and what to do.
    """
    from ray import cloudpickle

    dumps: Callable[[object], bytes] = cloudpickle.dumps
    for name in _PARTS:
        if fault := _fault(getattr(setup, name), dumps):
            lone = name in ("policy", "grader")
            cure = f"give {name}_factory, which makes it on each node" if lone else "change it"
            raise TypeError(f"{name} cannot be sent to other processes ({fault}): {cure}")
    return dumps(setup)


def _fault(part: object, dumps: Callable[[object], bytes]) -> str:
    try:
        dumps(part)
    except Exception as error:
        return one_line(error)
    return ""


def one_line(error: BaseException, *, most: int = 400) -> str:
    """An exception as one line of text that can be written down and sent anywhere."""
    said = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode()
    line = " ".join(said.split())
    return line if len(line) <= most else line[: most - 4] + " ..."
