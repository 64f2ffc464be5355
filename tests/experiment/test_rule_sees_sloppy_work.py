"""The rule grader tells the sloppy solutions of the small tasks from the clean ones."""

from pathlib import Path

import pytest

from gagar_env.agents.graders.rule import RuleGrader
from gagar_env.episode import Episode, TestReport
from gagar_env.grading import check_verdict
from gagar_env.provision import provision_base
from gagar_env.tasks.folder import load_task_folder
from gagar_env.workspace import Workspace

SMALL = Path(__file__).parents[2] / "examples" / "grpo_vs_gagar" / "smalltasks"
LEFT_BEHIND = ("sloppy-print", "sloppy-copy", "sloppy-note")


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in SMALL.glob("*/task.toml")))
def test_what_is_left_behind_ranks_below_every_clean_solution(folder):
    task = load_task_folder(SMALL / folder)
    clean = {"reference": task.solution_patch} | {s.name: s.patch for s in task.solutions if s.kind == "clean"}
    patches = clean | {s.name: s.patch for s in task.solutions if s.name in LEFT_BEHIND}
    assert len(patches) == len(clean) + len(LEFT_BEHIND)
    common = {"group_id": "g", "task_id": task.id, "status": "submitted", "report": TestReport(outcome="passed")}
    episodes = [Episode(id=name, patch=patch, **common) for name, patch in patches.items()]
    with Workspace.create(task, provision_base(task).tree, episodes, seed=0) as workspace:
        verdict = check_verdict(RuleGrader().grade(workspace), workspace.passing)
        rank = {name: verdict.rank(label) for label, name in workspace.episode_ids.items()}
    assert all(rank[sloppy] > max(rank[name] for name in clean) for sloppy in LEFT_BEHIND), rank
