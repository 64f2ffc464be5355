"""The reverse of a patch, against git itself."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gagar_env.errors import TaskError
from gagar_env.tasks.reverse import reversed_patch

line = st.sampled_from(["a", "b", "-- x", "++ y", "@@ -1 +1 @@", "", "diff --git a/x b/x", "c\r", "\u2028"])
contents = st.none() | st.builds(
    lambda lines, end: "\n".join(lines) + end, st.lists(line, max_size=12), st.sampled_from(["", "\n"])
)
trees = st.fixed_dictionaries({"a b.py": contents, "ä.py": contents, "sub/c.py": contents})


def git(tree: Path, *arguments: str, data: bytes = b"") -> bytes:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(tree.parent), "LC_ALL": "C"}
    identity = ("-c", "user.name=n", "-c", "user.email=e", "-c", "core.autocrlf=false")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=tree, input=data, env=environment, check=True, capture_output=True
    )
    return done.stdout


def write(tree: Path, files: dict[str, str | None]) -> None:
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(exist_ok=True)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(text.encode())


def snapshot(tree: Path) -> dict[str, bytes]:
    return {str(p.relative_to(tree)): p.read_bytes() for p in tree.rglob("*") if p.is_file() and ".git" not in p.parts}


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(before=trees, after=trees)
def test_it_undoes_what_git_did(tmp_path_factory: pytest.TempPathFactory, before, after) -> None:
    tree = tmp_path_factory.mktemp("tree")
    git(tree, "init", "-q")
    write(tree, before)
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "x", "--allow-empty")
    first = snapshot(tree)
    write(tree, after)
    git(tree, "add", "-A")
    patch = git(tree, "diff", "--cached").decode()
    if not patch:
        return
    second = snapshot(tree)
    back = reversed_patch(patch, "p")
    git(tree, "apply", "--whitespace=nowarn", "-", data=back.encode())
    assert snapshot(tree) == first
    git(tree, "apply", "--whitespace=nowarn", "-", data=reversed_patch(back, "p").encode())
    assert snapshot(tree) == second


def test_names_and_modes_change_back(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    git(tree, "init", "-q")
    (tree / "old.sh").write_text("one\ntwo\nthree\nfour\n")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", "x")
    (tree / "old.sh").rename(tree / "new.sh")
    (tree / "new.sh").write_text("one\ntwo\nthree\n4\n")
    (tree / "new.sh").chmod(0o755)
    git(tree, "add", "-A")
    patch = git(tree, "diff", "--cached", "-M").decode()
    assert "rename from" in patch
    assert "new mode" in patch
    git(tree, "apply", "-", data=reversed_patch(patch, "p").encode())
    assert (tree / "old.sh").read_text() == "one\ntwo\nthree\nfour\n"
    assert not os.access(tree / "old.sh", os.X_OK)
    assert not (tree / "new.sh").exists()


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ("", "is no `git diff`"),
        ("hello", "is no `git diff`"),
        ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n", "ends before its @@ -1,2 \\+1,2 @@"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 3\n", "binary"),
        ("diff --git a/x b/x\nBinary files a/x and b/x differ\n", "binary"),
    ],
)
def test_what_cannot_be_reversed(patch: str, said: str) -> None:
    with pytest.raises(TaskError, match=said):
        reversed_patch(patch, "p")
