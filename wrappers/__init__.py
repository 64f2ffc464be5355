"""Gymnasium wrappers of the package."""

from __future__ import annotations

from gagar_env.wrappers.batches import GroupBatch, GroupMetrics
from gagar_env.wrappers.discrete import DiscreteActionWrapper
from gagar_env.wrappers.group_reward import GroupRewardWrapper

__all__ = ["DiscreteActionWrapper", "GroupBatch", "GroupMetrics", "GroupRewardWrapper"]
