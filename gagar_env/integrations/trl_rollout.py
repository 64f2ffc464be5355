"""`gagar_rollout`: the `rollout_func` of TRL's trainer plays whole episodes on tasks, in groups, and grades them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.episode import Episode
from gagar_env.flag_policy import FlagPolicy, judge_episode
from gagar_env.grading import Grader
from gagar_env.group import grade_group
from gagar_env.integrations.passthrough import How, check_passthrough
from gagar_env.integrations.token_chat import ChatFrame, Completion, TokenPolicy
from gagar_env.integrations.trl import TASK_KEY, check_groups, gagar_advantage_reward, need_trl
from gagar_env.integrations.trl_generate import model_of
from gagar_env.integrations.trl_rows import as_columns, numbers_of, rows_of, with_tokens_or_invalid
from gagar_env.rollout import GroupDriver, Policy
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import Task
from gagar_env.wrappers import GroupRewardWrapper
from gagar_env.wrappers.batches import GroupBatch

logger = logging.getLogger(__name__)

OwnGenerate = Callable[[list[list[int]], int, Any], Sequence[Completion]]
"""Prompts, most new tokens, and the trainer in; ids and log-probabilities of each completion out."""


def gagar_rollout(
    args: Any,
    *,
    grader: Grader | None = None,
    how: How = "reward",
    tasks: Iterable[Task] = (),
    max_new_tokens: int = 256,
    context_tokens: int | None = None,
    system_prompt: str | None = None,
    max_batch: int = 32,
    generate: OwnGenerate | None = None,
    policy: Policy | None = None,
    deadline_s: float | None = None,
    flag_policy: FlagPolicy = "flag",
    grading: Mapping[str, Any] | None = None,
    env: Mapping[str, Any] | None = None,
    on_group: Callable[[GroupBatch], None] | None = None,
    seed: int = 0,
) -> GagarRollout:
    """A function for `GRPOTrainer(rollout_func=...)`, over a dataset made by `task_dataset`.

    The settings are looked at now, before anything is loaded or played. The history of an episode is never cut, so that
    it is one row: when it is full, the episode ends with status `policy_limit`, and is verified.

    Args:
        args: The trainer's `GRPOConfig`. An episode has at most `max_completion_length` tokens after its first prompt.
        grader: Ranks the passing members; None leaves the plain group advantages.
        how: `reward` for way A; `advantage` for `GagarGRPOTrainer`, where sums over tokens may be kept as well.
        tasks: Tasks that are not registered.
        max_new_tokens: Most tokens of one answer.
        context_tokens: Most tokens of an episode, by default what the model has positions for.
        system_prompt: None for one that fits the format of actions; empty for none.
        max_batch: Most episodes that one call of the model generates for.
        generate: Generates in place of the trainer's own model: with vLLM, for one.
        policy: Acts in place of the trainer's model. It must hand over its tokens (`Generated.of`).
        deadline_s: Seconds for the groups of one call; what still runs then is cut, and has no result.
        flag_policy: What a flag does to a recorded pass, see `GroupRewardWrapper`.
        grading: Arguments of `grade_group`: `base`, `scheme`, `strength`, `preserve`, ...
        env: Arguments of `RepoEditEnv`: `sandbox`, `action_format`, `turns`, ...
        on_group: Told of every group, dropped ones too, when it is graded.
        seed: Of episodes and labels.

    Raises:
        PassthroughError: If TRL would change the advantages, with every setting to change.
        ValueError: If a batch would split groups, or a setting is out of range.
        MissingDependencyError: If TRL is not installed.
    """
    need_trl()
    check_passthrough(args, "trl", how=how)
    check_groups(args)
    grading = dict(grading or {})
    if how == "reward" and grading.get("preserve", "episode") != "episode":
        raise ValueError(
            "preserve='token' keeps a sum over tokens, and TRL subtracts a mean over episodes: use GagarGRPOTrainer "
            "with how='advantage', or preserve='episode'"
        )
    if max_new_tokens < 1 or max_batch < 1:
        raise ValueError(f"max_new_tokens and max_batch must be 1 or more, got {max_new_tokens} and {max_batch}")
    if policy is None and max_new_tokens > (args.max_completion_length or max_new_tokens):
        raise ValueError(
            f"one answer has up to max_new_tokens={max_new_tokens} tokens, and a whole episode, observations included, "
            f"only max_completion_length={args.max_completion_length}: raise that one in the GRPOConfig"
        )
    known = {task.id: task for task in tasks}
    env = dict(env or {})
    first = next(iter(known.values()), None)
    probe = GroupVectorEnv(*([first] if first else []), group_size=2, **env)  # finds settings that are out of range
    GroupRewardWrapper(probe, grader, seed=seed, flag_policy=flag_policy, **grading).close()
    return GagarRollout(
        how=how,
        grader=grader,
        tasks=known,
        model={
            "max_new_tokens": max_new_tokens,
            "context_tokens": context_tokens,
            "completion_tokens": args.max_completion_length,
            "system_prompt": system_prompt,
            "max_batch": max_batch,
        },
        generate=generate,
        policy=policy,
        deadline_s=deadline_s,
        flag_policy=flag_policy,
        grading=grading,
        env=env,
        on_group=on_group,
        seed=seed,
    )


class GagarRollout:
    """What `gagar_rollout` makes. See there.

    Attributes:
        calls: How often it was called.
    """

    def __init__(self, **settings: Any) -> None:
        self.calls = 0
        self._s = settings
        self._checked: Any = None

    def __call__(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """The rows of one generation batch, one for each prompt in its order.

        Raises:
            ValueError: If a group is not whole, or an episode is not one row.
            TaskError: If a task is unknown.
        """
        self._check(trainer)
        size = trainer.num_generations if trainer.model.training else trainer.num_generations_eval
        tasks = [self._task(ids) for ids in _groups([task_of(prompt) for prompt in prompts], size)]
        where = (self._s["seed"], self.calls, trainer.accelerator.process_index)
        seeds = [int(s >> 1) for s in np.random.SeedSequence(where).generate_state(len(tasks))]
        self.calls += 1
        with self._policy(trainer) as policy:
            played = self._play(policy, tasks, size, seeds)
        batches = [self._grade(task, episodes, seed) for task, episodes, seed in zip(tasks, played, seeds, strict=True)]
        filler = trainer.processing_class.eos_token_id
        columns = as_columns([row for b in batches for row in rows_of(b.result, b.episodes, filler)])
        return {**columns, "gagar_metrics": numbers_of((b.result, b.episodes) for b in batches)}

    def _check(self, trainer: Any) -> None:
        """What only the trainer knows, once."""
        if self._checked is trainer:
            return
        check_passthrough(trainer.args, "trl", how=self._s["how"])
        check_groups(trainer.args)
        if self._s["how"] == "reward":
            used = [f for f, w in zip(trainer.reward_funcs, trainer.reward_weights.tolist(), strict=True) if w != 0]
            if used != [gagar_advantage_reward]:
                names = ", ".join(getattr(f, "__name__", type(f).__name__) for f in used)
                raise ValueError(
                    f"the reward functions with a weight are {names}: only gagar_advantage_reward may have one, give "
                    "the others 0.0 in reward_weights; for GagarGRPOTrainer make the rollout with how='advantage'"
                )
        elif not hasattr(trainer, "own_advantages"):
            raise ValueError(
                f"how='advantage' needs a trainer that takes them, and {type(trainer).__name__} does not: use "
                "GagarGRPOTrainer, or AdvantageMixin before a class of yours"
            )
        if trainer.use_vllm and self._s["generate"] is None and self._s["policy"] is None:
            raise ValueError("use_vllm=True: give gagar_rollout a function generate=... that asks it")
        self._checked = trainer

    def _task(self, task_id: str) -> Task:
        known: Mapping[str, Task] = self._s["tasks"]
        return known[task_id] if task_id in known else load_task(task_id)

    @contextlib.contextmanager
    def _policy(self, trainer: Any) -> Any:
        """Who acts, with the trainer's weights as they are now."""
        if self._s["policy"] is not None:
            yield self._s["policy"]
            return
        settings = dict(self._s["model"])
        most = settings["max_new_tokens"]
        own: OwnGenerate | None = self._s["generate"]
        if settings["context_tokens"] is None:
            settings["context_tokens"] = getattr(trainer.model.config, "max_position_embeddings", None) or 1 << 20
        chat = ChatFrame(trainer.processing_class)
        end_ids = trainer.eos_token_ids
        if own is not None:
            yield TokenPolicy(lambda prompts: own(prompts, most, trainer), chat, end_ids=end_ids, **settings)
            return
        with model_of(trainer, most) as generate:
            yield TokenPolicy(generate, chat, end_ids=end_ids, **settings)

    def _play(self, policy: Policy, tasks: Sequence[Task], size: int, seeds: Sequence[int]) -> list[list[Episode]]:
        vector = GroupVectorEnv(tasks, num_groups=len(tasks), group_size=size, **self._s["env"])
        driver = GroupDriver(vector, policy, deadline_s=self._s["deadline_s"])
        played: dict[int, list[Episode]] = {}
        try:
            for group, (task, seed) in enumerate(zip(tasks, seeds, strict=True)):
                driver.start(group, task=task, seed=seed)
            while len(played) < len(tasks):
                group, episodes = driver.wait()
                played[group] = episodes
        finally:
            driver.stop()
            vector.close()
        return [played[group] for group in range(len(tasks))]

    def _grade(self, task: Task, played: Sequence[Episode], seed: int) -> GroupBatch:
        judged = (judge_episode(episode, self._s["flag_policy"]) for episode in played)
        episodes = tuple(with_tokens_or_invalid(episode) for episode in judged)
        if not any(episode.valid for episode in episodes):
            logger.warning("no episode of task %s has a result: %s", task.id, episodes[0].error)
        result = grade_group(episodes, self._s["grader"], task=task, seed=seed, **self._s["grading"])
        batch = GroupBatch(result=result, episodes=episodes, task=task, attempt=self.calls - 1, seed=seed)
        if self._s["on_group"] is not None:
            self._s["on_group"](batch)
        return batch


def task_of(prompt: Any) -> str:
    """The id of the task that a prompt carries.

    Raises:
        ValueError: If it carries none.
    """
    for message in prompt if isinstance(prompt, list) else ():
        if isinstance(message, Mapping) and isinstance(name := message.get(TASK_KEY), str):
            return name
    raise ValueError(f"a prompt carries no task: make the dataset with task_dataset(...), got {str(prompt)[:80]!r}")


def _groups(ids: Sequence[str], size: int) -> list[str]:
    """The task of each group of adjacent rows."""
    if len(ids) % size:
        raise ValueError(f"{len(ids)} rows are no whole number of groups of {size}: a group was split")
    groups = [ids[at : at + size] for at in range(0, len(ids), size)]
    if mixed := [group for group in groups if len(set(group)) > 1]:
        raise ValueError(f"rows of one group carry different tasks, {mixed[0][0]!r} among them: a group was split")
    return [group[0] for group in groups]
