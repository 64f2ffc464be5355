"""`GroupVecEnv`: groups of episodes as a vector environment of Stable-Baselines3."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnv

from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.envs.member import Member
from gagar_env.envs.repo_edit import EPISODE_KEY, RepoEditEnv
from gagar_env.grading import Grader
from gagar_env.group_result import GroupResult
from gagar_env.jobs import group_seed
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task
from gagar_env.wrappers.batches import GroupMetrics
from gagar_env.wrappers.discrete import DiscreteActionWrapper
from gagar_env.wrappers.group_reward import GroupRewardWrapper

ROUND_KEY = "group_round"
TURN_KEY = "group_turn"
RESULT_KEY = "group_result"
ADVANTAGES_KEY = "group_advantages"
TRAINED_KEY = "group_trained"
MISMATCH_KEY = "group_mismatch"


class GroupVecEnv(VecEnv):
    """`num_groups` groups of `group_size` members, played in rounds of `horizon` steps.

    All members start together. One that ends before the round does keeps its last observation, gets reward 0.0 and
    ignores its actions until the round is over: these steps are padding and never trained on. At the last step of a
    round every member is `done`, and the groups of the next round, with new ids, are started in the same call, as
    Stable-Baselines3 expects it. A member that still runs then is cut, and has no result.

    Differences between Gymnasium and Stable-Baselines3 that are taken care of: `infos` is a list with one new
    dictionary for each member and step; the last one of a round has `terminal_observation`, and `episode` with the
    return, the steps and the seconds of the member's episode. `TimeLimit.truncated` is always false: an episode is
    verified at its limit too, and nothing of it comes after the round that a value could stand for.

    Each `info` has what the member's environment says, and:

    - `group_round`: number of the round, from 0; `group_turn`: the step in it, from 0.
    - At the last step of a round: `group_result`, the `GroupResult`; `group_advantages`, float32 (horizon,): of each
      step of this member, the turn's own where the result has turn advantages; `group_trained`, bool (horizon,):
      false for padding, for members without a result and for all of a dropped group; `group_mismatch`: whether the
      record has another number of turns than were stepped, so that the member is left out.

    A member that breaks loses its own episode; its observations are zeros from then on.

    Args:
        tasks: Ids or tasks, taken in turn by the groups: group g of round r has number `r * num_groups + g`.
        num_groups: Groups that are played at the same time.
        group_size: Members of each.
        horizon: Most steps of an episode, and the steps of a round.
        grader: Ranks the passing members; None leaves the plain group advantages.
        make_env: Makes one member with numbers for actions and observations; it must take the reset options `task`,
            `group_id` and `policy`, and end within `horizon` steps. By default a `DiscreteActionWrapper` with `menu`
            around a `RepoEditEnv` with `env`.
        menu: Arguments of `DiscreteActionWrapper`.
        env: Arguments of `RepoEditEnv`, but for `task` and `turns`.
        seed: Of the members, unless the learner sets one, and of the grading.
        grading: Further arguments of `GroupRewardWrapper` and `grade_group`: `base`, `scheme`, `strength`, ...

    Raises:
        TaskError: If a task is not known or broken.
        ValueError: If a number is out of range, or an argument of the grading is.
    """

    def __init__(
        self,
        tasks: str | Task | Sequence[str | Task],
        *,
        num_groups: int = 1,
        group_size: int = 8,
        horizon: int = 8,
        grader: Grader | None = None,
        make_env: Callable[[], gym.Env[Any, Any]] | None = None,
        menu: dict[str, Any] | None = None,
        env: dict[str, Any] | None = None,
        seed: int = 0,
        **grading: Any,
    ) -> None:
        given = [tasks] if isinstance(tasks, str | Task) else list(tasks)
        if horizon < 1 or not given:
            raise ValueError(f"horizon must be 1 or more and tasks not empty, got {horizon} and {len(given)} tasks")
        if make_env is not None and (menu is not None or env is not None):
            raise ValueError("make_env makes the members: menu and env are for those that are made by default")
        self.tasks = tuple(task if isinstance(task, Task) else load_task(task) for task in given)
        self.horizon, self.num_groups, self.group_size = horizon, num_groups, group_size
        first = self.tasks[0]

        def make() -> gym.Env[Any, Any]:
            return DiscreteActionWrapper(RepoEditEnv(first, turns=horizon, **(env or {})), **(menu or {}))

        self._base = GroupVectorEnv(first, num_groups=num_groups, group_size=group_size, make_env=make_env or make)
        self._env = GroupRewardWrapper(self._base, grader, seed=seed, **grading)
        self._seed = seed
        self._round, self._turn = -1, 0
        self._actions: NDArray[Any] | None = None
        self._since = time.monotonic()
        self._live = np.zeros((horizon, self._base.num_envs), dtype=np.bool_)
        self._returns = np.zeros(self._base.num_envs)
        self._results: dict[int, tuple[GroupResult, int]] = {}
        member = self._base.member(0).env
        super().__init__(self._base.num_envs, member.observation_space, member.action_space)
        self._blank = _zeros(self.observation_space)

    @property
    def metrics(self) -> GroupMetrics:
        """Counts of groups, drops by reason, fallbacks of the grader and seconds."""
        return self._env.metrics

    @property
    def turn(self) -> int:
        """Steps of this round that were taken, from 0 to `horizon - 1`."""
        return self._turn

    def reset(self) -> Any:
        """Start a round; one that is not over is given up, and its groups are in no count."""
        if self._seeds[0] is not None:
            self._seed = self._seeds[0]
        self._reset_seeds()
        self._reset_options()
        return self._start()

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions, shape (num_envs,), for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Take them; at the end of a round, start the next."""
        assert self._actions is not None, "call reset() and step_async() first"
        members = self._members()
        live = np.array([not member.done for member in members])
        given = [action if works else None for action, works in zip(self._actions, live, strict=True)]
        last = self._turn == self.horizon - 1
        _, rewards, _, _, infos = self._env.step(given)
        self._keep(infos)
        self._live[self._turn] = live
        self._returns += rewards
        if last:
            self._end()
        members = self._members()
        found = [{**m.last.info, ROUND_KEY: self._round, TURN_KEY: self._turn} for m in members]
        dones = np.full(self.num_envs, last)
        self._turn += 1
        if not last:
            return self._observations(), rewards.astype(np.float32), dones, found
        for index, (info, member) in enumerate(zip(found, members, strict=True)):
            info |= self._told(index, member)
        return self._start(), rewards.astype(np.float32), dones, found

    def _start(self) -> Any:
        self._round += 1
        self._turn = 0
        self._live[:] = False
        self._returns[:] = 0.0
        self._results = {}
        self._since = time.monotonic()
        numbers = range(self._round * self.num_groups, (self._round + 1) * self.num_groups)
        tasks = [self.tasks[number % len(self.tasks)] for number in numbers]
        seed = group_seed(self._seed, self._round)
        _, infos = self._env.reset(seed=seed, options={"tasks": tasks, "policy": "sb3"})
        self._keep(infos)
        self.reset_infos = [dict(member.last.info) for member in self._members()]
        return self._observations()

    def _end(self) -> None:
        """Cut what still runs, and have the groups graded that this completes."""
        running = [index for index, member in enumerate(self._members()) if member.episode is None]
        if not running and len(self._results) == self.num_envs:
            return
        for index in running:
            self._base.cut_member(index, "the round is over")
        *_, infos = self._env.step([None] * self.num_envs)
        self._keep(infos)

    def _keep(self, infos: dict[str, Any]) -> None:
        for index, result in enumerate(infos[RESULT_KEY]):
            if result is not None:
                self._results[index] = (result, index % self.group_size)

    def _told(self, index: int, member: Member) -> dict[str, Any]:
        """What the last step of a round says of a member."""
        result, place = self._results[index]
        steps = int(self._live[:, index].sum())
        values = None if result.turn_advantages is None else result.turn_advantages[place]
        episode = member.episode
        recorded = steps if episode is None or not episode.valid else len(episode.turns)
        mismatch = result.mask[place] and (recorded != steps or (values is not None and len(values) != steps))
        advantages = np.zeros(self.horizon, dtype=np.float32)
        trained = np.zeros(self.horizon, dtype=np.bool_)
        if result.mask[place] and not mismatch:
            advantages[:steps] = result.advantages[place] if values is None else values
            trained[:steps] = True
        return {
            RESULT_KEY: result,
            ADVANTAGES_KEY: advantages,
            TRAINED_KEY: trained,
            MISMATCH_KEY: mismatch,
            EPISODE_KEY: episode,
            "terminal_observation": self._observation(member),
            "TimeLimit.truncated": False,
            "episode": {"r": float(self._returns[index]), "l": steps, "t": time.monotonic() - self._since},
        }

    def _members(self) -> list[Member]:
        return [self._base.member(index) for index in range(self._base.num_envs)]

    def _observation(self, member: Member) -> Any:
        """What the member sees: zeros where it broke, and its last observation is the text that says so."""
        return self._blank if member.spoiled else member.last.observation

    def _observations(self) -> Any:
        found = [self._observation(member) for member in self._members()]
        if isinstance(self.observation_space, spaces.Dict):
            return {key: np.stack([one[key] for one in found]) for key in self.observation_space.spaces}
        return np.stack(found)

    def close(self) -> None:
        """Cut what runs and close every sandbox."""
        self._env.close()

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        """Attribute of members."""
        return [self._base.member(i).env.get_wrapper_attr(attr_name) for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        """Set an attribute of members."""
        for index in self._get_indices(indices):
            self._base.member(index).env.set_wrapper_attr(attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: int | Iterable[int] | None = None, **method_kwargs: Any
    ) -> list[Any]:
        """Results of a method of members."""
        return [method(*method_args, **method_kwargs) for method in self.get_attr(method_name, indices)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None) -> list[bool]:
        """Whether members are wrapped so."""
        from stable_baselines3.common.env_util import is_wrapped

        return [is_wrapped(self._base.member(i).env, wrapper_class) for i in self._get_indices(indices)]


def _zeros(space: gym.Space[Any]) -> Any:
    if isinstance(space, spaces.Dict):
        return {key: _zeros(part) for key, part in space.spaces.items()}
    return np.zeros(space.shape or (), dtype=space.dtype)
