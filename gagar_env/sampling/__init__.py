"""What training works on, and in which order: mixtures of tasks, curricula, splits, other environments.

`Mixture` says what there is, `Sampler` draws from it, `Curriculum` favours tasks whose groups are mixed, and
`GroupStream` runs it all as one stream of graded groups. `held_out` and `folds` split tasks by repository.
"""

from __future__ import annotations

from gagar_env.sampling.curriculum import Curriculum, mixed_probability
from gagar_env.sampling.gymgroup import gym_group_result, run_gym_group
from gagar_env.sampling.gymtask import GymEpisode, GymTask
from gagar_env.sampling.mixture import Mixture
from gagar_env.sampling.sampler import Draw, Sampler
from gagar_env.sampling.splits import Split, folds, held_out, repository_of
from gagar_env.sampling.stream import GroupStream, SampledGroup

__all__ = [
    "Curriculum",
    "Draw",
    "GroupStream",
    "GymEpisode",
    "GymTask",
    "Mixture",
    "SampledGroup",
    "Sampler",
    "Split",
    "folds",
    "gym_group_result",
    "held_out",
    "mixed_probability",
    "repository_of",
    "run_gym_group",
]
