"""Policies: what acts in an episode. These need no model."""

from __future__ import annotations

from pathlib import Path

from gagar_env.agents.named import make
from gagar_env.agents.policies.noop import NoopPolicy as NoopPolicy
from gagar_env.agents.policies.reference import ReferencePolicy as ReferencePolicy
from gagar_env.agents.policies.replay import ReplayPolicy as ReplayPolicy
from gagar_env.agents.policies.sampling import SamplingPolicy as SamplingPolicy
from gagar_env.errors import UnknownNameError
from gagar_env.rollout import Policy

_HERE = "gagar_env.agents.policies"
_POLICIES = {
    "noop": f"{_HERE}:NoopPolicy",
    "reference": f"{_HERE}:ReferencePolicy",
    "replay": f"{_HERE}:ReplayPolicy",
    "sample": f"{_HERE}:SamplingPolicy",
}


def get_policy(name: str, *, file: Path | str | None = None) -> Policy:
    """The policy of that name: `noop`, `reference`, `replay`, `sample`, or `package.module:Name` of yours.

    Args:
        name: Its name.
        file: What `replay` plays; no other policy takes one.

    Raises:
        UnknownNameError: If there is none of that name, or the file is missing or not wanted.
        TaskError: If the file cannot be read.
    """
    if name == "replay":
        if file is None:
            raise UnknownNameError("policy 'replay' needs a file of recordings")
        return ReplayPolicy.from_file(file)
    policy: Policy = make("policy", name, _POLICIES)
    if file is not None:
        raise UnknownNameError(f"policy {name!r} takes no file of recordings; 'replay' does")
    return policy


__all__ = ["NoopPolicy", "ReferencePolicy", "ReplayPolicy", "SamplingPolicy", "get_policy"]
