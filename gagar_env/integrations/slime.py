"""slime: a reward post-processing that puts redistributed advantages in place of normalised rewards.

In a module of yours, named by `--custom-reward-post-process-path my_module.post_process`:

    post_process = reward_post_process(to_episode, RuleGrader())

with `--advantage-estimator grpo` and without `--normalize-advantages`. slime calls it once for a whole rollout and
trains on what it returns, as it is. Samples with one `group_index` are a group; those with one `rollout_id` are parts
of one rollout and share its number. A rollout without a result is marked `remove_sample`, so that its loss mask is 0;
why is in `sample.metadata["gagar_error"]`. The raw reward is the outcome of the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gagar_env.episode import Episode
from gagar_env.grading import Grader
from gagar_env.integrations.groups import Attempt, GroupGrader

PostProcess = Callable[[Any, Sequence[Any]], tuple[list[float], list[float]]]


def reward_post_process(
    to_episode: Callable[[list[Any]], Episode | Attempt | None], grader: Grader | None = None, **settings: Any
) -> PostProcess:
    """The function for `--custom-reward-post-process-path`.

    Args:
        to_episode: From the samples of one rollout, in order, to an episode, an attempt, or None without a result.
        grader: Ranks those that passed.
        settings: Of `GroupGrader`.
    """
    groups: GroupGrader[list[Any]] = GroupGrader(to_episode, grader, **{"zero_sum": False, **settings})

    def post_process(args: Any, samples: Sequence[Any]) -> tuple[list[float], list[float]]:
        """Outcomes and advantages, one for each sample."""
        found: dict[str, dict[Any, list[Any]]] = {}
        for number, sample in enumerate(samples):
            if sample.group_index is None:
                raise ValueError(f"sample {number} has no group_index: the data source of slime sets it")
            rollout = ("alone", number) if sample.rollout_id is None else sample.rollout_id
            found.setdefault(f"group-{sample.group_index}", {}).setdefault(rollout, []).append(sample)
        graded = groups.grade_all({name: list(rollouts.values()) for name, rollouts in found.items()})
        numbers: dict[int, tuple[float, float]] = {}
        for name, rollouts in found.items():
            for parts, member in zip(rollouts.values(), graded[name], strict=True):
                for sample in parts:
                    numbers[id(sample)] = (member.outcome or 0.0, member.advantage or 0.0)
                    if not member.valid:
                        sample.remove_sample = True
                        sample.metadata = {**(sample.metadata or {}), "gagar_error": member.error}
        pairs = [numbers[id(sample)] for sample in samples]
        return [raw for raw, _ in pairs], [advantage for _, advantage in pairs]

    return post_process
