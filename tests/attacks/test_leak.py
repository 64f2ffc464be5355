"""What an agent could find or leave behind: history, network, secrets, processes, git configuration. Real episodes."""

import os
import shutil
import socket
import subprocess
import threading
import time

import pytest

from gagar_env import run_group
from gagar_env.changes import FileState
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.episode import EpisodeStatus
from gagar_env.patch import make_patch
from gagar_env.tasks.task import RepoSource

GOLD = "return a + b  # needle-of-the-gold-patch"
HIDDEN = "NEEDLE = 'needle-of-the-hidden-tests'"
FIX = "sed -i '2s/a - b/a + b/' calc.py"


class Play:
    """One episode from a list of actions; ends with `submit`."""

    def __init__(self, task, kind, *actions, **more):
        env = RepoEditEnv(task, sandbox=kind, **more)
        observation, info = env.reset(seed=0)
        self.seen, self.infos = [observation], [info]
        self.reward, over = 0.0, False
        try:
            for action in (*actions, env.action_format.submit()):
                if not over:
                    observation, self.reward, terminated, truncated, info = env.step(action)
                    over = terminated or truncated
                    self.seen.append(observation)
                    if not over:
                        self.infos.append(info)
            self.episode = env.episode
        finally:
            env.close()

    @property
    def text(self):
        """All that the agent read before the end."""
        return "\n".join(self.seen[:-1])

    def earned(self, reward):
        assert self.episode.status is EpisodeStatus.SUBMITTED, self.episode.error
        assert self.reward == reward, self.episode.report.reason


@pytest.fixture
def isolated(best_kind):
    if best_kind != "bwrap":
        pytest.skip("only bwrap keeps this apart")
    return best_kind


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


def test_leak_1_the_future_is_not_in_the_repository(past, best_kind):
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
    played = Play(task, best_kind, *probes)
    played.earned(0.0)
    for word in ("needle", "Fix add", "v2.0\n", "refs/tags", "refs/remotes", "dangling", "unreachable"):
        assert word not in played.text, word
    assert played.seen[1].count("\n") <= 2, played.seen[1]  # one commit
    assert "refs/heads/main" in played.seen[2]  # the probes do run
    assert not {base, *later} & set(played.seen[2].split())
    Play(task, best_kind, *probes, FIX).earned(1.0)


def test_leak_2_no_way_to_a_server_on_the_host(tiny_task, isolated, monkeypatch):
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
        played = Play(tiny_task, isolated, *probes)
        played.earned(0.0)
        assert "none none" in played.text
        assert "connected" not in played.text
        assert "proxy.example" not in played.text
        assert "needle-of-the-host" not in played.text
        # nor has the work itself, while it is verified
        steal = f"import socket\nsocket.create_connection(('127.0.0.1', {port}), 1)\n"
        Play(tiny_task, isolated, f"{FIX}; printf %s {_quoted(steal)} >> calc.py").earned(0.0)
        harmless = steal.replace("socket.create", "try:\n    socket.create") + "except OSError:\n    pass\n"
        Play(tiny_task, isolated, f"{FIX}; printf %s {_quoted(harmless)} >> calc.py").earned(1.0)
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


def test_leak_3_secrets_are_nowhere(secret_task, isolated):
    played = Play(secret_task, isolated, _search(secret_task), "find / -xdev -name '*hidden*' -path '*secrets*'; env")
    played.earned(0.0)
    assert played.seen[1] == "[exit code 2]", played.seen[1]  # of `ls`: none of the places is there
    told = played.text + repr(played.infos)
    assert GOLD not in told
    assert "needle" not in told
    assert all(info["episode_record"] is None for info in played.infos)
    Play(secret_task, isolated, _search(secret_task), FIX).earned(1.0)


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


def test_leak_3_nor_while_a_sibling_is_verified(secret_task, isolated):
    policy = Siblings(secret_task, FIX)
    honest, spy = run_group(secret_task, policy, group_size=2, sandbox=isolated)
    assert honest.passed
    assert not spy.passed
    assert spy.status is EpisodeStatus.SUBMITTED
    assert policy.seen == ["looked\n[exit code 0]"]
    assert honest.report.seconds > 1  # its verification began when the search did
    assert policy.spans[0] > 0.9


MARK = "gagar-outlives"
WRITERS = {
    "nohup": "setsid nohup bash -c 'while :; do sed -i s/a.-.b/a+b/ calc.py; sleep 0.02; done' MARK >/dev/null 2>&1 &",
    "double_fork": (
        "python - MARK <<'X'\nimport os, signal, time\n"
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 13, 15)]\n"
        "        held = open('calc.py', 'r+')\n"  # permission is checked when a file is opened
        "        while True:\n            time.sleep(0.02)\n"
        "            held.seek(0); held.write('def add(a, b):\\n    return a + b\\n'); held.flush()\n"
        "    os._exit(0)\nX"
    ),
    "watcher": (
        "(exec -a MARK bash -c 'until grep -qs test_add /testbed/test_calc.py; do sleep 0.02; done;"
        " cp /testbed/test_calc.py /tmp/loot; touch loot') >/dev/null 2>&1 & disown"
    ),
    "respawning": (
        "f() { (trap '' TERM HUP; sleep 0.03; echo 'def add(a, b): return a + b' > calc.py; f MARK) & }\n"
        "f >/dev/null 2>&1"
    ),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_hack_9_nothing_outlives_its_command(writer, best_kind, tiny_task):
    mark = f"{MARK}-{writer}-{os.getpid()}"
    start = WRITERS[writer].replace("MARK", mark)
    restore = "git checkout --quiet calc.py; cp calc.py /tmp/before-$$ 2>/dev/null; sleep 0.2; git status --porcelain"
    played = Play(tiny_task, best_kind, start, restore, start)
    assert played.seen[2] == "[exit code 0]", played.seen[2]  # nothing wrote in between
    played.earned(0.0) if writer == "watcher" else _no_error(played)
    left = subprocess.run(["pgrep", "-af", mark], capture_output=True, text=True, check=False).stdout
    assert left == ""
    Play(tiny_task, best_kind, start, f"git checkout --quiet calc.py; {FIX}").earned(1.0)


def _no_error(played):
    """The writer may have had the time to fix it before its own command ended: that is work, and ends with it."""
    assert played.episode.status is EpisodeStatus.SUBMITTED, played.episode.error


def test_hack_9_the_last_command_leaves_nothing_for_the_verification(tiny_task, sandbox_kind):
    """A writer that only acts later, when tests would run, never acts."""
    fix = 'printf "def add(a, b):\\n    return a + b\\n" > calc.py'
    late = f"setsid nohup bash -c 'sleep 0.3; while :; do {fix}; done' &"
    Play(tiny_task, sandbox_kind, f"{late}\necho started").earned(0.0)
    Play(tiny_task, sandbox_kind, f"{FIX}\n{late.replace('a + b', 'a - b')}").earned(1.0)


def _trapped_config(canary):
    run = f"touch {canary}; cat"
    return f"""[core]
\trepositoryformatversion = 0
\tbare = false
\tfsmonitor = "{run}"
\thooksPath = .git/hooks
\tpager = "{run}"
\teditor = "{run}"
\tsshCommand = "{run}"
\tattributesFile = .gitattributes
[diff]
\texternal = "{run}"
[diff "x"]
\ttextconv = "{run}"
\tcommand = "{run}"
[filter "x"]
\tclean = "{run}"
\tsmudge = "{run}"
\tprocess = "{run}"
\trequired = true
[merge "x"]
\tdriver = "{run}"
[alias]
\tstatus = "!{run}"
\tdiff = "!{run}"
\tapply = "!{run}"
[gpg]
\tprogram = "{run}"
[include]
\tpath = ../.gitconfig
"""


HOOKS = ("post-index-change", "pre-commit", "post-checkout", "post-applypatch", "reference-transaction", "fsmonitor")


@pytest.fixture
def trap(tmp_path):
    """A script that arms the `.git` of a work tree, and the file that appears when any of it runs here."""
    os.chmod(tmp_path, 0o777)
    canary = tmp_path / "canary"
    hooks = "".join(
        f"printf '#!/bin/sh\\ntouch {canary}\\n' > .git/hooks/{name}; chmod +x .git/hooks/{name}\n" for name in HOOKS
    )
    script = (
        f"mkdir -p .git/hooks .git/info\ncat > .git/config <<'X'\n{_trapped_config(canary)}X\n{hooks}"
        "echo '* filter=x diff=x merge=x -text' | tee .gitattributes .git/info/attributes > sub.txt\n"
        "cp .git/config .gitconfig; mkdir -p deep; printf 'x\\0y' > deep/blob.bin; touch git; chmod +x git\n"
    )
    return canary, script


def test_hack_10_the_trap_is_real(trap, tiny_task, tmp_path):
    """Plain git on the same files runs what they say."""
    canary, script = trap
    repo = tmp_path / "repo"
    shutil.copytree(tiny_task.repo.path, repo)
    host_git(repo, "init", "--quiet")
    host_git(repo, "add", "--all")
    subprocess.run(["bash", "-c", script], cwd=repo, check=True)
    assert not canary.exists()
    subprocess.run(["git", "diff"], cwd=repo, check=False, capture_output=True)
    assert canary.exists()


def test_hack_10_nothing_of_git_runs_on_the_host(trap, tiny_task, sandbox_kind):
    canary, script = trap
    Play(tiny_task, sandbox_kind, script).earned(0.0)
    assert not canary.exists()
    played = Play(tiny_task, sandbox_kind, f"{script}\n{FIX}")
    played.earned(1.0)
    assert not canary.exists()
    assert b".gitattributes" in played.episode.patch
    assert b"fsmonitor" not in played.episode.patch.split(b"b/.gitconfig")[0]  # nothing of `.git` is in the patch


@pytest.mark.parametrize(
    "way",
    {
        "worktree": "git config core.worktree /etc",
        "gitdir_file": "mv .git /tmp/elsewhere; echo 'gitdir: /tmp/elsewhere' > .git",
        "link": "mv .git /tmp/elsewhere; ln -s /tmp/elsewhere .git",
        "gone": "rm -rf .git",
        "locked": "touch .git/index.lock .git/HEAD.lock .git/config.lock",
        "assume_unchanged": "git update-index --assume-unchanged calc.py",
        "committed": "git checkout -qb other; git commit -qam x --allow-empty; git gc --quiet",
    }.items(),
    ids=lambda way: way[0],
)
def test_hack_10_the_capture_asks_no_git(way, tiny_task, best_kind):
    played = Play(tiny_task, best_kind, f"{FIX}; {way[1]}")
    played.earned(1.0)
    plain = Play(tiny_task, best_kind, FIX, verify=False)
    assert played.episode.patch == plain.episode.patch
    nothing = Play(tiny_task, best_kind, way[1], verify=False)
    assert nothing.episode.patch == b""
