"""Processes that outlive a command, and what git trusts. Real episodes."""

import os
import shutil
import subprocess

import pytest

from gagar_env.episode import EpisodeStatus

pytestmark = pytest.mark.slow

FIX = "sed -i '2s/a - b/a + b/' calc.py"


def host_git(folder, *arguments):
    identity = ("-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgSign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


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
def test_hack_9_nothing_outlives_its_command(writer, best_kind, tiny_task, play):
    mark = f"{MARK}-{writer}-{os.getpid()}"
    start = WRITERS[writer].replace("MARK", mark)
    restore = "git checkout --quiet calc.py; cp calc.py /tmp/before-$$ 2>/dev/null; sleep 0.2; git status --porcelain"
    played = play(tiny_task, best_kind, start, restore, start)
    assert played.seen[2] == "[exit code 0]", played.seen[2]  # nothing wrote in between
    played.earned(0.0) if writer == "watcher" else _no_error(played)
    left = subprocess.run(["pgrep", "-af", mark], capture_output=True, text=True, check=False).stdout
    assert left == ""
    play(tiny_task, best_kind, start, f"git checkout --quiet calc.py; {FIX}").earned(1.0)


def _no_error(played):
    """The writer may have had the time to fix it before its own command ended: that is work, and ends with it."""
    assert played.episode.status is EpisodeStatus.SUBMITTED, played.episode.error


def test_hack_9_the_last_command_leaves_nothing_for_the_verification(tiny_task, sandbox_kind, play):
    """A writer that only acts later, when tests would run, never acts."""
    fix = 'printf "def add(a, b):\\n    return a + b\\n" > calc.py'
    late = f"setsid nohup bash -c 'sleep 0.3; while :; do {fix}; done' &"
    play(tiny_task, sandbox_kind, f"{late}\necho started").earned(0.0)
    play(tiny_task, sandbox_kind, f"{FIX}\n{late.replace('a + b', 'a - b')}").earned(1.0)


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


def test_hack_10_nothing_of_git_runs_on_the_host(trap, tiny_task, sandbox_kind, play):
    canary, script = trap
    play(tiny_task, sandbox_kind, script).earned(0.0)
    assert not canary.exists()
    played = play(tiny_task, sandbox_kind, f"{script}\n{FIX}")
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
def test_hack_10_the_capture_asks_no_git(way, tiny_task, best_kind, play):
    played = play(tiny_task, best_kind, f"{FIX}; {way[1]}")
    played.earned(1.0)
    plain = play(tiny_task, best_kind, FIX, verify=False)
    assert played.episode.patch == plain.episode.patch
    nothing = play(tiny_task, best_kind, way[1], verify=False)
    assert nothing.episode.patch == b""
