import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from gagar_env.changes import FileState
from gagar_env.episode import Episode, TestRecord, TestReport, Turn
from gagar_env.errors import GradingError, PatchError
from gagar_env.patch import make_patch
from gagar_env.sandbox import SandboxSpec, choose_kind, open_sandbox
from gagar_env.tasks.task import RepoSource, Task, Tests
from gagar_env.workspace import Workspace, _label

TURNS = (Turn(action="ls", observation="a.py"), Turn(action="submit", observation="Submitted."))


@pytest.fixture
def base(tmp_path):
    tree = tmp_path / "base"
    (tree / "pkg").mkdir(parents=True)
    (tree / "pkg/a.py").write_text("a = 1\n")
    (tree / "pkg/b.py").write_text("b = 2\n")
    (tree / "out").symlink_to("pkg")
    return tree


@pytest.fixture
def task(base):
    return Task(
        id="tiny-task",
        problem_statement="a must be 2.\n",
        repo=RepoSource(kind="tree", path=base),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::t",)),
        solution_patch=b"the secret",
    )


def episode(name, outcome="passed", patch=b"", turns=TURNS, **more):
    report = TestReport(outcome=outcome, reason="" if outcome == "passed" else "why", **more)
    return Episode(
        id=name, group_id="g", task_id="tiny-task", status="submitted", turns=turns, patch=patch, report=report
    )


def broken(name):
    return Episode(id=name, group_id="g", task_id="tiny-task", status="error", error="no disk")


def test_layout_and_content(task, base):
    patch = make_patch(base, {"pkg/a.py": FileState(b"a = 2\n")})
    tests = {"t.py::t": TestRecord(status="passed", seconds=0.1)}
    with Workspace.create(task, base, [episode("e0", patch=patch, tests=tests)], seed=1) as workspace:
        folder = workspace.root / "candidates/A"
        assert (workspace.root / "task.md").read_text() == "a must be 2.\n"
        assert (workspace.root / "base/pkg/a.py").read_text() == "a = 1\n"
        assert (folder / "patch.diff").read_bytes() == patch
        assert json.loads((folder / "tests.json").read_text())["tests"]["t.py::t"]["status"] == "passed"
        lines = (folder / "trajectory.jsonl").read_text().splitlines()
        assert [json.loads(line)["action"] for line in lines] == ["ls", "submit"]
        assert not (folder / "tree").exists()
        assert workspace.candidates["A"].changes == {"pkg/a.py": FileState(b"a = 2\n")}
        root = workspace.root
    assert not root.exists()
    assert (base / "pkg/a.py").read_text() == "a = 1\n"


def test_labels_come_from_the_seed_and_say_nothing(task, base):
    episodes = [episode(f"e{n}", "passed" if n % 2 else "failed") for n in range(8)]

    def ids(seed):
        with Workspace.create(task, base, episodes, seed=seed) as workspace:
            assert list(workspace.candidates) == list("ABCDEFGH")
            everything = b"".join(p.read_bytes() for p in workspace.root.rglob("*") if p.is_file())
            assert b"e3" not in everything
            assert b"the secret" not in everything
            return dict(workspace.episode_ids)

    assert ids(1) == ids(1)
    assert len({tuple(ids(seed).values()) for seed in range(6)}) > 1


def test_many_labels():
    assert [_label(n) for n in (0, 25, 26, 27, 701, 702)] == ["A", "Z", "AA", "AB", "ZZ", "AAA"]


def test_only_valid_members_have_a_place_and_only_passing_ones_are_ranked(task, base):
    members = [episode("won"), broken("lost"), episode("failed", "failed"), episode("err", "error")]
    with Workspace.create(task, base, members, seed=0) as workspace:
        assert sorted(workspace.episode_ids.values()) == ["failed", "won"]
        assert [workspace.episode_ids[label] for label in workspace.passing] == ["won"]
        assert {c.label: c.passed for c in workspace.candidates.values()} == {
            label: name == "won" for label, name in workspace.episode_ids.items()
        }


def test_disk_1_odd_characters_and_numbers_are_valid_json(task, base):
    turn = Turn(action="a\udc80\ud83d \u2028 \x00", observation="\U0001f600 \x85\x1b", seconds=float("nan"))
    turns = (turn, turn.model_copy(update={"seconds": float("-inf")}))
    with Workspace.create(task, base, [episode("e", turns=turns, seconds=float("inf"))], seed=0) as workspace:
        data = (workspace.root / "candidates/A/trajectory.jsonl").read_bytes()

    def refuse(name):
        raise AssertionError(name)

    rows = [json.loads(line, parse_constant=refuse) for line in data.decode("utf-8").splitlines()]
    assert len(rows) == 2
    assert rows[0]["observation"] == "\U0001f600 \x85\x1b"
    assert rows[0]["action"].startswith("a\ufffd")
    assert rows[1]["seconds"] is None
    json.dumps(rows).encode()


def test_files_are_read_only(task, base):
    with Workspace.create(task, base, [episode("e")], seed=0) as workspace:
        for path in workspace.root.rglob("*"):
            if path.is_file() and "base" not in path.parts:
                assert not stat.S_IMODE(path.stat().st_mode) & 0o222


def test_tree_is_made_once_and_holds_the_change(task, base):
    changes = {"pkg/a.py": FileState(b"a = 2\n", "100755"), "pkg/b.py": None, "new/deep.py": FileState(b"x\n")}
    with Workspace.create(task, base, [episode("e", patch=make_patch(base, changes))], seed=0) as workspace:
        candidate = workspace.candidates["A"]
        with ThreadPoolExecutor(4) as pool:
            trees = {future.result() for future in [pool.submit(candidate.tree) for _ in range(8)]}
        (tree,) = trees
        assert (tree / "pkg/a.py").read_text() == "a = 2\n"
        assert os.access(tree / "pkg/a.py", os.X_OK)
        assert not (tree / "pkg/b.py").exists()
        assert (tree / "new/deep.py").read_text() == "x\n"
        assert os.readlink(tree / "out") == "pkg"
    with pytest.raises(GradingError, match="closed"):
        candidate.tree()


def test_no_link_of_a_candidate_is_followed(task, base, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("host")
    patch = make_patch(base, {"pkg/a.py": FileState(os.fsencode(outside / "secret"), "120000")})
    with Workspace.create(task, base, [episode("e", patch=patch)], seed=0) as workspace:
        candidate = workspace.candidates["A"]
        assert candidate.changes["pkg/a.py"].data == os.fsencode(outside / "secret")
        tree = candidate.tree()
        assert (tree / "pkg/a.py").is_symlink()
        assert b"host" not in (workspace.root / "candidates/A/patch.diff").read_bytes()
    assert (outside / "secret").read_text() == "host"


def test_a_folder_that_became_a_link_hides_nothing_of_the_host(task, base, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("host")
    changes = {"pkg/a.py": None, "pkg/b.py": None, "pkg": FileState(os.fsencode(outside), "120000")}
    with Workspace.create(task, base, [episode("e", patch=make_patch(base, changes))], seed=0) as workspace:
        tree = workspace.candidates["A"].tree()
        assert os.readlink(tree / "pkg") == str(outside)
    assert (outside / "a.py").read_text() == "host"


def test_a_patch_that_does_not_apply_is_said_when_it_is_read(task, base):
    bad = b"diff --git a/pkg/a.py b/pkg/a.py\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-z = 1\n+z = 2\n"
    with Workspace.create(task, base, [episode("e", patch=bad)], seed=0) as workspace:
        with pytest.raises(PatchError):
            _ = workspace.candidates["A"].changes
        with pytest.raises(PatchError):
            workspace.candidates["A"].tree()


def test_a_named_root_is_kept_and_a_full_one_refused(task, base, tmp_path):
    root = tmp_path / "kept"
    with Workspace.create(task, base, [episode("e")], seed=0, root=root, copy_base=True) as workspace:
        assert not (root / "base").is_symlink()
        assert workspace.base == root / "base"
    assert (root / "candidates/A/patch.diff").exists()
    with pytest.raises(FileExistsError, match="not empty"):
        Workspace.create(task, base, [episode("e")], seed=0, root=root)


def test_a_tree_runs_in_a_sandbox(task, base):
    patch = make_patch(base, {"pkg/a.py": FileState(b"print('changed')\n")})
    with Workspace.create(task, base, [episode("e", patch=patch)], seed=0) as workspace:
        sandbox = open_sandbox(choose_kind("auto"), SandboxSpec(tree=workspace.candidates["A"].tree()))
        try:
            assert sandbox.run("cat pkg/a.py; echo x >> pkg/a.py", timeout_s=20).output == b"print('changed')\n"
        finally:
            sandbox.close()
        assert (workspace.candidates["A"].tree() / "pkg/a.py").read_text() == "print('changed')\n"
