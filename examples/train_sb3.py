"""Stable-Baselines3 learns to fix bugs, and to fix them cleanly: `python examples/train_sb3.py [--algorithm a2c]`.

The agent chooses numbers from a menu of views, edits and clean-ups; the edits are pieces of the tasks' known solutions,
clean, sloppy and wrong ones, so this is a toy for learners. Groups of episodes are graded, and PPO or A2C trains on the
advantages that come out. Watch two columns: `passed`, which the tests teach, and `lines`, the mean size of a passing
patch, which only the grader teaches (`--grader none` trains on the tests alone, in the same groups; `--plain` is
Stable-Baselines3 as it comes, without groups). Needs `pip install 'gagar-env[sb3]'`.
"""

import argparse
import time

import torch
from stable_baselines3 import A2C, PPO

from gagar_env import RepoEditEnv
from gagar_env.agents.graders import RuleGrader
from gagar_env.integrations.sb3 import GroupCallback, GroupDictRolloutBuffer, GroupVecEnv
from gagar_env.menu.pieces import patch_lines
from gagar_env.wrappers import DiscreteActionWrapper

TASKS = ["cron-month-end", "semver-range-resolve"]
MENU = {"pieces": "file", "size": 32, "views": 2, "cleanups": 2, "test_runs": False, "bag": 32}
COLUMNS = "rollout seconds passed lines turns kept dropped trained"


class Progress(GroupCallback):
    """Prints a line for each rollout."""

    def __init__(self) -> None:
        super().__init__()
        self.started, self.number = time.monotonic(), 0

    def _on_rollout_end(self) -> None:
        super()._on_rollout_end()
        self.number += 1
        counts, seconds = self.counts, time.monotonic() - self.started
        dropped = ", ".join(f"{number} {reason}" for reason, number in counts.dropped.items()) or "-"
        print(
            f"{self.number:7} {seconds:7.0f} {counts.pass_rate:6.2f} {counts.patch_lines:5.1f} {counts.turns:5.1f} "
            f"{counts.kept:4} {dropped:>12} {counts.trained:3}/{counts.steps}",
            flush=True,
        )


def show(model: A2C | PPO, task: str, horizon: int, episodes: int) -> None:
    """What the policy does by now, without groups: its chance to pass, and one episode in words."""
    env = DiscreteActionWrapper(RepoEditEnv(task, turns=horizon, reuse_reports=True), **MENU)
    passed, lines, steps = 0, [], []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        done, steps = False, []
        while not done:
            action, _ = model.predict(observation)
            steps.append(env.menu.entries[int(action)].label)
            observation, _, terminated, truncated, info = env.step(int(action))
            done = terminated or truncated
        passed += info["passed"]
        lines += [patch_lines(info["episode_record"].patch)] if info["passed"] else []
    env.close()
    mean = sum(lines) / len(lines) if lines else float("nan")
    print(f"{task}: {passed} of {episodes} passed, {mean:.1f} lines; the last: {'; '.join(steps)}")


def train(arguments: argparse.Namespace) -> A2C | PPO:
    """Train on the advantages of groups."""
    env = GroupVecEnv(
        arguments.tasks,
        num_groups=arguments.groups,
        group_size=arguments.group_size,
        horizon=arguments.horizon,
        grader=RuleGrader() if arguments.grader == "rule" else None,
        base="dr_grpo",
        strength=0.9,
        seed=arguments.seed,
        env={"reuse_reports": True},
        menu=MENU,
    )
    common = {
        "n_steps": arguments.horizon,
        "ent_coef": 0.01,
        "vf_coef": 0.1,
        "normalize_advantage": False,  # the callback refuses anything else
        "rollout_buffer_class": GroupDictRolloutBuffer,
        "seed": arguments.seed,
        "device": "cpu",
    }
    steps = arguments.horizon * env.num_envs
    if arguments.algorithm == "ppo":
        model = PPO("MultiInputPolicy", env, learning_rate=5e-4, batch_size=steps // 2, n_epochs=4, **common)
    else:
        model = A2C("MultiInputPolicy", env, learning_rate=2e-3, **common)
    print(COLUMNS)
    model.learn(arguments.rollouts * steps, callback=Progress())
    print(env.metrics.as_dict())
    env.close()
    return model


def train_plain(arguments: argparse.Namespace) -> A2C | PPO:
    """Train on the reward of the tests, as Stable-Baselines3 does with any environment; on the first task."""
    env = DiscreteActionWrapper(RepoEditEnv(arguments.tasks[0], turns=arguments.horizon, reuse_reports=True), **MENU)
    kind = {"ppo": PPO, "a2c": A2C}[arguments.algorithm]
    steps = arguments.horizon * arguments.groups * arguments.group_size
    sizes = {"batch_size": steps} if kind is PPO else {}
    model = kind("MultiInputPolicy", env, n_steps=steps, seed=arguments.seed, verbose=1, device="cpu", **sizes)
    model.learn(arguments.rollouts * steps)
    env.close()
    return model


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--algorithm", choices=["ppo", "a2c"], default="ppo")
    parser.add_argument("--grader", choices=["rule", "none"], default="rule")
    parser.add_argument("--plain", action="store_true", help="no groups: the reward of the tests")
    parser.add_argument("--rollouts", type=int, default=80)
    parser.add_argument("--groups", type=int, default=2, help="in each rollout")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--horizon", type=int, default=4, help="most turns of an episode")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="three small rollouts")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.rollouts, arguments.groups, arguments.group_size = 3, 1, 4

    torch.set_num_threads(1)  # the networks are tiny; the processors are for the tests
    model = train_plain(arguments) if arguments.plain else train(arguments)
    for task in arguments.tasks[:1] if arguments.plain else arguments.tasks:
        show(model, task, arguments.horizon, 2 if arguments.smoke else 16)


if __name__ == "__main__":
    main()
