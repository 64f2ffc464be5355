"""The rule grader on the known solutions of the built-in tasks."""

import pytest

from gagar_env.agents.graders.rule import RuleGrader
from gagar_env.bases import prepare_base
from gagar_env.episode import Episode, TestReport, Turn
from gagar_env.grading import VerdictOutcome, check_verdict
from gagar_env.tasks.builtin import FOLDER
from gagar_env.tasks.registry import load_task
from gagar_env.workspace import Workspace

BUILTIN = sorted(path.parent.name for path in FOLDER.glob("*/task.toml"))

KNOWN_EXCEPTIONS = {
    "cache-stampede": "the locks of one sloppy solution take fewer lines than the class of one clean solution, "
    "and what is wrong with them (a race that no test sees, flags, nested blocks) is hardly a matter of counts",
}


def rank_builtin(task):
    kinds = {"solution": "clean", **{s.name: s.kind for s in task.solutions}}
    patches = {"solution": task.solution_patch, **{s.name: s.patch for s in task.solutions}}
    turn = Turn(action="x", observation="y")
    episodes = [
        Episode(
            id=name,
            group_id="g",
            task_id=task.id,
            status="submitted",
            turns=(turn,) * (5 + number % 4),
            patch=patches[name],
            report=TestReport(outcome="failed" if kinds[name] == "wrong" else "passed"),
        )
        for number, name in enumerate(sorted(patches))
    ]
    with Workspace.create(task, prepare_base(task).tree, episodes, seed=0) as workspace:
        verdict = check_verdict(RuleGrader().grade(workspace), workspace.passing)
        assert verdict.outcome is VerdictOutcome.RANKED
        ranks = {workspace.episode_ids[label]: verdict.rank(label) for label in workspace.passing}
    clean = {name: rank for name, rank in ranks.items() if kinds[name] == "clean"}
    sloppy = {name: rank for name, rank in ranks.items() if kinds[name] == "sloppy"}
    return clean, sloppy


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILTIN)
def test_clean_solutions_of_built_in_tasks_outrank_every_sloppy_one(name):
    clean, sloppy = rank_builtin(load_task(name))
    assert len(clean) >= 2
    assert len(sloppy) >= 3
    inverted = {(c, s) for c in clean for s in sloppy if clean[c] >= sloppy[s]}
    if name in KNOWN_EXCEPTIONS:
        assert inverted, f"{name} is no exception any more: take it out of KNOWN_EXCEPTIONS"
        assert len(inverted) == 1
        assert clean["solution"] < min(sloppy.values())
    else:
        assert not inverted


def test_there_are_twelve_tasks_and_few_exceptions():
    assert len(BUILTIN) >= 12
    assert len(KNOWN_EXCEPTIONS) <= 2
    assert set(KNOWN_EXCEPTIONS) <= set(BUILTIN)
