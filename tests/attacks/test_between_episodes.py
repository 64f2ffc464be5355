"""What passes from one episode to another, or from the host: nothing."""

import os
import subprocess
import sys

import pytest

from gagar_env.sandbox import SandboxSpec, open_sandbox
from gagar_env.sandbox.bwrap import PACKAGE, hidden_folders

pytestmark = pytest.mark.slow

FIX = "sed -i '2s/a - b/a + b/' calc.py"


@pytest.fixture(scope="module")
def task(arena):
    return arena.task()


KEYRING = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
add, ctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
if MODE == "put":
    print("put", libc.syscall(add, b"user", b"gagar-answer", b"a + b", 5, -3) > 0)
print("found", libc.syscall(ctl, 10, -3, b"user", b"gagar-answer", 0) > 0)
"""
"""The session keyring (-3) is the trainer's, unless a sandbox gets its own: a place that outlives every episode."""


def test_leak_1_no_messages_through_the_kernels_keys(tiny_task, task, arena, isolated, earns):
    if os.uname().machine not in ("x86_64", "aarch64"):
        pytest.skip("system call numbers of another machine")
    put, get = (f"python - <<'X'\nMODE = {mode!r}{KEYRING}X" for mode in ("put", "get"))
    seen, _ = earns(0, tiny_task, isolated, put)
    assert "put " in seen[1]
    seen, _ = earns(1, tiny_task, isolated, get, FIX)
    assert "found False" in seen[1]
    # a trainer that was started from a login has a session keyring, and its children share it
    trainer = (
        "import ctypes, os, sys\nfrom pathlib import Path\nfrom gagar_env.sandbox import SandboxSpec, open_sandbox\n"
        "ctypes.CDLL(None).syscall({'x86_64': 250, 'aarch64': 219}[os.uname().machine], 1, None)\n"
        "for command in sys.argv[2:]:\n    box = open_sandbox('bwrap', SandboxSpec(tree=Path(sys.argv[1])))\n"
        "    print(box.run(command, timeout_s=20).output)\n    box.close()\n"
        f"{KEYRING.replace('MODE', repr('get'))}"
    )
    scripts = (f"python3 - <<'X'\nMODE = {mode!r}{KEYRING}X" for mode in ("put", "get"))
    command = [sys.executable, "-c", trainer, str(arena.tree(task)), *scripts]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "put " in told
    *_, inside, outside = told.splitlines()
    assert "found False" in inside
    assert outside == "found False"


def test_leak_2_the_package_is_hidden_behind_a_link_too(tmp_path, task, arena, isolated):
    """An environment that is exposed through a link may hold this package, with its tasks' tests and solutions."""
    (tmp_path / "linked").symlink_to(PACKAGE.parent)
    folders = hidden_folders([str(tmp_path / "linked")])
    assert f"{tmp_path}/linked/gagar_env" in folders
    sandbox = open_sandbox(isolated, SandboxSpec(tree=arena.tree(task), expose=(str(tmp_path / "linked"),)))
    try:
        assert sandbox.run(f"ls {tmp_path}/linked/README.md", timeout_s=10).exit_code == 0
        for folder in folders:
            assert sandbox.run(f"ls -A {folder} | head -c 1", timeout_s=10).output.strip() in (b"", b"l"), folder
            assert b".py" not in sandbox.run(f"ls -A {folder}", timeout_s=10).output
    finally:
        sandbox.close()


def test_leak_3_nothing_is_left_between_two_episodes(tiny_task, isolated, earns):
    leave = (
        "for d in /tmp ~ /dev/shm /scratch /testbed; do echo answer > $d/left; done; git stash --quiet; git tag left"
    )
    earns(0, tiny_task, isolated, leave)
    look = "ls /tmp/left ~/left /dev/shm/left /scratch/left /testbed/left 2>/dev/null; git tag; ls -A /tmp ~ /dev/shm"
    seen, _ = earns(1, tiny_task, isolated, look, FIX)
    assert "left" not in seen[1]
