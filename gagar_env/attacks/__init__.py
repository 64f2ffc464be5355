"""Ways to cheat, as code that runs against any task: `gagar check --attack`.

An attack is what an agent would type into its sandbox, and then submit. `run_attacks` plays each as an episode and says
whether it held; `run_twins` plays honest work that looks alike, which must keep earning its reward. What is in the
catalogue is no proof against what is not.
"""

from __future__ import annotations

from gagar_env.attacks.base import Attack, Kind, Target, Twin
from gagar_env.attacks.catalogue import ATTACKS, TWINS
from gagar_env.attacks.runner import AttackResult, TwinResult, run_attacks, run_twins

__all__ = [
    "ATTACKS",
    "TWINS",
    "Attack",
    "AttackResult",
    "Kind",
    "Target",
    "Twin",
    "TwinResult",
    "run_attacks",
    "run_twins",
]
