"""A task's bug, as a patch on the tree that its base is made from; and what a tree names but does not hold."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gagar_env.bases import check_history, prepare_base
from gagar_env.changes import FileState
from gagar_env.errors import TaskError
from gagar_env.patch import make_patch
from gagar_env.repogaps import repo_gaps
from gagar_env.tasks.task import RepoSource

pytestmark = pytest.mark.usefixtures("own_cache")

FIXED = "def add(a, b):\n    return a + b\n"
BUG = b"""--- a/pkg/calc.py
+++ b/pkg/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a + b
+    return a - b
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "calc.py").write_text(FIXED)
    (folder / "pkg" / "data.bin").write_bytes(b"\0\1")
    (folder / "old").mkdir()
    (folder / "old" / "only.py").write_text("x\n")
    (folder / "link").symlink_to("pkg/calc.py")
    return folder


def test_leak_1_the_bug_is_in_the_one_commit_and_the_fix_is_nowhere(task_of, git_in, source: Path) -> None:
    repo = RepoSource(kind="tree", path=source, patch=BUG)
    base = prepare_base(task_of(repo))
    assert (base.tree / "pkg" / "calc.py").read_text() == FIXED.replace("+", "-")
    assert (source / "pkg" / "calc.py").read_text() == FIXED
    assert git_in(base.tree, "status", "--porcelain") == ""
    check_history(base.tree)
    objects = git_in(base.tree, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert not any("a + b" in git_in(base.tree, "cat-file", "-p", name) for name in objects)
    assert prepare_base(task_of(repo.model_copy(update={"patch": b""}))).key != base.key


@pytest.mark.parametrize("kind", ["git", "archive"])
def test_it_goes_with_every_kind_of_source(task_of, git_in, source: Path, tmp_path: Path, kind: str) -> None:
    if kind == "git":
        git_in(source, "init", "-q")
        git_in(source, "add", ".")
        git_in(source, "commit", "-qm", "one")
        repo = RepoSource(kind="git", path=source, commit="HEAD", patch=BUG)
    else:
        import tarfile

        with tarfile.open(tmp_path / "p-1.tar", "w") as archive:
            archive.add(source, "p-1")
        repo = RepoSource(kind="archive", path=tmp_path / "p-1.tar", patch=BUG)
    assert b"a - b" in (prepare_base(task_of(repo)).tree / "pkg" / "calc.py").read_bytes()


def test_files_that_come_go_and_change_their_kind(task_of, contents, source: Path) -> None:
    changes = {
        "old/only.py": None,
        "new/run.sh": FileState(b"#!/bin/sh\n", "100755"),
        "pkg/data.bin": FileState(b"\0\2\xff"),
        "link": FileState(b"plain\n"),
        "pkg/calc.py": FileState(b"data.bin", "120000"),
    }
    repo = RepoSource(kind="tree", path=source, patch=make_patch(source, changes))
    tree = prepare_base(task_of(repo)).tree
    assert contents(tree) == {
        "new/run.sh": ("program", b"#!/bin/sh\n"),
        "pkg/data.bin": ("file", b"\0\2\xff"),
        "link": ("file", b"plain\n"),
        "pkg/calc.py": ("link", b"data.bin"),
    }
    assert not (tree / "old").exists()


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (BUG.replace(b"a + b", b"a * b"), "repo.patch of the-task does not apply: .*calc.py"),
        (b"no patch at all\n", "repo.patch of the-task does not apply"),
        (BUG.replace(b"pkg/calc.py", b"../out.py"), "repo.patch of the-task does not apply"),
        (BUG.replace(b"pkg/calc.py", b".git/hooks/x"), "repo.patch of the-task does not apply"),
        (BUG.replace(b"pkg/calc.py", b"link/x"), "repo.patch of the-task does not apply"),
        (
            b"diff --git a/out b/out\nnew file mode 120000\n--- /dev/null\n+++ b/out\n@@ -0,0 +1 @@\n+/etc/passwd\n"
            b"\\ No newline at end of file\n",
            "leads out of the repository",
        ),
        (b"\n", "changes nothing"),
    ],
)
def test_hack_11_patches_that_are_refused(task_of, source: Path, patch: bytes, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        prepare_base(task_of(RepoSource(kind="tree", path=source, patch=patch)))
    assert "\n" not in str(caught.value)


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"
MODULES = (
    '[submodule "a b"]\n\tpath = lib/a\n\turl = https://x.example/y:z\n[submodule "q"]\n\tpath = "q"\n\turl = ../q\n'
)


def test_gaps_are_named(tmp_path: Path) -> None:
    assert repo_gaps(tmp_path) == []
    (tmp_path / "big.bin").write_text(POINTER)
    assert repo_gaps(tmp_path) == ["1 file is a Git LFS pointer, not its content: big.bin"]
    (tmp_path / "sub").mkdir()
    for name in "abc":
        (tmp_path / "sub" / name).write_text(POINTER)
    (tmp_path / "long.txt").write_text(POINTER + "x" * 2000)  # a text about pointers
    (tmp_path / "link").symlink_to("big.bin")
    (tmp_path / ".gitmodules").write_text(MODULES)
    (tmp_path / "q").mkdir()
    assert repo_gaps(tmp_path) == [
        "4 files are Git LFS pointers, not their content: big.bin, sub/a, sub/b and 1 more",
        "2 submodules are not part of the tree: lib/a, q",
    ]
    (tmp_path / "q" / "x").touch()
    assert repo_gaps(tmp_path)[1] == "1 submodule is not part of the tree: lib/a"


@pytest.mark.parametrize("path", ["../out", "/etc", "a/../../b", "l/x"])
def test_gaps_outside_of_the_tree_are_not_looked_at(tmp_path: Path, path: str) -> None:
    (tmp_path / "l").symlink_to("/")
    (tmp_path / ".gitmodules").write_text(f'[submodule "x"]\n\tpath = {path}\n')
    assert repo_gaps(tmp_path) == []


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.one_of(st.binary(max_size=200), st.text(alphabet='[]submodule "=path#;\n\t', max_size=80).map(str.encode))
)
def test_any_gitmodules_gives_lines(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".gitmodules").write_bytes(data)
    assert all("\n" not in line for line in repo_gaps(tmp_path))


def test_a_commit_with_submodules_and_pointers(task_of, git_in, history) -> None:
    folder, _, fix = history
    git_in(folder, "update-index", "--add", "--cacheinfo", f"160000,{fix},lib/sub")
    (folder / ".gitmodules").write_text('[submodule "s"]\n\tpath = lib/sub\n\turl = ./x\n')
    (folder / "big.bin").write_text(POINTER)
    git_in(folder, "add", ".gitmodules", "big.bin")
    git_in(folder, "commit", "-qm", "gaps")
    tree = prepare_base(task_of(RepoSource(kind="git", path=folder, commit="HEAD"))).tree
    assert repo_gaps(tree) == [
        "1 file is a Git LFS pointer, not its content: big.bin",
        "1 submodule is not part of the tree: lib/sub",
    ]
