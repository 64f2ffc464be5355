"""Scheduling of episodes and gradings over many places, as plain code: events in, decisions out."""

from gagar_env.scheduling.bounds import Bounds
from gagar_env.scheduling.decisions import Attempt, Cut, Decision, Fail, Grade, Mask, Plain, Start
from gagar_env.scheduling.groups import Counts
from gagar_env.scheduling.places import Place, Places
from gagar_env.scheduling.scheduler import Scheduler

__all__ = [
    "Attempt",
    "Bounds",
    "Counts",
    "Cut",
    "Decision",
    "Fail",
    "Grade",
    "Mask",
    "Place",
    "Places",
    "Plain",
    "Scheduler",
    "Start",
]
