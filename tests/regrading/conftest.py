"""A small stored run, graded by rules, whose task is registered nowhere."""

import shutil

import pytest

from gagar_env.agents.graders import RuleGrader
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.group import grade_group
from gagar_env.store import RunFolder
from gagar_env.tasks.task import RepoSource, Task, Tests

BODIES = ["a + b", "(lambda x, y: x + y)(a, b) if True else None", "sum([a, b])", "b + a", "a"]


def patch(body):
    lines = "".join(f"+    {line}\n" for line in f"return {body}".splitlines())
    head = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n"
    return f"{head} def add(a, b):\n-    return a - b\n{lines}".encode()


def members(group, passed, task_id):
    """The episodes of a group."""
    return [
        Episode(
            id=f"{group}/{number}",
            group_id=group,
            task_id=task_id,
            status=EpisodeStatus.SUBMITTED,
            turns=(Turn(action="x", observation="y", completion_tokens=5 + number),) * (number + 1),
            patch=patch(BODIES[number]),
            report=TestReport(outcome=Outcome.PASSED if won else Outcome.FAILED, reason="" if won else "no"),
            seed=number,
        )
        for number, won in enumerate(passed)
    ]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GAGAR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    tree = tmp_path_factory.mktemp("tree") / "calc"
    tree.mkdir()
    (tree / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return Task(
        id="nowhere-registered",
        problem_statement="add subtracts.",
        repo=RepoSource(kind="tree", path=tree),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::t",)),
    )


@pytest.fixture(scope="module")
def stored(tmp_path_factory, task):
    """A run of three groups; not to be changed."""
    folder = RunFolder.create(tmp_path_factory.mktemp("stored") / "run")
    kinds = [
        ("g0", (True, True, True, True, False), {"strength": 0.75, "scheme": "geometric"}),
        ("g1", (False, False), {}),
        ("g2", (True, True, False, False), {"base": "dr_grpo", "preserve": "token"}),
    ]
    for number, (group, passed, settings) in enumerate(kinds):
        episodes = members(group, passed, task.id)
        result = grade_group(episodes, RuleGrader(), task=task, seed=100 + number, **settings)
        folder.add(result, episodes, task=task, attempt=2 * number)
    return folder


@pytest.fixture
def run(stored, tmp_path):
    return RunFolder.open(shutil.copytree(stored.path, tmp_path / "run"))


@pytest.fixture
def no_tree(task, tmp_path, monkeypatch):
    """The tree of the task is elsewhere, and no base tree of before is kept."""
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "other-cache"))
    yield task.repo.path.rename(tmp_path / "moved")
    (tmp_path / "moved").rename(task.repo.path)


@pytest.fixture(scope="session")
def group_of():
    return members
