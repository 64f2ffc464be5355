"""Base trees from bundles and from clones of odd kinds."""

import os
import subprocess
from pathlib import Path

import pytest

from gagar_env.bases import check_history, prepare_base
from gagar_env.cache import cache_root
from gagar_env.errors import TaskError
from gagar_env.tasks.task import RepoSource

pytestmark = pytest.mark.usefixtures("own_cache")


def test_leak_1_a_bundle_gives_commits_and_tags(task_of, contents, history, tmp_path: Path, git_in, base_files) -> None:
    folder, commit, _ = history
    git_in(folder, "bundle", "create", "-q", str(tmp_path / "all.bundle"), "--all", "HEAD")
    bundle = RepoSource(kind="git", path=tmp_path / "all.bundle", commit="v1")
    base = prepare_base(task_of(bundle))
    assert contents(base.tree) == base_files
    check_history(base.tree)
    for name in (commit, commit[:10], "main~1", "future^"):
        assert prepare_base(task_of(bundle.model_copy(update={"commit": name}))).key == base.key
    with pytest.raises(TaskError, match=r"commit f{40} is not in the bundle all\.bundle: name another"):
        prepare_base(task_of(bundle.model_copy(update={"commit": "f" * 40})))


def test_bundles_that_are_none(task_of, history, tmp_path: Path, git_in) -> None:
    folder, commit, _ = history
    git_in(folder, "bundle", "create", "-q", str(tmp_path / "late.bundle"), "main~1..main")
    (tmp_path / "text.bundle").write_text("no bundle\n")
    data = (tmp_path / "late.bundle").read_bytes()
    git_in(folder, "bundle", "create", "-q", str(tmp_path / "cut.bundle"), "--all")
    os.truncate(tmp_path / "cut.bundle", len(data) // 2 + 100)
    for name, said in (("late", "leans on commit"), ("text", "does not look like"), ("cut", "is no whole git bundle")):
        with pytest.raises(TaskError, match=said) as caught:
            prepare_base(task_of(RepoSource(kind="git", path=tmp_path / f"{name}.bundle", commit=commit)))
        assert "\n" not in str(caught.value)
    assert not list((cache_root() / "mirrors").glob("*/git"))


@pytest.mark.parametrize("kind", ["shallow", "shared", "worktree", "tag"])
def test_clones_of_odd_kinds(task_of, contents, history, tmp_path: Path, kind: str, git_in, base_files) -> None:
    folder, commit, _ = history
    clone = tmp_path / "clone"
    name = commit
    if kind == "shallow":
        git_in(tmp_path, "clone", "-q", "--depth=2", folder.as_uri(), str(clone))
    elif kind == "shared":  # its objects are elsewhere, by objects/info/alternates
        git_in(tmp_path, "clone", "-q", "--shared", "--no-checkout", str(folder), str(clone))
    elif kind == "worktree":
        git_in(folder, "worktree", "add", "-q", "--detach", str(clone), commit)
    else:
        clone, name = folder, "v1"
    base = prepare_base(task_of(RepoSource(kind="git", path=clone, commit=name)))
    assert contents(base.tree) == base_files
    check_history(base.tree)
    assert not (base.tree / ".git" / "objects" / "info" / "alternates").exists()


def test_a_shallow_clone_without_the_commit(task_of, history, tmp_path: Path, git_in) -> None:
    git_in(tmp_path, "clone", "-q", "--depth=1", history[0].as_uri(), str(tmp_path / "clone"))
    with pytest.raises(TaskError, match=r"is not in .*clone: fetch it, or name another clone"):
        prepare_base(task_of(RepoSource(kind="git", path=tmp_path / "clone", commit=history[1])))


def test_hostile_configuration_and_hooks_run_nothing(
    task_of, contents, history, tmp_path: Path, git_in, base_files
) -> None:
    folder, commit, _ = history
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/marker\n")
    evil.chmod(0o755)
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "gpg.program"):
        git_in(folder, "config", name, str(evil))
    for name in ("core.alternateRefsCommand", "uploadpack.packObjectsHook", "diff.external", "filter.x.smudge"):
        git_in(folder, "config", name, str(evil))
    for name in ("alias.rev-parse", "alias.ls-tree", "alias.cat-file"):
        git_in(folder, "config", name, f"!{evil}")
    git_in(folder, "config", "core.hooksPath", str(tmp_path))
    git_in(folder, "config", "core.worktree", "/etc")
    (folder / ".git" / "info" / "attributes").write_text("* filter=x\n")
    for name in ("post-checkout", "reference-transaction", "pre-commit", "post-commit", "post-index-change"):
        (tmp_path / name).symlink_to(evil)
        (folder / ".git" / "hooks" / name).symlink_to(evil)
    marker = tmp_path / "marker"
    marker.unlink(missing_ok=True)
    by_path = prepare_base(task_of(RepoSource(kind="git", path=folder, commit=commit)))
    assert contents(by_path.tree) == base_files
    again = task_of(RepoSource(kind="git", url=folder.as_uri(), commit=commit), generated_files={"x": ""})
    assert contents(prepare_base(again).tree) == base_files | {"x": ("file", b"")}
    assert not marker.exists()
    assert not (by_path.tree / ".git" / "hooks").exists()


def test_hack_11_trees_that_no_git_would_write(task_of, history, tmp_path: Path, git_in) -> None:
    """A link and a folder of one name: what is below the folder must not be written through the link."""
    folder, _, _ = history
    blob = git_in(folder, "rev-parse", "HEAD:a.py")
    outside = tmp_path / "outside"
    outside.mkdir()
    target = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"],
        cwd=folder,
        input=str(outside).encode(),
        capture_output=True,
        check=True,
    ).stdout.decode()
    inner = subprocess.run(
        ["git", "mktree"], cwd=folder, input=f"100644 blob {blob}\tevil\n".encode(), capture_output=True, check=True
    ).stdout.decode()
    raw = b"120000 a\0" + bytes.fromhex(target.strip()) + b"40000 a\0" + bytes.fromhex(inner.strip())
    tree = subprocess.run(
        ["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"],
        cwd=folder,
        input=raw,
        capture_output=True,
        check=True,
    ).stdout.decode()
    commit = git_in(folder, "commit-tree", tree.strip(), "-m", "evil")
    with pytest.raises(TaskError, match="the-task"):
        prepare_base(task_of(RepoSource(kind="git", path=folder, commit=commit)))
    assert not list(outside.iterdir())


def test_a_commit_with_a_link_below_a_link_writes_nothing_outside(task_of, tmp_path: Path, git_in) -> None:
    """A tree with two entries of one name, as no honest git writes it."""
    outside, folder = tmp_path / "outside", tmp_path / "repo"
    outside.mkdir()
    folder.mkdir()
    (outside / "mine").write_text("mine\n")
    git_in(folder, "init", "-q")

    def stored(kind: str, data: bytes) -> str:
        (tmp_path / "object").write_bytes(data)
        return git_in(folder, "hash-object", "-t", kind, "-w", "--literally", str(tmp_path / "object"))

    link, inner = stored("blob", os.fsencode(outside)), stored("blob", b"/dev/null")
    below = stored("tree", b"120000 mine\0" + bytes.fromhex(inner))
    top = stored("tree", b"120000 a\0" + bytes.fromhex(link) + b"40000 a\0" + bytes.fromhex(below))
    commit = git_in(folder, "commit-tree", top, "-m", "odd")
    with pytest.raises(TaskError, match=r"'a/mine' cannot be written: what is above it is a link"):
        prepare_base(task_of(RepoSource(kind="git", path=folder, commit=commit)))
    assert (outside / "mine").read_text() == "mine\n"
    assert not (outside / "mine").is_symlink()
