"""A small stored run: three groups of one task, graded by rules, with what is awkward to export."""

import json
import sys

import pytest

from gagar_env.actions import ToolsFormat
from gagar_env.agents.graders import RuleGrader
from gagar_env.episode import Episode, EpisodeStatus, Flag, Outcome, TestRecord, TestReport, Turn, TurnTokens
from gagar_env.group import grade_group
from gagar_env.store import RunFolder
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests

INSTANCE = "someone__calc-1"


def patch(body):
    lines = body.splitlines()
    added = "".join(f"+{line}\n" for line in lines)
    return (
        "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n"
        f"@@ -1,2 +1,{1 + len(lines)} @@\n def add(a, b):\n-    return a - b\n{added}"
    ).encode()


SHORT = patch("    return a + b")
LONG = patch(
    "    result = a\n    if b:\n        for _ in range(1):\n            result = result + b\n    return result"
)
NO_TEXT = patch("    return a + b  # ?").replace(b"?", b"\xff")


def turn(action, observation="ok", **more):
    return Turn(action=action, observation=observation, exit_code=0, prompt_tokens=10, completion_tokens=3, **more)


def episode(name, group, *, won=True, work=SHORT, turns=None, status=EpisodeStatus.SUBMITTED, first="Fix add.", **more):
    report = TestReport(
        outcome=Outcome.PASSED if won else Outcome.FAILED,
        reason="" if won else "test_add failed",
        tests={"test_calc.py::test_add": TestRecord(status="passed" if won else "failed")},
        unmet=() if won else ("test_calc.py::test_add",),
        flags=(Flag(kind="always_equal", path="calc.py", detail="line 2"),) if not won else (),
    )
    acted = turns or (turn("I look.\n```bash\ncat calc.py\n```", "def add …\n"), turn("submit", "bye"))
    common = {"id": name, "group_id": group, "task_id": "our/calc", "turns": acted, "policy": "chat:some/model"}
    return Episode(
        **common, status=status, patch=work, report=report, first_observation=first, seed=5, sandbox="bwrap", **more
    )


def tool_turns():
    calls = [{"tool": "bash", "command": "ls"}, {"tool": "view", "path": "calc.py", "start": 1}]
    texts = [*map(json.dumps, calls), "no call at all", '{"tool": "submit"}']
    tokens = TurnTokens(kept=0, prompt=(1, 2), completion=(3,), logprobs=(-0.5,))
    return tuple(turn(text, f"answer {n}", tokens=tokens) for n, text in enumerate(texts))


@pytest.fixture(scope="session")
def task(tmp_path_factory):
    tree = tmp_path_factory.mktemp("calc")
    (tree / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return Task(
        id="our/calc",
        problem_statement="add subtracts.",
        repo=RepoSource(kind="tree", path=tree),
        environment=Environment(python=sys.executable),
        tests=Tests(files=("test_calc.py",), fail_to_pass=("test_calc.py::test_add",)),
        extra={"instance_id": INSTANCE},
    )


@pytest.fixture(scope="session")
def groups(task, tmp_path_factory):
    """The groups with their episodes: a ranked one, one with tool calls and an episode without result, a lost one."""
    first = [episode("a/1", "g1"), episode("a/2", "g1", work=LONG), episode("a/3", "g1", won=False, work=b"")]
    tools = f"Fix add.\n\n{ToolsFormat().instructions()}"
    broken = {"id": "b/3", "group_id": "g2", "task_id": "our/calc", "status": "error", "error": "no disk"}
    second = [
        episode("b/1", "g2", turns=tool_turns(), first=tools),
        episode("b/2", "g2", won=False, work=NO_TEXT, status=EpisodeStatus.TURN_LIMIT),
        Episode(**broken),
    ]
    third = [episode("c/1", "g3", won=False), episode("c/2", "g3", won=False)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GAGAR_CACHE", str(tmp_path_factory.mktemp("cache")))
        return [
            (grade_group(members, RuleGrader(), task=task, seed=number), members)
            for number, members in enumerate((first, second, third))
        ]


@pytest.fixture
def run(tmp_path, groups, task):
    folder = RunFolder.create(tmp_path / "run")
    for number, (result, members) in enumerate(groups):
        folder.add(result, members, task=task, attempt=10 + number)
    return folder


@pytest.fixture(scope="session")
def episodes(groups):
    return {member.id: (result, number, member) for result, own in groups for number, member in enumerate(own)}


@pytest.fixture(scope="session")
def instance():
    return INSTANCE
