"""Whatever is wrong with a run is told, on one line each, and what is not wrong is not."""

import json

import pytest

from gagar_env.agents.graders import RuleGrader
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.group import grade_group
from gagar_env.sampling import GymEpisode, gym_group_result
from gagar_env.store import RunFolder, verify_run
from gagar_env.tasks.task import RepoSource, Task, Tests
from gagar_env.turn_credit import share_out

BODIES = ["a + b", "sum([a, b]) if True else None", "(lambda x, y: x + y)(a, b)", "a", "0"]


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    tree = tmp_path_factory.mktemp("tree")
    (tree / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return Task(
        id="calc",
        problem_statement="add subtracts.",
        repo=RepoSource(kind="tree", path=tree),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::t",)),
    )


def patch(body):
    head = "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n"
    return f"{head}-    return a - b\n+    return {body}\n".encode()


def members(name, outcomes):
    return [
        Episode(
            id=f"{name}-{place}",
            group_id=name,
            task_id="calc",
            status=EpisodeStatus.ERROR if won is None else EpisodeStatus.SUBMITTED,
            error="no disk" if won is None else "",
            turns=(Turn(action="x", observation="y", completion_tokens=3 + place),),
            patch=patch(BODIES[place]),
            report=None if won is None else TestReport(outcome=Outcome.PASSED if won else Outcome.FAILED),
        )
        for place, won in enumerate(outcomes)
    ]


@pytest.fixture(scope="module")
def graded(task, tmp_path_factory):
    """A group that was ranked, one with an invalid member and one that was dropped; by several settings."""
    kinds = [
        ("g0", (True, True, True, False), {"strength": 0.9, "scheme": "geometric", "base": "rloo"}),
        ("g1", (True, True, None, False, True), {"base": "dr_grpo", "preserve": "token"}),
        ("g2", (True, True), {}),
        ("g3", (True, None), {}),
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("GAGAR_CACHE", str(tmp_path_factory.mktemp("cache")))
        return [
            (grade_group(own := members(name, outcomes), RuleGrader(), task=task, **settings), own)
            for name, outcomes, settings in kinds
        ]


@pytest.fixture
def run(tmp_path, graded, task):
    folder = RunFolder.create(tmp_path / "run", {"group_count": len(graded)})
    for number, (result, episodes) in enumerate(graded):
        folder.add(result, episodes, task=task, attempt=number)
    return folder


def faults(folder):
    return [fault.text for fault in verify_run(folder) if not fault.harmless]


def left_over(folder):
    return [fault.text for fault in verify_run(folder) if fault.harmless]


def change(folder, line, **fields):
    """Rewrite a line, as no part of this package does."""
    path = folder.path / "groups.jsonl"
    lines = path.read_text().splitlines()
    lines[line] = json.dumps({**json.loads(lines[line]), **fields})
    path.write_text("\n".join(lines) + "\n")


def test_a_whole_run_has_no_fault(run, graded):
    assert graded[0][0].graded
    assert graded[1][0].graded
    assert len(set(graded[0][0].weights)) > 1
    assert faults(run) == left_over(run) == []


def test_groups_of_other_environments_are_whole_without_their_episodes(run):
    returns = (1.0, 4.0)
    episodes = [
        GymEpisode(
            id=f"gym-{place}", group_id="gym", task_id="CartPole-v1", status="submitted", rewards=(value,), seed=place
        )
        for place, value in enumerate(returns)
    ]
    result = gym_group_result(episodes)
    assert result.kept
    run.add(result, (), attempt=4)
    assert faults(run) == []


@pytest.mark.parametrize(
    ("line", "fields", "told"),
    [
        (0, {"weights": [1.0, 1.0, 1.0, 1.0]}, "weight 1.0, and"),
        (0, {"strength": 0.2}, "has weight"),
        (1, {"tokens": [3.0, 4.0, 5.0, 6.0, 7.5]}, "has advantage"),
        (2, {"reason": "all_failed"}, "says all_failed, its outcomes say all_passed"),
        (2, {"kept": True}, "its outcomes say all_passed"),
        (1, {"passed": [True, True, False, True, True]}, "has passed False, its group says True"),
        (0, {"valid": [True, True, True, False]}, "has valid True, its group says False"),
        (0, {"base": "grpo"}, "advantage before"),
        (0, {"task_id": "other"}, "has task 'calc', its group says 'other'"),
        (0, {"group_id": "g1"}, "group 'g1' is there 2 times"),
        (3, {"attempt": 2}, "number 2 is there 2 times"),
        (3, {"episode_ids": ["g2-0", "g2-1"]}, "episode 'g2-0' is there 2 times"),
    ],
)
def test_numbers_that_do_not_follow_are_told(run, line, fields, told):
    change(run, line, **fields)
    found = faults(run)
    assert any(told in text for text in found), found
    assert all("\n" not in text for text in found)


@pytest.mark.parametrize("name", ["advantages", "advantages_before"])
@pytest.mark.parametrize("by", [1e-8, float("nan")])
def test_one_advantage_that_is_off_is_told_by_its_episode(run, graded, name, by):
    values = list(getattr(graded[0][0], name))
    values[1] += by
    change(run, 0, **{name: values})
    assert any("episode 'g0-1' has advantage" in text for text in faults(run))


@pytest.mark.parametrize("number", [0, 1])  # by turns, and by tokens
def test_advantages_of_turns_have_the_mean_of_their_episode(tmp_path, graded, number):
    result, episodes = graded[number]
    turns = tuple(Turn(action="x", observation="y", completion_tokens=n) for n in (1, 5))
    long = [episode.model_copy(update={"turns": turns}) for episode in episodes]
    marks = [("useful", "wasted") if place == 1 else None for place in range(len(long))]
    tokens = None if number == 0 else [(1.0, 5.0)] * len(long)
    shares = share_out(result.advantages, marks, preserve="turn" if tokens is None else "token", tokens=tokens)
    folder = RunFolder.create(tmp_path / "turns")
    folder.add(result.model_copy(update={"turn_advantages": shares}), long)
    assert faults(folder) == []
    wrong = [None if own is None else [own[1], own[0]] if tokens else [own[0], own[0]] for own in shares]
    change(folder, 0, turn_advantages=wrong)
    (found,) = faults(folder)
    assert "advantages of turns of mean" in found
    change(folder, 0, turn_advantages=[None if own is None else own[:1] for own in shares])
    assert "2 turns, its group has advantages of 1" in faults(folder)[0]


def test_rounding_is_no_fault(run, graded):
    values = [value + 1e-12 for value in graded[0][0].advantages]
    change(run, 0, advantages=values)
    assert faults(run) == []


def test_episodes_that_are_gone_damaged_or_others_are_told(run):
    folder = run.path / "episodes"
    (folder / "g0-0.json").unlink()
    (folder / "g0-1.json").write_text("{")
    (folder / "g1-0.json").write_bytes((folder / "g1-1.json").read_bytes())
    found = faults(run)
    assert len(found) == 3
    for text, told in zip(found, ("'g0-0' is not there", "'g0-1' cannot be read", "has id 'g1-1'"), strict=True):
        assert told in text


def test_what_a_killed_process_left_is_harmless_where_nothing_is_missing(run):
    (run.path / "episodes/orphan-0.json").write_text("{}")
    (run.path / "episodes/.1-ab.part").write_text("{")
    path = run.path / "groups.jsonl"
    with path.open("a") as stream:
        stream.write('{"torn')
    assert faults(run) == []
    told = left_over(run)
    assert len(told) == 3
    assert "line 5 is torn" in told[0]
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[1:]) + "\n")  # now a group is missing
    (torn,) = faults(run)
    assert "line 4 is torn" in torn
    assert len(left_over(run)) == 2 + 4  # its episodes belong to none
