"""Trajectories of other harnesses as groups of `Episode`s, so that they can be graded and exported like our own.

    files of mini-swe-agent, SWE-agent, or in ATIF -> Trajectory -> task by its id -> the verifier -> Episode -> group

Everything in such a file is data of a stranger: it is read leniently, never run, and its patch goes through the same
verifier as an agent's work. What cannot be used is named, one line for a file, and never ends the rest.
"""

from __future__ import annotations

from gagar_env.foreign.groups import ForeignGroup, foreign_groups
from gagar_env.foreign.read import find_trajectories, read_trajectory
from gagar_env.foreign.results import TrustedResults
from gagar_env.foreign.trajectory import Trajectory, TrajectoryError

__all__ = [
    "ForeignGroup",
    "Trajectory",
    "TrajectoryError",
    "TrustedResults",
    "find_trajectories",
    "foreign_groups",
    "read_trajectory",
]
