"""The experiment as a user starts it, at its smoke size: real episodes, two arms, resumed, and a page from it."""

import json
import statistics
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDER = EXAMPLES / "grpo_vs_gagar"
sys.path[:0] = [str(EXAMPLES), str(FOLDER)]

import run as experiment  # noqa: E402

from gagar_env import load_task, register_tasks  # noqa: E402
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport  # noqa: E402
from gagar_env.grading import Verdict, VerdictOutcome  # noqa: E402
from gagar_env.group import grade_group  # noqa: E402
from gagar_env.wrappers.batches import GroupBatch  # noqa: E402


class Ladder:
    """Ranks longer patches lower."""

    name = "ladder"

    def grade(self, workspace):
        order = sorted(workspace.passing, key=lambda label: len(workspace.candidates[label].patch))
        return Verdict(grader=self.name, outcome=VerdictOutcome.RANKED, tiers=tuple((label,) for label in order))


def group(task, passing, failing=3):
    outcomes = [*[(patch, Outcome.PASSED) for patch in passing], *[(b"", Outcome.FAILED)] * failing]
    episodes = tuple(
        Episode(
            id=str(n),
            group_id="g",
            task_id=task.id,
            status=EpisodeStatus.SUBMITTED,
            patch=patch,
            report=TestReport(outcome=outcome),
        )
        for n, (patch, outcome) in enumerate(outcomes)
    )
    return GroupBatch(
        result=grade_group(episodes, Ladder(), strength=0.75), episodes=episodes, task=task, attempt=0, seed=0
    )


@pytest.fixture
def task():
    register_tasks(FOLDER / "smalltasks")
    return load_task("pager-last-page")


def test_the_penalty_is_grpo_of_a_lower_reward(task):
    """Closed form: two passing of five, rewards 1 and 1/4; the mean is 1/4, so the worse one earns nothing."""
    patches = sorted([task.solution_patch, task.solutions[1].patch], key=len)
    before = group(task, patches)
    after = experiment.penalise(before)
    rewards = [1.0, 0.25, 0.0, 0.0, 0.0]
    spread = statistics.stdev(rewards) + 1e-6  # as the other arms have it
    assert after.result.advantages == pytest.approx([(r - 0.25) / spread for r in rewards])
    assert after.result.advantages[1] == pytest.approx(0.0)
    assert before.result.sum_after == pytest.approx(before.result.sum_before)
    assert after.result.sum_after < after.result.sum_before
    ungraded = replace(before, result=before.result.model_copy(update={"ranks": (None,) * 5}))
    assert experiment.penalise(ungraded) is ungraded


@pytest.mark.parametrize("accuracy", [0.5, 0.75, 1.0])
def test_an_oracle_with_noise_is_right_as_often_as_it_says(task, accuracy):
    """Pairs of a good and a bad one, under the same labels in every group: the good one comes first in that share."""

    class Fake:
        def __init__(self, number):
            self.task, self.seed, self.passing = task, number, ("a", "b")
            self.candidates = {name: type("C", (), {"patch": name.encode()}) for name in self.passing}

    class Meter:
        def measure(self, task, patch):
            return type("Q", (), {"regressions": 1.0, "distance": float(patch == b"b"), "out_of_scope_lines": 0})

    oracle = experiment.NoisyOracle(accuracy, Meter())
    scores = [oracle(Fake(number)) for number in range(2000)]
    right = sum(score["a"] > score["b"] for score in scores) / len(scores)
    assert right == pytest.approx(accuracy, abs=4 * 0.5 / 2000**0.5)


def test_evaluations_come_at_the_end_and_as_often_as_wanted(tmp_path):
    evaluated = []

    class Counting(experiment.Run):
        evaluate_every = 2
        trainer = SimpleNamespace(step=0)
        watcher = SimpleNamespace(numbers=dict)

        def _write(self, kind, step, numbers):
            pass

        def _evaluate(self, when):
            evaluated.append((when, self.trainer.step))

    run = Counting(experiment.Settings(steps=5), "gagar", tmp_path, tmp_path)
    for step in range(5):
        run.trainer.step = step
        run._log(step, {})
    assert evaluated == [("after", 2), ("after", 4), ("after", 5)]


def test_points_of_the_sweeps_that_are_arms_lead_to_their_numbers(tmp_path):
    for arm in experiment.ARMS:
        (tmp_path / arm / "seed0").mkdir(parents=True)
        (tmp_path / arm / "seed0" / "metrics.jsonl").write_text(arm)
    for _ in range(2):
        experiment.link_points(tmp_path, 1)
    for point, arm in experiment.SAME.items():
        assert (tmp_path / "sweep" / point / "seed0" / "metrics.jsonl").read_text() == arm


def test_a_folder_of_other_settings_is_refused_and_a_run_that_breaks_ends_no_other(tmp_path):
    s = experiment.Settings()
    experiment.check_folder(tmp_path, replace(s, steps=2))
    experiment.check_folder(tmp_path, replace(s, steps=2, out="elsewhere"))
    with pytest.raises(SystemExit, match="has runs with steps=2, not 60"):
        experiment.check_folder(tmp_path, s)
    (tmp_path / "file").write_text("")
    broken = experiment.Run(s, "gagar", tmp_path / "file" / "seed0", tmp_path / "start")
    well, said = experiment.call(broken)
    assert not well
    assert "seed0 failed: NotADirectoryError" in said


@pytest.mark.slow
def test_smoke_then_nothing_is_left_to_do_then_a_page(tmp_path):
    def call(script, *arguments):
        done = subprocess.run(
            [sys.executable, str(FOLDER / script), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    call("run.py", "--smoke", "--out", "out")
    for arm in ("gagar", "penalty"):
        rows = [
            json.loads(line) for line in (tmp_path / "out" / arm / "seed0" / "metrics.jsonl").read_text().splitlines()
        ]
        assert [(row["kind"], row["step"]) for row in rows] == [("eval", 0), ("train", 0), ("train", 1), ("eval", 2)]
        assert all(0 <= row["pass_rate"] <= 1 for row in rows)
        trained = [row for row in rows if row.get("grad_norm")]
        assert trained, rows
        if arm == "gagar":
            assert all(row["sum_after"] == pytest.approx(row["sum_before"]) for row in rows)
            assert all(row["failing_change"] == 0 for row in rows)
    starts = {
        (tmp_path / "out" / arm / "seed0" / "metrics.jsonl").read_text().splitlines()[0] for arm in ("gagar", "penalty")
    }
    numbers = [json.loads(start)["pass_rate"] for start in starts]
    assert max(numbers) == min(numbers)  # the same policy, the same seeds
    assert call("run.py", "--smoke", "--out", "out").count("was done") == 2
    call("report.py", "out", "--docs", "docs")
    page = (tmp_path / "docs" / "experiment.md").read_text()
    assert "GAGAR" in page
