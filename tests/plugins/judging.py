"""What tests of graders with a model share: a small group to grade, and scripts that answer as a judge would."""

import functools
import re
import sys

import pytest
from chat_server import tool_call

from gagar_env.changes import FileState
from gagar_env.episode import Episode, TestReport, Turn
from gagar_env.patch import make_patch
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests
from gagar_env.workspace import Workspace

CALC = "def add(a, b):\n    return a - b\n"
GOOD = "def add(a, b):\n    return a + b\n"
SOLUTIONS = (
    GOOD,
    "def add(a, b):\n    result = a + b\n    return result\n",
    "def add(a, b):\n    return sum([a, b])\n",
)


class Bench:
    """Makes groups of one small task."""

    def __init__(self, tree):
        self.tree = tree
        (tree / "lib").mkdir(parents=True)
        (tree / "calc.py").write_text(CALC)
        (tree / "lib/helper.py").write_text("def helper():\n    return 'needle'\n")
        self.task = Task(
            id="tiny-calc",
            problem_statement="add(2, 3) gives -1, it should give 5.",
            repo=RepoSource(kind="tree", path=tree),
            environment=Environment(python=sys.executable),
            tests=Tests(files=("test_calc.py",), fail_to_pass=("test_calc.py::test_add",)),
        )

    @functools.cache  # noqa: B019 - the bench lives as long as the tests
    def patch(self, changes):
        return make_patch(
            self.tree, {path: text if text is None else FileState(text.encode()) for path, text in changes}
        )

    def episode(self, name, changes, *, passed=True, turns=3, policy="", patch=None, action="look", observation="seen"):
        if isinstance(changes, str):
            changes = {"calc.py": changes}
        if patch is None:
            patch = self.patch(tuple(changes.items()))
        report = TestReport(outcome="passed") if passed else TestReport(outcome="failed", reason="test_add failed")
        return Episode(
            id=name,
            group_id="g",
            task_id=self.task.id,
            status="submitted",
            turns=tuple(Turn(action=f"{action} {n}", observation=observation) for n in range(1, turns + 1)),
            patch=patch,
            report=report,
            policy=policy,
        )

    def group(self, count=3, **more):
        """So many that passed, and one that failed."""
        won = [self.episode(f"e{n}", SOLUTIONS[n], **more) for n in range(count)]
        return [*won, self.episode("lost", CALC.replace("-", "*"), passed=False)]

    def workspace(self, episodes=None, *, seed=1, count=3):
        return Workspace.create(self.task, self.tree, episodes or self.group(count), seed=seed)


@pytest.fixture(scope="session")
def bench(tmp_path_factory) -> Bench:
    """The task; read only."""
    return Bench(tmp_path_factory.mktemp("judged") / "base")


def passing(request):
    """Labels that a request asks to rank, in the order in which they are shown."""
    shown = next(m["content"] for m in request["messages"] if m["role"] == "user")
    return re.findall(r"^\| ([A-Z]\d\d): passed", shown, re.M)


def submit(tiers, **more):
    """The call that counts."""
    return tool_call("submit", {"tiers": tiers, **more})


def by_size(request):
    """A judge of content: fewer added lines are better; what it cannot tell apart it ties."""
    shown = next(m["content"] for m in request["messages"] if m["role"] == "user")
    found = re.findall(r"^\| ([A-Z]\d\d): passed; \+(\d+)", shown, re.M)
    sizes = sorted({int(size) for _, size in found})
    return submit([[label for label, n in found if int(n) == size] for size in sizes])
