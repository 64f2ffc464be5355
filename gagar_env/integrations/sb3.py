"""Stable-Baselines3: PPO and A2C learn from the advantages of graded groups, or plainly from the tests.

With groups, with Stable-Baselines3 2.9:

- `GroupVecEnv` plays whole groups: all members of a group start together, every member has `horizon` steps (one that
  ended earlier does nothing for the rest), and the next groups begin when all are done. A rollout of `n_steps`, a
  multiple of `horizon`, so holds whole groups of whole episodes.
- `GroupRolloutBuffer` (`GroupDictRolloutBuffer` for observations that are dictionaries) holds the advantages that it is
  given, and hands out nothing but the steps that count.
- `GroupCallback` carries them from the one to the other, refuses a learner that would change them, and counts.

Without groups, `PPO("MultiInputPolicy", DiscreteActionWrapper(RepoEditEnv(...)))` is all: the reward is that of the
tests. This needs `pip install 'gagar-env[sb3]'`.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from gagar_env.errors import MissingDependencyError

if TYPE_CHECKING:
    from gagar_env.integrations.sb3_buffers import GroupDictRolloutBuffer, GroupRolloutBuffer
    from gagar_env.integrations.sb3_callback import GroupCallback, RolloutCounts
    from gagar_env.integrations.sb3_vec_env import GroupVecEnv

_HOMES = {
    "GroupCallback": "gagar_env.integrations.sb3_callback",
    "GroupDictRolloutBuffer": "gagar_env.integrations.sb3_buffers",
    "GroupRolloutBuffer": "gagar_env.integrations.sb3_buffers",
    "GroupVecEnv": "gagar_env.integrations.sb3_vec_env",
    "RolloutCounts": "gagar_env.integrations.sb3_callback",
}

__all__ = ["GroupCallback", "GroupDictRolloutBuffer", "GroupRolloutBuffer", "GroupVecEnv", "RolloutCounts"]


def need_sb3() -> None:
    """Fail early, and say how to go on, where Stable-Baselines3 is missing.

    Raises:
        MissingDependencyError: Naming the extra.
    """
    if importlib.util.find_spec("stable_baselines3") is None:
        raise MissingDependencyError("this needs Stable-Baselines3: pip install 'gagar-env[sb3]'")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gagar_env.integrations.sb3' has no attribute {name!r}")
    need_sb3()
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
