"""Commits of a real repository as tasks, and a hostile one that must not reach this machine."""

import os
import subprocess
from pathlib import Path

import pytest

from gagar_env.errors import TaskError
from gagar_env.making import derive
from gagar_env.making.candidate import RefusedError
from gagar_env.making.commits import Commits
from gagar_env.making.history import Walk, propose, same_meaning
from gagar_env.patch import patch_paths

CODE = "def add(a, b):\n    return a - b\n\n\ndef old(a):\n    return a\n"
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 0) == 2\n"


class Repo:
    """A real repository, made with the real git."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.at = 1_700_000_000

    def git(self, *arguments: str) -> str:
        who = {f"GIT_{r}_{w}": v for r in ("AUTHOR", "COMMITTER") for w, v in (("NAME", "a"), ("EMAIL", "a@a"))}
        when = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{getattr(self, 'at', 0)} +0000")
        env = {"PATH": os.environ["PATH"], "HOME": str(self.path), "GIT_CONFIG_NOSYSTEM": "1", **who, **when}
        command = ["git", "-c", "commit.gpgSign=false", *arguments]
        return subprocess.run(
            command, cwd=self.path, env=env, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(self, message: str, files: dict[str, str | bytes | None]) -> str:
        """None deletes a file."""
        for name, content in files.items():
            path = self.path / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.at += 86_400
        self.git("add", "-A")
        self.git("commit", "-q", "--no-verify", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path):
    repo = Repo(tmp_path / "calc-repo")
    repo.commit("Begin", {"calc.py": CODE, "tests/test_calc.py": TEST, "README.md": "calc\n"})
    return repo


def test_a_repository_without_a_commit_is_said_to_be_that(tmp_path):
    with (
        Commits(Repo(tmp_path / "empty").path) as commits,
        pytest.raises(TaskError, match="the repository has no commit"),
    ):
        list(commits.walk(most=1))


def walked(repo, environment, **settings):
    walk = Walk(repo.path, environment=environment)
    return {candidate.extra["commit"]: candidate for candidate in walk.candidates(**settings)}, dict(walk.skipped)


FIXED = {
    "calc.py": CODE.replace("a - b", "a + b"),
    "tests/test_calc.py": TEST.replace("add(2, 0) == 2", "add(2, 1) == 3"),
}


def test_only_commits_of_code_and_tests_are_taken(repo, lean_environment):
    fix = repo.commit("Add adds (#7)\n\nIt took away.\n\nSigned-off-by: a", {**FIXED, "CHANGES.md": "fixed\n"})
    repo.commit("Tests only", {"tests/test_more.py": "def test_x():\n    assert 1\n"})
    repo.commit("Code only", {"calc.py": FIXED["calc.py"] + "\n\nX = 1\n"})
    form = FIXED["calc.py"].replace("return a + b", "return (a + b)  # sum") + "\n\nX = 1\n"
    repo.commit("Form only", {"calc.py": form, "tests/test_calc.py": FIXED["tests/test_calc.py"] + "\n\nY = 1\n"})
    repo.commit("Binary", {"calc.py": form + "Z = 1\n", "data.bin": b"\0\1", "tests/test_b.py": "Y = 2\n"})
    gone = repo.commit(
        "Old is gone", {"calc.py": CODE.partition("\n\n\ndef old")[0] + "\n", "tests/test_b.py": "Y = 4\n"}
    )
    repo.commit("Tests are gone", {"calc.py": FIXED["calc.py"], "tests/test_b.py": None})
    moved = repo.commit(
        "Moved", {"calc.py": None, "lib/calc.py": FIXED["calc.py"] + "B = 1\n", "tests/test_b.py": "Y = 5\n"}
    )
    repo.commit("Large", {"lib/calc.py": form + "A = 1\n" * 700, "tests/test_b.py": "Y = 6\n"})
    found, skipped = walked(repo, lean_environment)
    assert list(found) == [moved, gone, fix], skipped
    assert skipped["no_code"] == 1
    assert skipped["no_tests"] == 1
    assert skipped["only_form"] == 1
    assert skipped["binary"] == 1
    assert skipped["no_test_file"] == 1
    assert skipped["too_large"] == 1
    candidate = found[fix]
    assert patch_paths(candidate.solution_patch) == ("calc.py",)  # prose is no part of it
    assert patch_paths(candidate.test_patch) == ("tests/test_calc.py",)
    assert candidate.test_files == ("tests/test_calc.py",)
    assert candidate.repo.commit == repo.git("rev-parse", f"{fix}~1")
    assert patch_paths(found[moved].solution_patch) == ("calc.py", "lib/calc.py")


def test_merges_are_skipped_or_taken_as_one_change(repo, lean_environment):
    repo.git("checkout", "-q", "-b", "topic")
    first = repo.commit("Half", {"calc.py": FIXED["calc.py"], "tests/test_a.py": "Y = 1\n"})
    second = repo.commit("Rest", {**FIXED, "calc.py": FIXED["calc.py"] + "\n\nX = 1\n"})
    repo.git("checkout", "-q", "main")
    repo.commit("Meanwhile", {"README.md": "more\n"})
    repo.git("merge", "-q", "--no-ff", "-m", "Merge pull request #3 from a/topic\n\nAdd adds", "topic")
    merge = repo.git("rev-parse", "HEAD")
    one_by_one, _ = walked(repo, lean_environment)
    assert list(one_by_one) == [second, first]
    as_one, _ = walked(repo, lean_environment, merged=True)
    assert list(as_one) == [merge]
    assert patch_paths(as_one[merge].test_patch) == ("tests/test_a.py", "tests/test_calc.py")


def test_since_and_where_to_begin(repo, lean_environment):
    first = repo.commit("One", {**FIXED})
    second = repo.commit("Two", {"calc.py": CODE, "tests/test_calc.py": TEST})
    assert list(walked(repo, lean_environment, since="2023-11-17 12:00")[0]) == [second]
    assert list(walked(repo, lean_environment, commit=first)[0]) == [first]
    with pytest.raises(TaskError, match="not the name of a commit"):
        walked(repo, lean_environment, commit="--upload-pack=touch")


@pytest.mark.slow
def test_a_commit_becomes_a_checked_task(repo, lean_environment, best_kind):
    repo.commit("Add adds (#7)\n\nIt took away. Fixed in calc.py.\n\nFixes #7", FIXED)
    bundle = repo.path.parent / "calc.bundle"
    repo.git("bundle", "create", str(bundle), "HEAD", "main")
    for source in (repo.path, repo.path / ".git", bundle):
        said = []
        [candidate] = propose(source, environment=lean_environment, on_progress=said.append)
        assert "1 of 1 commits" in said[-1]
    made = derive(candidate, sandbox=best_kind, runs=1)
    assert made.task is not None, made
    assert made.task.tests.fail_to_pass == ("tests/test_calc.py::test_add",)
    statement = made.task.problem_statement
    assert statement.startswith("Add adds\n\nIt took away.")
    assert "#7" not in statement
    assert "calc.py" not in statement


def test_a_repository_without_such_commits_is_refused(repo):
    repo.commit("Code only", {"calc.py": "X = 1\n"})
    with pytest.raises(RefusedError, match="1 no_tests") as refused:
        list(propose(repo.path))
    assert refused.value.reason == "no_commits"
    with pytest.raises(TaskError, match="is no git repository"):
        list(propose(repo.path.parent))


def test_a_hostile_repository_reaches_nothing(repo, lean_environment, tmp_path):
    fix = repo.commit(
        "Add adds", {**FIXED, ".gitattributes": "*.py diff=evil filter=evil\n", "setup.py": "import os\n"}
    )
    canary = tmp_path / "canary"
    strike = tmp_path / "strike"
    strike.write_text(f"#!/bin/sh\necho $0 >> {canary}\ncat\n")
    strike.chmod(0o755)
    for hook in ("post-checkout", "pre-auto-gc", "reference-transaction", "fsmonitor-watchman", "post-index-change"):
        (repo.path / ".git/hooks").mkdir(exist_ok=True)
        (repo.path / ".git/hooks" / hook).write_bytes(strike.read_bytes())
        (repo.path / ".git/hooks" / hook).chmod(0o755)
    for name in ("diff.external", "diff.evil.textconv", "diff.evil.command", "filter.evil.smudge", "filter.evil.clean",
                 "core.fsmonitor", "core.pager", "core.sshCommand", "gpg.program", "credential.helper",
                 "uploadpack.packObjectsHook", "core.alternateRefsCommand"):  # fmt: skip
        repo.git("config", name, str(strike))
    repo.git("config", "log.showSignature", "true")
    repo.git("config", "core.hooksPath", str(repo.path / ".git/hooks"))
    canary.unlink(missing_ok=True)
    found, _ = walked(repo, lean_environment)
    assert patch_paths(found[fix].solution_patch) == ("calc.py", "setup.py")
    from gagar_env.making.codebase import tree_of

    tree_of(found[fix].repo, "calc")
    assert not canary.exists()


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("x = 1\n", "x  =  1  # one\n", True),
        ("def f():\n    'a'\n    return 1\n", "def f():\n    'b'\n    return 1\n", True),
        ("x = 1\n", "x = 2\n", False),
        ("x = 'a'\n", "x = 'b'\n", False),
        ("x = \n", "x =  \n", False),
    ],
)
def test_what_is_only_form(old, new, same):
    assert same_meaning(old.encode(), new.encode()) is same
