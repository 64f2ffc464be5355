"""The small tasks of the experiment: each known edit, done by its command in a real sandbox, is what it is called."""

import json
from pathlib import Path

import pytest

from gagar_env import RepoEditEnv, run_episode
from gagar_env.agents.policies.script import ScriptActor
from gagar_env.tasks.folder import load_task_folder

FOLDER = Path(__file__).parents[2] / "examples" / "grpo_vs_gagar" / "smalltasks"
COMMANDS = json.loads((FOLDER / "commands.json").read_text())


class Edits:
    name = "edits"

    def __init__(self, *commands):
        self.commands = commands

    def start(self, *, task, actions, seed):
        return ScriptActor(map(actions.bash, self.commands), actions)


def lines(patch):
    return [line for line in patch.splitlines() if not line.startswith(b"index ")]


def known(task):
    return {"reference": task.solution_patch} | {s.name: s.patch for s in task.solutions}


def test_every_task_has_commands_for_all_its_solutions():
    for name, task in ((path.parent.name, load_task_folder(path.parent)) for path in FOLDER.glob("*/task.toml")):
        edits = COMMANDS[name]["edits"]
        assert set(edits) == set(known(task))
        assert {edit.split("-")[0] for edit in edits} == {"reference", "clean", "sloppy", "wrong"}


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_edits_earn_what_they_are_called(name, best_kind):
    task = load_task_folder(FOLDER / name)
    for kind, edit in COMMANDS[name]["edits"].items():
        env = RepoEditEnv(task, turns=4, output_bytes=600, sandbox=best_kind)
        try:
            episode = run_episode(env, Edits(COMMANDS[name]["look"], edit))
        finally:
            env.close()
        assert lines(episode.patch) == lines(known(task)[kind]), kind
        assert episode.reward == (0.0 if kind.startswith("wrong") else 1.0), kind


@pytest.mark.slow
def test_demonstrations_of_the_language_model(best_kind, monkeypatch):
    """Of each kind, drawn as its weights say, and told apart again by what they changed."""
    pytest.importorskip("torch")
    import smollm

    task = load_task_folder(FOLDER / "pager-last-page")
    for kind in ("clean", "sloppy", "wrong"):
        monkeypatch.setattr(smollm, "WEIGHTS", {kind: 1.0})
        env = RepoEditEnv(task, turns=6, output_bytes=600, sandbox=best_kind)
        try:
            episode = run_episode(env, smollm.ShortDemonstrator(FOLDER), seed=3)
        finally:
            env.close()
        assert smollm.kind_of(episode, task) == kind
        assert smollm.brief(episode.first_observation) == task.problem_statement.strip()
    assert smollm.kind_of(episode.model_copy(update={"patch": b""}), task) == "other"
