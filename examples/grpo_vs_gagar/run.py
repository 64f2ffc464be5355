"""Plain GRPO, GAGAR, and GRPO with a quality penalty, from one starting policy: a controlled experiment.

    python examples/grpo_vs_gagar/run.py --out runs/grpo_vs_gagar             three arms, five seeds
    python examples/grpo_vs_gagar/run.py --sweep-seeds 2                      and the sweeps, with two seeds
    python examples/grpo_vs_gagar/run.py --smoke                              a minute: one seed, two steps
    python examples/grpo_vs_gagar/run.py --device cuda --model FOLDER_OR_NAME --jobs 1 --out runs/model     on a GPU
    python examples/grpo_vs_gagar/report.py runs/grpo_vs_gagar                plots, tables, claims

Every arm has the same tasks, the same starting policy (a small transformer that was fine-tuned on demonstrations of
clean, sloppy and wrong work), the same seeds and the same number of episodes, which are real: in sandboxes, judged by
tests. Only the advantages differ:

- `grpo`: (r - mean) / std of the test results;
- `gagar`: the same, moved from worse to better passing solutions by the ranking of the rule grader;
- `penalty`: the ranking is taken off the reward instead, r = 1 - strength * tier / (tiers - 1), and then GRPO's formula
  is used. The sum over the passing episodes is not kept, and a passing episode can end below zero.

Only groups in which some passed and some failed are trained on, in every arm. Called again with the same
settings, it goes on; a folder of others is refused.
"""

import argparse
import json
import logging
import multiprocessing
import os
import platform
import random
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from quality import QualityMeter  # noqa: E402
from train_torch import (  # noqa: E402
    Demonstrator,
    Settings,
    Trainer,
    demonstrations,
    mean,
    measures,
    rows_of,
    starting_policy,
)

from gagar_env import register_tasks  # noqa: E402
from gagar_env.advantages import group_advantages  # noqa: E402
from gagar_env.agents.graders import CallableGrader  # noqa: E402
from gagar_env.episode import Episode  # noqa: E402
from gagar_env.tasks.task import Task  # noqa: E402
from gagar_env.workspace import Workspace  # noqa: E402
from gagar_env.wrappers import GroupRewardWrapper  # noqa: E402
from gagar_env.wrappers.batches import GroupBatch  # noqa: E402

ARMS = ("grpo", "gagar", "penalty")
SWEEPS = {
    "strength": (0.25, 0.5, 0.95),
    "group_size": (4, 16),
    "grader_accuracy": (0.5, 0.65, 0.8, 1.0),
}
EVALUATED = 16
"""Episodes of each task in an evaluation."""
SAME = {"strength=0": "grpo", "strength=0.75": "gagar", "group_size=8": "gagar"}
"""Points of the sweeps that the arms are already."""
NAMES = {  # of the trainer -> of the report
    "groups/kept": "kept",
    "groups/all_passed": "all_passed",
    "groups/all_failed": "all_failed",
    "groups/invalid": "invalid",
    "patch/lines": "patch_lines",
    "grader/agreement": "agreement",
    "advantages/sum_before": "sum_before",
    "advantages/sum_after": "sum_after",
    "seconds/rollout": "seconds_rollout",
    "seconds/grading": "seconds_grade",
    "seconds/learning": "seconds_learn",
}


def penalise(group: GroupBatch) -> GroupBatch:
    """The same ranking, taken off the reward: GRPO's advantages of r = 1 - strength * tier / (tiers - 1), or 0."""
    result = group.result
    tiers = [tier for tier in result.ranks if tier is not None]
    if not tiers or not max(tiers):
        return group
    shares = [1.0 if tier is None else 1.0 - result.strength * tier / max(tiers) for tier in result.ranks]
    reward = np.array([share * won for share, won in zip(shares, result.passed, strict=True)])
    advantages = group_advantages(result.passed, None, valid=result.valid, reward=reward)
    return replace(group, result=result.model_copy(update={"advantages": tuple(advantages.tolist())}))


class NoisyOracle:
    """Ranks by the hidden measures in some groups and at random in the others.

    With an accuracy a it is the oracle in a share 2a - 1 of the groups, so that of two candidates that differ the
    better one comes first with probability a.
    """

    def __init__(self, accuracy: float, meter: QualityMeter) -> None:
        self.accuracy, self.meter = accuracy, meter

    def __call__(self, workspace: Workspace) -> dict[str, float]:
        """A score for each passing label; more is better."""
        scores = {label: self._score(workspace.task, workspace.candidates[label].patch) for label in workspace.passing}
        chance = random.Random(f"{workspace.task.id} {workspace.seed}")  # labels are the same letters in every group
        if chance.random() >= 2 * self.accuracy - 1:
            levels = sorted(set(scores.values()))
            shuffled = dict(zip(levels, chance.sample(levels, len(levels)), strict=True))
            scores = {label: shuffled[score] for label, score in sorted(scores.items())}
        return scores

    def _score(self, task: Task, patch: bytes) -> float:
        found = self.meter.measure(task, patch)
        return (found.regressions or 0.0) - found.distance - 0.1 * found.out_of_scope_lines


class Watcher:
    """Measures the work of every episode, by what no grader of the three arms sees."""

    def __init__(self, meter: QualityMeter) -> None:
        self.meter = meter
        self.groups: list[GroupBatch] = []

    def __call__(self, group: GroupBatch) -> None:
        """Take a group in."""
        self.groups.append(group)

    def numbers(self) -> dict[str, float]:
        """Means over the passing episodes since the last call."""
        passing = [(e, group.task) for group in self.groups for e in group.episodes if e.passed]
        changes = [
            abs(after - before)
            for group in self.groups
            for after, before, won in zip(
                group.result.advantages, group.result.advantages_before, group.result.passed, strict=True
            )
            if not won
        ]
        self.groups = []
        found = [self.meter.measure(task, episode.patch) for episode, task in passing]
        return {
            "distance": mean(q.distance for q in found),
            "out_of_scope_lines": mean(q.out_of_scope_lines for q in found),
            "patch_lines": mean(q.patch_lines for q in found),
            "regressions": mean(q.regressions for q in found if q.regressions is not None),
            "clean_share": mean(q.clean for q in found),
            "failing_change": max(changes, default=0.0),
        }


class Run:
    """One arm with one seed, in one folder.

    Attributes:
        begin: Makes the starting policy, or finds it in its folder.
        trainer_class: Plays and learns.
        evaluate_every: Steps between evaluations; 0 for none but the first and the last.
    """

    begin = staticmethod(starting_policy)
    trainer_class = Trainer
    evaluate_every = 0

    def __init__(self, s: Settings, arm: str, folder: Path, start: Path, *, accuracy: float | None = None) -> None:
        self.s, self.arm, self.folder, self.start, self.accuracy = s, arm, folder, start, accuracy

    def __call__(self) -> str:
        """Train, unless it is done."""
        done = self.folder / "done"
        if done.exists():
            return f"{self.folder} was done"
        torch.set_num_threads(self.s.threads or 1)
        began = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path, self.samples = self.folder / "metrics.jsonl", self.folder / "samples.json"
        model, tokenizer = self.begin(self.s, Demonstrator(Path(self.s.folder)), self.start)
        torch.manual_seed(self.s.seed)
        self.watcher = Watcher(QualityMeter(self.start / "quality.jsonl"))
        self.trainer = self.trainer_class(self.s, model, tokenizer, watch=self.watcher)
        if self.arm == "penalty":
            self.trainer.shape = penalise
        if self.accuracy is not None:
            oracle = NoisyOracle(self.accuracy, self.watcher.meter)
            self.trainer.grader = CallableGrader(oracle, name="oracle")
        if (self.folder / "checkpoint.pt").exists():
            self.trainer.load(self.folder)
            self._forget_after(self.trainer.step)
        else:
            self.path.unlink(missing_ok=True)
            self._evaluate("before")
        self.trainer.run(self._log, self.folder)
        done.write_text(f"{time.monotonic() - began:.0f} seconds\n")
        return f"{self.folder}: {time.monotonic() - began:.0f} seconds"

    def _forget_after(self, step: int) -> None:
        kept = [
            row for row in rows_of(self.path) if row["step"] < step or (row["kind"] == "eval" and row["step"] <= step)
        ]
        self.path.write_text("".join(json.dumps(row) + "\n" for row in kept))

    def _log(self, step: int, numbers: dict[str, float]) -> None:
        self._write("train", step, numbers | self.watcher.numbers())
        if step + 1 == self.s.steps or (self.evaluate_every and (step + 1) % self.evaluate_every == 0):
            self.trainer.step += 1  # as many steps as were taken
            self._evaluate("after")
            self.trainer.step -= 1

    def _evaluate(self, when: str) -> None:
        """Episodes of each task that are not trained on."""
        s, played = self.s, []
        wrapper = GroupRewardWrapper(self.trainer.env, seed=10**6 * (s.seed + 1) + self.trainer.step)
        tasks = s.tasks.split(",")
        groups = max(1, EVALUATED // s.group_size) * len(tasks)
        list(wrapper.collect(self.trainer.policy, groups, max_attempts=groups, tasks=tasks, on_group=played.append))
        for group in played:
            self.watcher(group)
        numbers = measures(played, wrapper) | self.watcher.numbers()
        self._write("eval", self.trainer.step, {**numbers, "pass_at_1": numbers["pass_rate"]})
        shown = json.loads(self.samples.read_text()) if self.samples.exists() else {}
        shown[when] = {group.task.id: _sample(group.episodes) for group in played}
        self.samples.write_text(json.dumps(shown))

    def _write(self, kind: str, step: int, numbers: dict[str, float]) -> None:
        row: dict[str, Any] = {NAMES.get(name, name): float(value) for name, value in numbers.items()}
        row = {name: value if value == value else None for name, value in row.items() if "/" not in name}
        with self.path.open("a") as file:
            file.write(json.dumps({"kind": kind, "step": step, **row}) + "\n")


def _sample(episodes: Iterable[Episode]) -> dict[str, Any]:
    """The most frequent patch, of those that passed if any did."""
    passing = [e for e in episodes if e.passed] or list(episodes)
    patches = [e.patch for e in passing]
    return {"patch": max(patches, key=patches.count).decode("utf-8", "replace"), "passed": passing[0].passed}


def plan(s: Settings, out: Path, arms: Iterable[str], seeds: int, sweep_seeds: int) -> list[Run]:
    """All runs, the arms seed by seed before the sweeps."""
    start = out / "start"
    runs = [
        Run(replace(s, seed=seed, grader="none" if arm == "grpo" else "rule"), arm, out / arm / f"seed{seed}", start)
        for seed in range(seeds)
        for arm in arms
    ]
    for seed in range(sweep_seeds):
        for name, values in SWEEPS.items():
            for value in values:
                folder = out / "sweep" / f"{name}={value:g}" / f"seed{seed}"
                own = replace(s, seed=seed, grader="rule")
                if name == "strength":
                    own = replace(own, strength=value)
                elif name == "group_size":  # as many episodes
                    own = replace(own, group_size=int(value), groups=max(1, s.groups * s.group_size // int(value)))
                accuracy = value if name == "grader_accuracy" else None
                runs.append(Run(own, "gagar", folder, start, accuracy=accuracy))
    return runs


def prepare(s: Settings, out: Path) -> None:
    """Make the starting policy, once, in a process of its own."""
    torch.set_num_threads(s.threads or os.cpu_count() or 1)
    starting_policy(s, Demonstrator(Path(s.folder)), out / "start")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="runs/grpo_vs_gagar", help="folder; with --smoke, another by default")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sweep-seeds", type=int, default=0, help="seeds for the sweeps, after the arms")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="runs at one time")
    parser.add_argument("--model", default="tiny", help="or a folder or name for transformers")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--smoke", action="store_true")
    given = parser.parse_args()
    out = Path(given.out + "-smoke" * (given.smoke and given.out == parser.get_default("out")))
    s = Settings(model=given.model, device=given.device, sandbox=given.sandbox, steps=given.steps, groups=4)
    s = replace(s, lr=5e-4, demo_epochs=30)  # until the kinds of work succeed as often as their demonstrations
    if given.model != "tiny":
        s = replace(s, demo_epochs=1, demo_lr=1e-4, lr=4e-6)
    if given.smoke:
        s = replace(s, steps=2, demos=96, demo_epochs=20, groups=2, group_size=4, save_every=2)
        s.tasks = "pager-last-page"
        given.seeds, given.sweep_seeds, given.arms = 1, 0, ["gagar", "penalty"]
    check_folder(out, s)
    register_tasks(Path(s.folder))
    started, runs = time.time(), plan(s, out, given.arms, given.seeds, given.sweep_seeds)
    if not (out / "start" / "start.pt").exists():
        child = multiprocessing.get_context("spawn").Process(target=prepare_registered, args=(s, out))
        child.start()
        child.join()
        if child.exitcode:
            raise SystemExit("the starting policy could not be made; see above")
    demonstrations(replace(s, demos=16 * len(s.tasks.split(","))), Demonstrator(Path(s.folder)))  # reports to inherit
    config = {
        "arms": given.arms,
        "seeds": given.seeds,
        "tasks": s.tasks.split(","),
        "settings": asdict(s) | {"folder": Path(s.folder).name, "out": ""},
        "machine": f"{os.cpu_count()} CPU cores, {given.device}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "command": command(given, parser),
    }
    failed = 0
    # Forked: the runs inherit the reports of the demonstrations. Not with CUDA, which does not survive a fork.
    context = multiprocessing.get_context("fork" if given.device == "cpu" else "spawn")
    with context.Pool(given.jobs, initializer=register_tasks, initargs=(Path(s.folder),), maxtasksperchild=1) as pool:
        for done, said in pool.imap_unordered(call, runs):
            failed += not done
            print(f"{(time.time() - started) / 60:.1f} min: {said}", flush=True)
    link_points(out, given.sweep_seeds)
    minutes = minutes_before(out) + (time.time() - started) / 60
    (out / "config.json").write_text(json.dumps({**config, "minutes": round(minutes, 1)}, indent=1))
    if failed:
        raise SystemExit(f"{failed} of {len(runs)} runs failed, see above; call again for those")


def command(given: argparse.Namespace, parser: argparse.ArgumentParser) -> str:
    """How these runs and their page are made."""
    said = [(f"--{name.replace('_', '-')}", getattr(given, name)) for name in ("seeds", "sweep_seeds", "steps")]
    flags = [f" {flag} {value}" for flag, value in said if value != parser.get_default(flag[2:].replace("-", "_"))]
    here = "python examples/grpo_vs_gagar"
    return f"{here}/run.py{''.join(flags)} && {here}/report.py {parser.get_default('out')}"


def minutes_before(out: Path) -> float:
    """What earlier calls took that went on in this folder."""
    try:
        return float(json.loads((out / "config.json").read_text())["minutes"])
    except (OSError, ValueError, KeyError):
        return 0.0


def check_folder(out: Path, s: Settings) -> None:
    """Note the settings in a new folder; a folder of others is refused, since its runs would count as done.

    Raises:
        SystemExit: Naming the first setting that differs.
    """
    path, mine = out / "settings.json", asdict(s) | {"folder": "", "out": "", "sandbox": ""}
    found = json.loads(path.read_text()) if path.exists() else mine
    for name, value in mine.items():
        if (old := found.get(name, value)) != value:
            raise SystemExit(f"{out} has runs with {name}={old!r}, not {value!r}: give another --out")
    out.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(mine, indent=1))


def link_points(out: Path, seeds: int) -> None:
    """Points of the sweeps that arms are already, as links to those."""
    for point, arm in SAME.items():
        for seed in range(seeds):
            link = out / "sweep" / point / f"seed{seed}"
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(Path("..", "..", arm, f"seed{seed}"))


def prepare_registered(s: Settings, out: Path) -> None:
    """`prepare` in a new interpreter."""
    register_tasks(Path(s.folder))
    prepare(s, out)


def call(run: Run) -> tuple[bool, str]:
    """Whether it went well, and what to tell: a run that breaks does not end the others."""
    try:
        return True, run()
    except Exception as error:
        return False, f"{run.folder} failed: {type(error).__name__}: {error}"


if __name__ == "__main__":
    logging.getLogger("gagar_env").setLevel(logging.ERROR)  # groups without a signal are counted, not told
    main()
