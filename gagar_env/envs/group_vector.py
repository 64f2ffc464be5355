"""`GroupVectorEnv`: groups of episodes of one task each, side by side in threads."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from gagar_env.envs.member import Member, Step
from gagar_env.envs.repo_edit import DEFAULT_TASK, RepoEditEnv
from gagar_env.envs.slots import Slots
from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.errors import EnvironmentBuildError, SandboxUnavailableError
from gagar_env.provision import kind_for, provision
from gagar_env.sandbox import why_unavailable
from gagar_env.spaces import UnicodeText
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task

Texts = tuple[str, ...]
Array = NDArray[Any]


class GroupVectorEnv(VectorEnv[Texts, Sequence[str | None], Array]):
    """`num_groups` groups of `group_size` members; member i belongs to group i // group_size.

    - All members of a group work on the same task and share a group id that nothing else has.
    - A step runs the members at the same time. Finished members are skipped, as are members whose
      action is None: they keep their observation and flags and get reward 0.0.
    - `reset_member` and `step_member` drive one member alone, from a thread of its own.
    - There is no autoreset. `reset` takes the options `tasks` (one per group), `task` (for all),
      `group_ids`, `policy`, and `reset_mask`, a boolean array: only those members start anew. A
      group that is reset whole gets a new id, and the task that `tasks` or `task` names; one that
      is reset in part keeps both.
    - A member that raises loses its own episode (status `error`), not the step.

    Args:
        tasks: Ids or tasks: one for all groups, or one per group.
        num_groups: Number of groups.
        group_size: Members of each.
        make_env: Makes one member, in place of a `RepoEditEnv` with `env_kwargs`; it must take the
            same reset options and give the same `info`.
        verifications: Most verifications at one time; by default one for each processor, over all environments of
            this process. Other members go on acting meanwhile.
        sandboxes: Most members with a sandbox at one time; others wait in `reset_member`. By default all have one.
        env_kwargs: Arguments of `RepoEditEnv`, but for `task`.

    Raises:
        TaskError: If a task is not known or broken.
        ValueError: If sizes are below 1 or do not fit together.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        **RepoEditEnv.metadata,
        "autoreset_mode": AutoresetMode.DISABLED,
    }

    def __init__(
        self,
        tasks: str | Task | Sequence[str | Task] = DEFAULT_TASK,
        *,
        num_groups: int = 1,
        group_size: int = 8,
        make_env: Callable[[], gym.Env[str, str]] | None = None,
        verifications: int | None = None,
        sandboxes: int | None = None,
        **env_kwargs: Any,
    ) -> None:
        if num_groups < 1 or group_size < 1:
            raise ValueError(f"sizes must be 1 or more, got {num_groups} groups of {group_size}")
        self.num_groups, self.group_size = num_groups, group_size
        self.num_envs = num_groups * group_size
        self._tasks = self._one_per_group(tasks)
        self._sandbox_kind: str | None = None if make_env is not None else env_kwargs.get("sandbox", "auto")
        bounds = {"slots": verifications, "rooms": sandboxes}
        env_kwargs |= {name: Slots(count) for name, count in bounds.items() if count is not None}
        self._bounded = sandboxes is not None
        if make_env is not None and env_kwargs.keys() & bounds:
            raise ValueError("verifications and sandboxes bound the environments made here: leave them or make_env out")
        first = self._tasks[0]
        self._make = make_env or partial(RepoEditEnv, first, **env_kwargs)
        self._members = [Member(self._make) for _ in range(self.num_envs)]
        self._group_ids = ["" for _ in range(num_groups)]
        self._pool: ThreadPoolExecutor | None = None
        self.render_mode = self._members[0].env.render_mode
        self.single_observation_space = UnicodeText()
        self.single_action_space = UnicodeText()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The task of each group."""
        return tuple(self._tasks)

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The id of each group; empty strings before the first reset."""
        return tuple(self._group_ids)

    def members_of(self, group: int) -> range:
        """Indices of the members of a group."""
        return range(group * self.group_size, (group + 1) * self.group_size)

    def member(self, index: int) -> Member:
        """One member as it is now; a new episode may get a new one."""
        return self._members[index]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Texts, dict[str, Any]]:
        """Start episodes; member i gets `seed + i`. See the class for the options.

        Raises:
            TaskError: If a task is not known or broken.
            ValueError: If an option is unknown or of the wrong size.
        """
        super().reset(seed=seed)
        if self._bounded:
            raise ValueError("sandboxes= is for members that are driven one by one, by collect or a Pipeline: no reset")
        options = options or {}
        known = ("tasks", "task", "group_ids", "policy", "reset_mask")
        if unknown := sorted(set(options) - set(known)):
            raise ValueError(f"unknown reset option {', '.join(unknown)}; known: {', '.join(known)}")
        mask = self._mask(options.get("reset_mask"))
        wanted = options.get("tasks", options.get("task"))
        tasks = self._tasks if wanted is None else self._one_per_group(wanted)
        ids = options.get("group_ids") or [uuid.uuid4().hex for _ in range(self.num_groups)]
        if len(ids) != self.num_groups or len(set(ids)) != len(ids):
            raise ValueError(f"group_ids must be {self.num_groups} different texts, got {ids!r}")
        for group in range(self.num_groups):
            if mask[group * self.group_size : (group + 1) * self.group_size].all():
                self.start_group(group, task=tasks[group], group_id=ids[group])
        chosen = [int(i) for i in np.flatnonzero(mask)]
        policy = str(options.get("policy") or "")
        self._parallel(
            lambda i: self.reset_member(i, seed=None if seed is None else seed + i, policy=policy),
            chosen,
        )
        return self._observations(), self._infos(chosen)

    def step(self, actions: Sequence[str | None]) -> tuple[Texts, Array, Array, Array, dict[str, Any]]:
        """One action for each member that still works; all run at the same time.

        Raises:
            ValueError: If there is not one entry per member.
        """
        if len(actions) != self.num_envs:
            raise ValueError(f"step needs {self.num_envs} actions, got {len(actions)}")
        if "" in self._group_ids:
            raise ResetNeeded("call reset() before step()")
        before = [m.done or action is None for m, action in zip(self._members, actions, strict=True)]
        self._parallel(
            lambda i: self.step_member(i, actions[i]),
            [i for i, idle in enumerate(before) if not idle],
        )
        for index, idle in enumerate(before):
            if idle:
                self.step_member(index, None)
        steps = [member.last for member in self._members]
        return (
            self._observations(),
            np.array([step.reward for step in steps], dtype=np.float64),
            np.array([step.terminated for step in steps], dtype=np.bool_),
            np.array([step.truncated for step in steps], dtype=np.bool_),
            self._infos(range(self.num_envs)),
        )

    def prepare(self, task: Task) -> None:
        """Get what a task needs, so that the members of its group start at once; from any thread.

        Raises:
            TaskError: If the task is broken.
            SandboxUnavailableError: If this kind of sandbox does not work on this machine at all.
        """
        if self._sandbox_kind is None:
            return
        if reason := why_unavailable(kind_for(task, self._sandbox_kind)):
            raise SandboxUnavailableError(reason)
        with contextlib.suppress(EnvironmentBuildError, OSError):  # each member records it
            provision(task, sandbox=self._sandbox_kind)

    def start_group(self, group: int, *, task: Task, group_id: str | None = None) -> str:
        """Give a group a task and a new id, for members that are then reset one by one.

        Raises:
            TaskError: If the task is broken.
            SandboxUnavailableError: If this kind of sandbox does not work on this machine at all.
        """
        self.prepare(task)
        self._tasks[group] = task
        self._group_ids[group] = group_id or uuid.uuid4().hex
        return self._group_ids[group]

    def reset_member(self, index: int, *, seed: int | None = None, policy: str = "") -> Step:
        """Start the next episode of one member, under the task and id of its group."""
        return self.fresh_member(index).reset(seed=seed, options=self.member_options(index, policy=policy))

    def fresh_member(self, index: int) -> Member:
        """The member for the next episode: a new one if a thread may be at work in the old."""
        if self._members[index].spoiled:
            self._members[index].close()
            self._members[index] = Member(self._make)
        return self._members[index]

    def member_options(self, index: int, *, policy: str = "") -> dict[str, Any]:
        """The reset options of one member."""
        group = index // self.group_size
        if not self._group_ids[group]:
            self.start_group(group, task=self._tasks[group])
        return {"task": self._tasks[group], "group_id": self._group_ids[group], "policy": policy}

    def step_member(self, index: int, action: str | None) -> Step:
        """One action of one member, if it still works."""
        return self._members[index].step(action)

    def cut_member(self, index: int, reason: str) -> Episode:
        """Stop one member, from any thread; its record, with status `cut` unless it was over."""
        return self._members[index].stop(EpisodeStatus.CUT, reason)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Attribute or result of a method of each member, as in Gymnasium's vector environments."""
        found = [member.env.get_wrapper_attr(name) for member in self._members]
        return tuple(value(*args, **kwargs) if callable(value) else value for value in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Attribute of each member."""
        return self.call(name)

    def render(self) -> tuple[Any, ...]:
        """The transcript of each member with `render_mode="ansi"`, else None for each."""
        return tuple(member.env.render() for member in self._members)

    def close_extras(self, **_: Any) -> None:
        """Cut what still runs and close every member, whatever the others do."""
        for member in self._members:  # first, so that running commands end and free their threads
            member.close()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _parallel(self, work: Callable[[int], Step], members: Sequence[int]) -> None:
        if len(members) < 2:
            for index in members:
                work(index)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.num_envs, thread_name_prefix="gagar-member")
        for future in [self._pool.submit(work, index) for index in members]:
            future.result()

    def _observations(self) -> Texts:
        return tuple(member.last.observation for member in self._members)

    def _infos(self, members: Sequence[int]) -> dict[str, Any]:
        infos: dict[str, Any] = {}
        for index in members:
            infos = self._add_info(infos, self._members[index].last.info, index)
        return infos

    def _mask(self, given: Any) -> NDArray[np.bool_]:
        if given is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        mask = np.asarray(given)
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            raise ValueError(f"reset_mask must be {self.num_envs} booleans, one of them True, got {given!r}")
        return mask

    def _one_per_group(self, tasks: str | Task | Sequence[str | Task]) -> list[Task]:
        given = [tasks] if isinstance(tasks, str | Task) else list(tasks)
        if len(given) not in (1, self.num_groups):
            raise ValueError(f"tasks must be 1 or {self.num_groups}, got {len(given)}")
        loaded = [task if isinstance(task, Task) else load_task(task) for task in given]
        return loaded * self.num_groups if len(loaded) == 1 else loaded


def make_group_vector(
    num_envs: int = 1,
    *,
    group_size: int | None = None,
    task: str | Task | Sequence[str | Task] = DEFAULT_TASK,
    **kwargs: Any,
) -> GroupVectorEnv:
    """For `gymnasium.make_vec`: `num_envs` members in groups of `group_size`, by default one group.

    Raises:
        ValueError: If `num_envs` is no multiple of `group_size`, or one of them is below 1.
    """
    size = num_envs if group_size is None else group_size
    if size < 1 or num_envs % size:
        raise ValueError(f"num_envs={num_envs} is no multiple of group_size={size}")
    return GroupVectorEnv(task, num_groups=num_envs // size, group_size=size, **kwargs)
