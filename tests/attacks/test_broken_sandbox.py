"""Breaking the sandbox is no way out of a loss: a valid 0, and an honest fix beside it still earns 1."""

import os

import pytest

from gagar_env import run_group
from gagar_env.actions import get_format
from gagar_env.changes import FileState
from gagar_env.episode import Outcome

pytestmark = pytest.mark.slow

FIX = "sed -i '2s/a - b/a + b/' calc.py"
BUGGY = "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"
FIXED = BUGGY.replace("a - b", "a + b", 1)


def states(**files):
    return {name.replace("__", "/"): FileState(data.encode()) for name, data in files.items()}


def judged(verifier, task, changes, outcome):
    report = verifier.verify(task, changes)
    assert report.outcome is outcome, report
    return report


@pytest.fixture(scope="module")
def task(arena):
    return arena.task()


@pytest.fixture(scope="module")
def verifier(arena):
    return arena.verifier()


CLOSED = "chmod 000 /testbed /tmp ~ /scratch /dev/shm"


def test_exec_1_a_closed_work_tree_and_a_killed_shell(tiny_task, isolated, earns):
    earns(0, tiny_task, isolated, f"{CLOSED}; kill -9 $$", "ls")
    earns(1, tiny_task, isolated, f"{FIX}; {CLOSED}; kill -9 $$", "ls", "kill -9 1; kill -9 -1")


def test_exec_2_a_closed_work_tree_and_a_time_out(tiny_task, isolated, earns):
    actions = (f"{CLOSED}; sleep 9", "cd /; echo back")
    seen, _ = earns(0, tiny_task, isolated, *actions, command_s=1.0)
    assert "killed at its limit" in seen[1]
    earns(1, tiny_task, isolated, f"{FIX}; {actions[0]}", actions[1], command_s=1.0)


STEAL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
server = libc.syscall(434, {pid}, 0)
fd = libc.syscall(438, server, 8, 0)
os.write(fd, b"9" * 60000) if fd >= 0 else sys.exit(0)
os.write(fd, b"9" * 60000 + b"\\n")
"""
"""Takes the descriptor by which the shell server says how a command ended (pidfd_getfd), and floods it."""


def test_exec_3_a_forged_exit_status(tiny_task, isolated, earns):
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("system call numbers of another machine")
    steal = f"python - <<'X'\n{STEAL.format(pid='int(os.environ.get(chr(80), 2))')}X\nsleep 0.1"
    earns(0, tiny_task, isolated, steal, "echo works")
    seen, _ = earns(1, tiny_task, isolated, steal, FIX, "echo works")
    assert seen[3] == "works\n[exit code 0]"


def test_exec_4_the_same_from_the_tests(task, verifier, arena):
    """Code under test must not turn a failure into an error of the infrastructure."""
    flood = STEAL.format(pid="os.getppid() or 2")
    report = judged(
        verifier, task, states(**{"calc.py": f"{BUGGY}\ndef add(a, b):\n    exec({flood!r})\n"}), Outcome.FAILED
    )
    assert report.attempts == 1
    judged(verifier, task, arena.fix, Outcome.PASSED)


def test_exec_5_a_stopped_shell(tiny_task, isolated, earns):
    seen, _ = earns(0, tiny_task, isolated, "kill -STOP $$; kill -STOP -1", "echo works", command_s=1.0)
    assert seen[2] == "works\n[exit code 0]"
    earns(1, tiny_task, isolated, f"{FIX}; kill -STOP $$", command_s=1.0)


def test_exec_6_a_full_disk_and_the_edit_tool(tiny_task, isolated, earns):
    """The harness cannot put its file into the sandbox: the agent reads that, and can make room."""
    small = tiny_task.model_copy(update={"limits": tiny_task.limits.model_copy(update={"disk_mb": 16})})
    tools = get_format("tools")
    edit = '{"tool": "edit", "path": "calc.py", "old": "return a - b", "new": "return a + b"}'
    create = '{"tool": "create", "path": "new.py", "content": "%s"}' % ("x" * 9000)
    fill = tools.bash("yes > /tmp/a; yes > ~/b; true")
    seen, _ = earns(0, small, isolated, fill, create, edit, action_format="tools")
    assert "No space left" in seen[2]
    assert "No space left" in seen[3]
    earns(1, small, isolated, fill, create, tools.bash("rm -f /tmp/a ~/b"), edit, action_format="tools")


def test_encoding_2_odd_names_beside_the_fix(tiny_task, sandbox_kind, earns):
    odd = (
        "touch -- $'new\\nline' $'tab\\t' '\"quoted\"' ' blank ' -rf '*' 'back\\slash' $'\\xff\\xfe' git~1 CON\n"
        "mkdir -p 'd ir/.GIT' d/.git; echo x > 'd ir/.GIT/config'; echo x > d/.git/config; mkfifo pipe\n"
        "echo '* text eol=crlf' > .gitattributes; ln -s /etc/passwd out; ln -s . loop; chmod 000 new*\n"
    )
    earns(0, tiny_task, sandbox_kind, odd)
    _, episode = earns(1, tiny_task, sandbox_kind, f"{odd}{FIX}")
    assert {d.path for d in episode.dropped} >= {"pipe"}


VANDALS = (
    "rm -rf --no-preserve-root / 2>/dev/null; chmod -R 000 /testbed; kill -9 -1",
    "for f in /usr/bin/python3 $(command -v python) /usr/bin/env; do echo exit 0 > $f; rm -f $f; done; yes > /tmp/x",
    ":(){ :|:& };: & sleep 0.5",
)


class Mixed:
    """Honest work beside vandals, at the same time."""

    name = "mixed"

    def start(self, *, task, actions, seed):
        script = VANDALS[seed - 1] if seed else FIX
        texts = iter([actions.bash(script), actions.submit()])

        class Actor:
            def act(self, observation):
                return next(texts)

        return Actor()


@pytest.mark.slow
def test_hack_6_vandals_do_not_touch_their_siblings(tiny_task, isolated):
    episodes = run_group(tiny_task, Mixed(), group_size=4, sandbox=isolated, command_s=10)
    assert [e.passed for e in episodes] == [True, False, False, False], [
        (e.status, e.error, e.report) for e in episodes
    ]
    assert all(e.valid for e in episodes)
