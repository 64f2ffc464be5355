import os
import socket
import subprocess
from pathlib import Path

import pytest

from gagar_env.bases import check_history, prepare_base
from gagar_env.cache import cache_root
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.sandbox.base import sandbox_owner
from gagar_env.tasks.task import RepoSource

pytestmark = pytest.mark.usefixtures("own_cache")


def run_git(folder: Path, *arguments: str, ok: bool = True) -> str:
    done = subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=folder, capture_output=True, text=True)
    assert not ok or done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "a.py").write_bytes(b"x = 1\r\n")
    (folder / "pkg" / "\u00e4 b.txt").write_bytes(b"\xff\0")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o700)
    (folder / "link").symlink_to("pkg/a.py")
    (folder / ".gitignore").write_text("*.txt\n")
    (folder / ".gitattributes").write_text("* text=auto\npkg export-ignore\n")
    return folder


@pytest.fixture
def clone(source: Path) -> tuple[Path, str, str]:
    """A repository whose later commit, tag, stash, note and reflog hold the fix: its folder, the base and the fix."""
    run_git(source, "init", "-q", "-b", "trunk")
    run_git(source, "config", "user.name", "someone")
    run_git(source, "config", "user.email", "someone@example.org")
    run_git(source, "add", "-Af")
    run_git(source, "commit", "-qm", "early")
    run_git(source, "commit", "-qm", "base", "--allow-empty")
    base = run_git(source, "rev-parse", "HEAD").strip()
    (source / "pkg" / "a.py").write_bytes(b"x = 'the fix'\r\n")
    run_git(source, "commit", "-qam", "fix")
    fix = run_git(source, "rev-parse", "HEAD").strip()
    run_git(source, "tag", "v2", "-m", "release")
    run_git(source, "branch", "future")
    (source / "pkg" / "a.py").write_bytes(b"x = 'stashed'\r\n")
    run_git(source, "stash", "-q")
    run_git(source, "reset", "-q", "--hard", base)
    run_git(source, "pack-refs", "--all")
    (source / ".git" / "FETCH_HEAD").write_text(fix)
    return source, base, fix


def test_a_folder_becomes_one_commit(task_of, contents, source: Path) -> None:
    (source / "pkg" / "__pycache__").mkdir()
    (source / "pkg" / "__pycache__" / "a.pyc").write_bytes(b"x")
    base = prepare_base(task_of(RepoSource(kind="tree", path=source)))
    expected = contents(source)
    del expected["pkg/__pycache__/a.pyc"]
    assert contents(base.tree) == expected
    assert run_git(base.tree, "log", "--format=%s %an", "--all") == "base gagar-env\n"
    assert run_git(base.tree, "status", "--porcelain", "--ignored") == ""
    assert len(run_git(base.tree, "ls-files", "-z").split("\0")[:-1]) == len(expected)
    assert run_git(base.tree, "rev-parse", "--abbrev-ref", "HEAD") == "main\n"


def test_same_content_is_built_once_and_other_content_anew(task_of, source: Path) -> None:
    task = task_of(RepoSource(kind="tree", path=source))
    said: list[str] = []
    first = prepare_base(task, on_progress=said.append)
    assert prepare_base(task, on_progress=said.append) == first
    assert said == ["preparing the base tree of the-task ..."]
    (source / "run.sh").chmod(0o644)
    assert prepare_base(task).key != first.key


def test_commit_id_depends_on_content_alone(task_of, source: Path, monkeypatch, tmp_path) -> None:
    task = task_of(RepoSource(kind="tree", path=source))
    one = run_git(prepare_base(task).tree, "rev-parse", "HEAD")
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "elsewhere"))
    assert run_git(prepare_base(task).tree, "rev-parse", "HEAD") == one


def test_leak_1_nothing_of_the_future_is_there(task_of, clone: tuple[Path, str, str]) -> None:
    folder, commit, fix = clone
    base = prepare_base(task_of(RepoSource(kind="git", path=folder, commit=commit)))
    tree = base.tree
    assert (tree / "pkg" / "a.py").read_bytes() == b"x = 1\n"  # as committed
    for question in (
        ("log", "--all", "--oneline"),
        ("reflog", "--all"),
        ("tag",),
        ("branch", "-a"),
        ("stash", "list"),
        ("fsck", "--lost-found", "--no-reflogs", "--unreachable"),
        ("remote",),
    ):
        answer = run_git(tree, *question)
        assert "fix" not in answer
        assert len(answer.splitlines()) <= 1
    fixed_blob = run_git(folder, "rev-parse", f"{fix}:pkg/a.py").strip()
    for object_id in (fix, fixed_blob, commit):
        assert run_git(tree, "cat-file", "-t", object_id, ok=False) == ""
    for name in ("packed-refs", "FETCH_HEAD", "logs", "ORIG_HEAD", "hooks"):
        assert not (tree / ".git" / name).exists()
    for path in (p for p in (tree / ".git").rglob("*") if p.is_file()):
        assert b"the fix" not in path.read_bytes()


@pytest.mark.parametrize("fault", ["commit", "tag", "reflog", "remote", "object", "alternates", "stash", "branch"])
def test_leak_1_the_check_sees_each_way_back(task_of, source: Path, tmp_path: Path, fault: str) -> None:
    base = prepare_base(task_of(RepoSource(kind="tree", path=source)))
    tree = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(base.tree), str(tree)], check=True)
    check_history(tree)
    other = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "core.logAllRefUpdates=false")
    if fault == "commit":
        run_git(tree, *other, "commit", "-qm", "more", "--allow-empty")
    elif fault == "tag":
        run_git(tree, "tag", "v1")
    elif fault == "branch":
        run_git(tree, "branch", "next")
    elif fault == "reflog":
        run_git(tree, "-c", "core.logAllRefUpdates=always", *other[:4], "commit", "-q", "--amend", "-m", "base")
    elif fault == "remote":
        run_git(tree, "remote", "add", "origin", "https://example.org/x.git")
    elif fault == "object":
        (tmp_path / "secret").write_text("the fix")
        run_git(tree, "hash-object", "-w", str(tmp_path / "secret"))
    elif fault == "alternates":
        (tree / ".git" / "objects" / "info").mkdir(exist_ok=True)
        (tree / ".git" / "objects" / "info" / "alternates").write_text("/elsewhere\n")
    else:
        (tree / "run.sh").write_text("changed")
        run_git(tree, *other, "stash", "-q")
    with pytest.raises(TaskError, match="base tree"):
        check_history(tree)


def test_git_source_is_exported_byte_for_byte(task_of, contents, clone: tuple[Path, str, str], source: Path) -> None:
    folder, commit, _ = clone
    run_git(folder, "config", "filter.loud.smudge", "touch /tmp/never-run; tr a-z A-Z")
    (folder / ".git" / "info").mkdir(exist_ok=True)
    (folder / ".git" / "info" / "attributes").write_text("* filter=loud eol=crlf ident\n")
    base = prepare_base(task_of(RepoSource(kind="git", path=folder, commit=commit)))
    found = contents(base.tree)
    assert set(found) == {*("pkg/a.py", "pkg/\u00e4 b.txt", "run.sh", "link", ".gitignore", ".gitattributes")}
    assert found["run.sh"] == ("program", b"#!/bin/sh\n")
    assert found["link"] == ("link", b"pkg/a.py")
    assert found["pkg/\u00e4 b.txt"] == ("file", b"\xff\0")
    assert run_git(base.tree, "status", "--porcelain", "--ignored") == ""


def test_git_1_line_endings_survive_a_checkout(task_of, source: Path, tmp_path: Path) -> None:
    base = prepare_base(task_of(RepoSource(kind="tree", path=source)))
    tree = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(base.tree), str(tree)], check=True)
    (tree / "pkg" / "a.py").unlink()
    run_git(tree, "checkout", "--", "pkg/a.py")
    assert (tree / "pkg" / "a.py").read_bytes() == b"x = 1\r\n"


def test_bare_clone_short_id_and_key_without_the_place(task_of, clone, tmp_path: Path) -> None:
    folder, commit, _ = clone
    bare = tmp_path / "bare.git"
    run_git(tmp_path, "clone", "-q", "--bare", str(folder), str(bare))
    one = prepare_base(task_of(RepoSource(kind="git", path=folder, commit=commit)))
    assert prepare_base(task_of(RepoSource(kind="git", path=bare, commit=commit[:10]))) == one


def test_submodules_and_lfs_pointers_are_named(task_of, clone, caplog) -> None:
    folder, _, fix = clone
    run_git(folder, "update-index", "--add", "--cacheinfo", f"160000,{fix},sub")
    (folder / "big.bin").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    run_git(folder, "add", "big.bin")
    run_git(folder, "commit", "-qm", "with both")
    base = prepare_base(task_of(RepoSource(kind="git", path=folder, commit="HEAD")))
    assert "sub is a submodule" in caplog.text
    assert "1 files are Git LFS pointers, not their content, such as big.bin" in caplog.text
    assert list((base.tree / "sub").iterdir()) == []


def test_repository_that_is_none(task_of, tmp_path: Path, clone) -> None:
    folder, _, _ = clone
    (tmp_path / "plain").mkdir()
    for repo, said in (
        (RepoSource(kind="git", path=tmp_path / "plain", commit="abc"), "is no git repository"),
        (RepoSource(kind="git", path=tmp_path / "absent", commit="abc"), "does not exist"),
        (RepoSource(kind="git", path=folder, commit="f" * 40), "is not in"),
        (RepoSource(kind="git", path=folder, commit="--all"), "is not the id of a commit"),
        (RepoSource(kind="git", path=folder), "is not the id of a commit"),
        (RepoSource(kind="tree", path=tmp_path / "absent"), "is no folder"),
        (RepoSource(kind="archive", path=tmp_path / "absent"), "there is no archive"),
        (RepoSource(kind="git", path=folder, missing="no clone was given"), "no clone was given"),
    ):
        with pytest.raises(TaskError, match=said) as caught:
            prepare_base(task_of(repo))
        assert "\n" not in str(caught.value)


def test_git_4_repository_of_another_user_and_no_identity(task_of, clone, monkeypatch, tmp_path) -> None:
    folder, commit, _ = clone
    monkeypatch.setenv("HOME", str(tmp_path / "no-home"))
    run_git(folder, "config", "--unset", "user.name")
    if os.geteuid() == 0:
        for path in (folder, folder / ".git", folder / ".git" / "config"):
            os.chown(path, 12345, 12345)
    base = prepare_base(task_of(RepoSource(kind="git", path=folder, commit=commit)))
    check_history(base.tree)
    for path in (base.tree, base.tree / "run.sh", base.tree / ".git" / "HEAD", base.tree / "link"):
        assert (path.lstat().st_uid, path.lstat().st_gid) == sandbox_owner()
    assert (base.tree / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (base.tree / "pkg" / "a.py").stat().st_mode & 0o777 == 0o644


def test_git_4_the_user_of_sandboxes_can_commit(task_of, source: Path, tmp_path: Path) -> None:
    base = prepare_base(task_of(RepoSource(kind="tree", path=source)))
    tree = tmp_path / "copy"
    subprocess.run(["cp", "-a", str(base.tree), str(tree)], check=True)
    (tree / "new.py").write_text("y = 2\n")
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
    for command in (("add", "-A"), ("commit", "-qm", "work")):
        subprocess.run(["git", "-c", "safe.directory=*", *command], cwd=tree, env=environment, check=True)
    assert not (tree / ".git" / "logs").exists()


def test_missing_git_is_one_clear_error(task_of, source: Path, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentBuildError, match=r"^git is not on PATH: install git$") as caught:
        prepare_base(task_of(RepoSource(kind="tree", path=source)))
    assert "\n" not in str(caught.value)
    assert not list((cache_root() / "bases").glob("*/tree"))


def test_generated_files_are_there_and_ignored(task_of, source: Path) -> None:
    generated = {"pkg/_version.py": "v = 1\n", "we ird/#[x]*.py": "\n", "run.sh": "generated\n"}
    base = prepare_base(task_of(RepoSource(kind="tree", path=source), generated_files=generated))
    for path, text in generated.items():
        assert (base.tree / path).read_text() == text
    assert run_git(base.tree, "status", "--porcelain") == ""
    assert "pkg/_version.py" not in run_git(base.tree, "ls-files")
    assert run_git(base.tree, "show", "HEAD:run.sh") == "generated\n"
    plain = prepare_base(task_of(RepoSource(kind="tree", path=source)))
    assert plain.key != base.key


@pytest.mark.parametrize("path", ["../x", "/x", ".git/config", "a//b", "pkg/.GIT/hooks/x"])
def test_hack_11_generated_files_stay_inside(task_of, source: Path, path: str) -> None:
    with pytest.raises(TaskError, match="generated_files of the-task"):
        prepare_base(task_of(RepoSource(kind="tree", path=source), generated_files={path: "x"}))


def test_hack_11_generated_file_behind_a_link(task_of, source: Path, tmp_path: Path) -> None:
    (source / "way").symlink_to("pkg")
    with pytest.raises(TaskError, match="a folder above it is a link"):
        prepare_base(task_of(RepoSource(kind="tree", path=source), generated_files={"way/x.py": "x"}))


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "pkg/../../outside", "up/../../x"])
def test_hack_11_links_out_of_the_tree_are_refused(task_of, source: Path, target: str) -> None:
    (source / "pkg" / "up").symlink_to("..")
    (source / "pkg" / "bad").symlink_to(target)
    if target.startswith(("../", "pkg")):
        (source / "bad").symlink_to(target)
    with pytest.raises(TaskError, match="leads out of the repository") as caught:
        prepare_base(task_of(RepoSource(kind="tree", path=source)))
    assert "bad" in str(caught.value)


def test_links_inside_stay_links(task_of, source: Path) -> None:
    (source / "dangling").symlink_to("nowhere")
    (source / "pkg" / "up").symlink_to("..")
    (source / "loop").symlink_to("loop")
    tree = prepare_base(task_of(RepoSource(kind="tree", path=source))).tree
    assert [os.readlink(tree / n) for n in ("dangling", "pkg/up", "loop")] == ["nowhere", "..", "loop"]


def test_special_files_are_refused(task_of, source: Path) -> None:
    os.mkfifo(source / "pipe")
    with pytest.raises(TaskError, match="pipe is neither a file"):
        prepare_base(task_of(RepoSource(kind="tree", path=source)))


def test_sockets_are_refused(task_of, source: Path, monkeypatch) -> None:
    monkeypatch.chdir(source)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        with pytest.raises(TaskError, match="neither a file"):
            prepare_base(task_of(RepoSource(kind="tree", path=source)))
