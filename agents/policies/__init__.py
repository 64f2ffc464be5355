"""Policies: what acts in an episode. All but `ChatPolicy` and `BatchedPolicy` need no model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gagar_env.agents.named import make
from gagar_env.agents.policies.batched import BatchedPolicy as BatchedPolicy
from gagar_env.agents.policies.batched import Generated as Generated
from gagar_env.agents.policies.chat import ChatPolicy as ChatPolicy
from gagar_env.agents.policies.noop import NoopPolicy as NoopPolicy
from gagar_env.agents.policies.reference import ReferencePolicy as ReferencePolicy
from gagar_env.agents.policies.replay import ReplayPolicy as ReplayPolicy
from gagar_env.agents.policies.sampling import SamplingPolicy as SamplingPolicy
from gagar_env.errors import UnknownNameError
from gagar_env.rollout import Policy

_HERE = "gagar_env.agents.policies"
_POLICIES = {
    "chat": f"{_HERE}:ChatPolicy",
    "noop": f"{_HERE}:NoopPolicy",
    "reference": f"{_HERE}:ReferencePolicy",
    "replay": f"{_HERE}:ReplayPolicy",
    "sample": f"{_HERE}:SamplingPolicy",
}


def get_policy(name: str, *, file: Path | str | None = None, model: str = "", **options: Any) -> Policy:
    """The policy of that name: `sample`, `reference`, `noop`, `replay`, `chat`, or `package.module:Name` of yours.

    Args:
        name: Its name.
        file: What `replay` plays; no other policy takes one.
        model: For `chat`; no other takes one. (One of yours is called without arguments.)
        options: Of `ChatPolicy`, for `chat`.

    Raises:
        UnknownNameError: If there is none of that name, or something is missing or not wanted.
        TaskError: If the file cannot be read.
    """
    if name == "chat" and not model:
        raise UnknownNameError("policy 'chat' needs the name of a model")
    if name != "chat" and (model or options):
        raise UnknownNameError(f"policy {name!r} takes no model; 'chat' does")
    if name == "replay":
        if file is None:
            raise UnknownNameError("policy 'replay' needs a file of recordings: --replay FILE.jsonl")
        return ReplayPolicy.from_file(file)
    if file is not None:
        raise UnknownNameError(f"policy {name!r} takes no file of recordings; 'replay' does")
    policy: Policy = make("policy", name, _POLICIES, *([model] if model else []), **options)
    return policy


__all__ = [
    "BatchedPolicy",
    "ChatPolicy",
    "Generated",
    "NoopPolicy",
    "ReferencePolicy",
    "ReplayPolicy",
    "SamplingPolicy",
    "get_policy",
]
