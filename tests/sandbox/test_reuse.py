"""A holder serves one sandbox after another: nothing of one is there in the next, and a dead one is no loss."""

import os
import signal
import time
from pathlib import Path

import pytest

from gagar_env.errors import SandboxError
from gagar_env.sandbox import _launch, open_sandbox, why_unavailable
from gagar_env.sandbox.base import Limits, SandboxSpec

PLACES = "/testbed /tmp /dev/shm /home/agent /scratch"


def holders():
    """Process numbers of all holders of this process."""
    launcher = _launch._launcher[0].pid
    return set(Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split())


def lives(pid):
    """Whether it has not ended; the launcher reaps it some time later."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def spec(tree):
    if reason := why_unavailable("bwrap"):
        pytest.skip(f"bwrap does not work here: {reason}")
    _launch.let_idle_go()
    yield SandboxSpec(tree=tree, limits=Limits(memory_mb=512, processes=32, disk_mb=32, file_mb=16))
    _launch.let_idle_go()


def spend(spec, command):
    """Output and changes of one command in a sandbox of its own, and the holders meanwhile."""
    box = open_sandbox("bwrap", spec)
    try:
        return box.run(command, timeout_s=20).output.decode(), box.capture().changes, holders()
    finally:
        box.close()


def test_nothing_of_a_sandbox_is_in_the_next_one(spec):
    first, changes, before = spend(
        spec, f"for p in {PLACES}; do echo x >$p/mark; done; (setsid sleep 77 &) ; rm run.sh"
    )
    assert set(changes) == {"mark", "run.sh"}
    look = f"find {PLACES} -name mark; cat run.sh; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[s]leep 77'"
    second, changes, after = spend(spec, look)
    assert before & after, "the holder serves again"
    assert (first, second) == ("", "echo run\n0\n")
    assert changes == {}


def test_limits_and_tree_are_those_of_the_new_one(spec, tmp_path):
    spend(spec, "true")
    other = tmp_path / "other"
    other.mkdir()
    (other / "only").write_text("here\n")
    tight = SandboxSpec(tree=other, limits=Limits(memory_mb=512, processes=32, disk_mb=2, file_mb=16))
    out, _, _ = spend(tight, "ls; head -c 8000000 /dev/zero >/tmp/big || echo full")
    assert out.startswith("only\n")
    assert out.endswith("full\n")


def test_one_that_was_killed_while_it_waited_is_no_loss(spec):
    _, _, before = spend(spec, "true")
    for pid in filter(lives, before):
        os.kill(int(pid), signal.SIGKILL)
    out, _, after = spend(spec, "echo works")
    assert out == "works\n"
    assert not any(map(lives, before & after))


def test_waiting_ones_end_when_they_are_let_go(spec):
    boxes = [open_sandbox("bwrap", spec) for _ in range(_launch._IDLE + 2)]
    mine = holders()
    assert len(mine) >= len(boxes)
    for box in boxes:
        box.close()
    assert len(_launch._idle) == _launch._IDLE
    _launch.let_idle_go()
    until = time.monotonic() + 20
    while left := set(filter(lives, mine)):
        assert time.monotonic() < until, left
        time.sleep(0.01)


def test_a_late_answer_is_not_taken_for_another_one(spec):
    before = holders() if _launch._launcher else set()
    box = open_sandbox("bwrap", spec)
    try:
        box.write_scratch("one", b"1")
        box.write_scratch("two", b"2")
        (holder,) = map(int, holders() - before)
        os.kill(holder, signal.SIGSTOP)
        box._holder._socket.settimeout(0.2)
        with pytest.raises(SandboxError, match="does not answer"):
            box.read_scratch("one")
        os.kill(holder, signal.SIGCONT)
        box._holder._socket.settimeout(20)
        with pytest.raises(SandboxError, match="did not answer before"):
            box.read_scratch("two")
    finally:
        box.close()
