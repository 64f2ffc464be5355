"""What an agent could find: history, network, secrets. Real episodes."""

import os
import shutil
import socket
import subprocess
import threading
import time

import pytest

from gagar_env import run_group
from gagar_env.changes import FileState
from gagar_env.episode import EpisodeStatus
from gagar_env.patch import make_patch
from gagar_env.tasks.task import RepoSource

GOLD = "return a + b  # needle-of-the-gold-patch"
HIDDEN = "NEEDLE = 'needle-of-the-hidden-tests'"
FIX = "sed -i '2s/a - b/a + b/' calc.py"


@pytest.fixture(scope="module")
def secret_task(tiny_task, tmp_path_factory):
    """The tiny task with a reference solution and hidden tests that can be recognised; they take a second."""
    folder = tmp_path_factory.mktemp("secrets")
    text = (tiny_task.tests.folder / "test_calc.py").read_text()
    slow = f"{HIDDEN}\nimport time\n{text}\n\ndef test_slow():\n    time.sleep(1)\n"
    (folder / "test_calc.py").write_text(slow)
    buggy = (tiny_task.repo.path / "calc.py").read_text()
    fixed = {"calc.py": FileState(buggy.replace("return a - b", GOLD).encode())}
    return tiny_task.model_copy(
        update={
            "id": "tiny-secret",
            "tests": tiny_task.tests.model_copy(update={"folder": folder}),
            "solution_patch": make_patch(tiny_task.repo.path, fixed),
        }
    )


def host_git(folder, *arguments):
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgSign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def past(tiny_task, tmp_path_factory):
    """A task from a repository whose later commits, tags, stashes, notes and packs hold the fix."""
    repo = tmp_path_factory.mktemp("past") / "repo"
    shutil.copytree(tiny_task.repo.path, repo)
    host_git(repo, "init", "--quiet", "--initial-branch=main")
    host_git(repo, "add", "--all")
    host_git(repo, "commit", "--quiet", "--message", "base")
    base = host_git(repo, "rev-parse", "HEAD")
    buggy = (repo / "calc.py").read_text()
    found = []
    for number, branch in enumerate(("main", "fix/later", "lost")):
        host_git(repo, "checkout", "--quiet", "-B", branch, base)
        (repo / "calc.py").write_text(buggy.replace("return a - b", f"{GOLD} {number}"))
        host_git(repo, "commit", "--quiet", "--all", "--message", f"Fix add {number}")
        found += [host_git(repo, "rev-parse", "HEAD"), host_git(repo, "rev-parse", "HEAD:calc.py")]
    host_git(repo, "tag", "--annotate", "v2.0", "--message", "fixed", "main")
    host_git(repo, "update-ref", "refs/remotes/origin/main", "main")
    host_git(repo, "notes", "add", "--message", "fixed by a + b", base)
    (repo / "calc.py").write_text(buggy.replace("return a - b", GOLD + " stashed"))
    host_git(repo, "stash")
    host_git(repo, "checkout", "--quiet", base)
    host_git(repo, "branch", "--quiet", "-D", "lost")
    host_git(repo, "pack-refs", "--all")
    (repo / ".git/FETCH_HEAD").write_text(f"{found[0]}\t\tbranch 'main' of https://example.com/calc\n")
    source = RepoSource(kind="git", path=repo, commit=base)
    return tiny_task.model_copy(update={"id": "tiny-past", "repo": source}), base, found


@pytest.mark.slow
def test_leak_1_the_future_is_not_in_the_repository(past, best_kind, play):
    task, base, later = past
    probes = (
        "git log --all --oneline; git log --walk-reflogs --oneline; git reflog show --all; git stash list; git notes",
        "git tag; git branch --all; git for-each-ref; git fsck --lost-found --unreachable; git rev-list --all",
        "cd .git; cat packed-refs FETCH_HEAD ORIG_HEAD logs/HEAD objects/info/alternates refs/stash",
        "\n".join(
            f"git cat-file -p {sha}; git show {sha[:12]}; git checkout {sha} -- calc.py" for sha in [base, *later]
        ),
        "git cat-file --batch-all-objects --batch | grep -a -c needle; grep -rsl needle .git . ; git count-objects -v",
        "git checkout v2.0; git checkout origin/main; git merge fix/later; git stash pop; git reset --hard HEAD@{1}",
    )
    played = play(task, best_kind, *probes)
    played.earned(0.0)
    for word in ("needle", "Fix add", "v2.0\n", "refs/tags", "refs/remotes", "dangling", "unreachable"):
        assert word not in played.text, word
    assert played.seen[1].count("\n") <= 2, played.seen[1]  # one commit
    assert "refs/heads/main" in played.seen[2]  # the probes do run
    assert not {base, *later} & set(played.seen[2].split())
    play(task, best_kind, *probes, FIX).earned(1.0)


def test_leak_2_no_way_to_a_server_on_the_host(tiny_task, isolated, monkeypatch, play):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("API_TOKEN", "needle-of-the-host")
    name = f"\0gagar-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract,
    ):
        abstract.bind(name)
        abstract.listen()
        for listening in (server, abstract):
            listening.setblocking(False)
        port = server.getsockname()[1]
        code = (
            "import socket\n"
            "def ask(family, place):\n"
            "    s = socket.socket(family); s.settimeout(1)\n"
            "    try: s.connect(place); return 'connected'\n"
            "    except OSError as e: return 'none'\n"
            f"print(ask(socket.AF_INET, ('127.0.0.1', {port})), ask(socket.AF_UNIX, {name!r}))\n"
        )
        probes = (
            f"python - <<'X'\n{code}X",
            f"exec 5<>/dev/tcp/127.0.0.1/{port} && echo connected; timeout 2 getent hosts pypi.org && echo connected",
            f"timeout 5 git fetch http://127.0.0.1:{port}/calc && echo connected",
            "env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'",
        )
        played = play(tiny_task, isolated, *probes)
        played.earned(0.0)
        assert "none none" in played.text
        assert "connected" not in played.text
        assert "proxy.example" not in played.text
        assert "needle-of-the-host" not in played.text
        # nor has the work itself, while it is verified
        steal = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)\n"
        play(tiny_task, isolated, f"{FIX}; printf %s {_quoted(steal)} >> calc.py").earned(0.0)
        harmless = steal.replace("socket.create", "try:\n    socket.create") + "except OSError:\n    pass\n"
        play(tiny_task, isolated, f"{FIX}; printf %s {_quoted(harmless)} >> calc.py").earned(1.0)
        for listening in (server, abstract):
            with pytest.raises(BlockingIOError):
                listening.accept()


def _quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def _search(task):
    """A script that looks for the secrets where an agent can write or may find a host's files.

    The words are not in its own command line. Installed packages are left out, for the time that takes.
    """
    places = {str(task.tests.folder), str(task.repo.path), os.path.dirname(str(task.tests.folder)), os.getcwd()}
    return (
        "a=needle-of-the; b=-gold-patch; c=-hidden-tests\n"
        "grep -rIsl --exclude-dir=lib -e $a$b -e $a$c /testbed /tmp /scratch /home /root /etc /dev/shm /var /work\n"
        "grep -asl -e $a$b -e $a$c /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/mountinfo /proc/keys\n"
        "grep -asrl -D skip -e $a$b -e $a$c /proc/[0-9]*/root/tmp/ /proc/[0-9]*/root/scratch/ /proc/[0-9]*/root/run/\n"
        f"ls -d {' '.join(map(_quoted, sorted(places)))} 2>/dev/null\n"
    )


def test_leak_3_secrets_are_nowhere(secret_task, isolated, play):
    played = play(secret_task, isolated, _search(secret_task), "find / -xdev -name '*hidden*' -path '*secrets*'; env")
    played.earned(0.0)
    assert played.seen[1] == "[exit code 2]", played.seen[1]  # of `ls`: none of the places is there
    told = played.text + repr(played.infos)
    assert GOLD not in told
    assert "needle" not in told
    assert all(info["episode_record"] is None for info in played.infos)
    play(secret_task, isolated, _search(secret_task), FIX).earned(1.0)


class Siblings:
    """Member 0 submits; meanwhile the others look for what its verification uses."""

    name = "siblings"

    def __init__(self, task, prepare):
        self.task, self.prepare = task, prepare
        self.submitted = threading.Event()
        self.spans = []
        self.seen = []

    def start(self, *, task, actions, seed):
        return _Sibling(self, seed, actions)


class _Sibling:
    def __init__(self, group, seed, actions):
        self.group, self.number, self.actions, self.turn = group, seed, actions, 0
        self.started = 0.0

    def act(self, observation):
        self.turn += 1
        group = self.group
        if self.number == 0:
            if self.turn == 1:
                return self.actions.bash(group.prepare)
            group.submitted.set()
            return self.actions.submit()
        if self.turn == 1:
            group.submitted.wait(30)
            self.started = time.monotonic()
            loop = f"for i in 1 2 3 4 5 6; do\n{_search(group.task)}sleep 0.15; done 2>/dev/null; echo looked"
            return self.actions.bash(loop)
        group.spans.append(time.monotonic() - self.started)
        group.seen.append(observation)
        return self.actions.submit()


@pytest.mark.slow
def test_leak_3_nor_while_a_sibling_is_verified(secret_task, isolated):
    policy = Siblings(secret_task, FIX)
    honest, spy = run_group(secret_task, policy, group_size=2, sandbox=isolated)
    assert honest.passed
    assert not spy.passed
    assert spy.status is EpisodeStatus.SUBMITTED
    assert policy.seen == ["looked\n[exit code 0]"]
    assert honest.report.seconds > 1  # its verification began when the search did
    assert policy.spans[0] > 0.9
