"""Warm servers die, their drivers die, threads share them: no run gets a wrong report by it, and nothing is left."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gagar_env.warm import Cold, servers

RIGHT = {"calc.py": "def answer():\n    return 42\n"}
ENDED = (FileNotFoundError, ProcessLookupError)
"""What reading of a process raises that ends meanwhile."""


def alive(pid):
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except ENDED:
        return False


def below(pid):
    """All that descends from a process."""
    found = []
    with contextlib.suppress(*ENDED):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(*ENDED):
                for child in map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split()):
                    found += [child, *below(child)]
    return found


def serving(top):
    """Processes below `top` that are servers: nothing else runs the reporter as an ordinary child of a holder."""
    found = []
    for pid in below(top):
        with contextlib.suppress(*ENDED):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"/scratch/reporter.py" in words:
                found.append(pid)
    return found


@pytest.fixture
def fresh():
    """No servers yet: those of before may belong to a launcher that another test has ended, and are not below us."""
    servers.close()


def gone(pids, seconds=30):
    ends = time.monotonic() + seconds
    while any(map(alive, pids)):
        assert time.monotonic() < ends, [(p, Path(f"/proc/{p}/cmdline").read_bytes()) for p in pids if alive(p)]
        time.sleep(0.02)
    return True


@pytest.mark.slow
def test_a_server_that_dies_costs_a_fresh_start_and_is_made_again(pair, fresh):
    pair.same(RIGHT)
    (server,) = serving(os.getpid())
    os.kill(server, signal.SIGKILL)
    gone([server])
    before = dict(servers.counts)
    assert pair.warm.verify(pair.task, pair.task.solution_patch).passed
    assert servers.counts[Cold.SERVER_LOST.value] == before.get(Cold.SERVER_LOST.value, 0) + 1
    pair.same(RIGHT)


@pytest.mark.slow
def test_a_nest_that_dies_costs_a_second_attempt(pair, fresh):
    pair.same(RIGHT)
    (server,) = serving(os.getpid())
    status = dict(line.split(":", 1) for line in Path(f"/proc/{server}/status").read_text().splitlines())
    inside = len(status["NSpid"].split())
    nests = [p for p in below(os.getpid()) if server in below(p) and _depth(p) == inside and _inner(p) == 1]
    os.kill(nests[0], signal.SIGKILL)
    gone([server])
    assert pair.warm.verify(pair.task, pair.task.solution_patch).passed
    pair.same(RIGHT)


def _inner(pid):
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(status["NSpid"].split()[-1])


def _depth(pid):
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return len(status["NSpid"].split())


def test_a_server_has_no_powers(pair, fresh):
    """What it has that a sandbox's processes have not: one system call, and its place in the process namespace."""
    pair.warm.verify(pair.task, pair.task.solution_patch)
    for pid in (found := serving(os.getpid())):
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert {status[f"Cap{name}"].strip() for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
        assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")
        assert "0" not in status["Uid"].split()
        assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2", "3"]
        for name in ("mnt", "net", "ipc", "uts", "pid"):
            assert os.readlink(f"/proc/{pid}/ns/{name}") != os.readlink(f"/proc/self/ns/{name}")
    assert len(found) == 1


@pytest.mark.slow
def test_many_threads_share_servers_and_mix_nothing_up(pair):
    """32 at one time: each must get the report of its own work."""

    def verify(number):
        answer = 42 if number % 2 else number
        report = pair.warm.verify(pair.task, f"{_patch(pair, answer)}".encode())
        return report.passed, f"assert {answer} == 42" in str(report.tests)

    with ThreadPoolExecutor(32) as pool:
        found = list(pool.map(verify, range(32)))
    assert found == [(bool(n % 2), not n % 2) for n in range(32)]


def _patch(pair, answer):
    return (
        "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def answer():\n"
        f"-    return 0\n+    return {answer}\n"
    )


@pytest.mark.slow
def test_a_forked_child_makes_servers_of_its_own_and_leaves_ours_alone(pair, fresh):
    pair.same(RIGHT)
    mine = set(serving(os.getpid()))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            report = pair.warm.verify(pair.task, pair.task.solution_patch)
            code = 0 if report.passed and not mine & set(serving(os.getpid())) and serving(os.getpid()) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert set(serving(os.getpid())) == mine
    pair.same(RIGHT)


DRIVER = """
import sys, threading
from gagar_env import load_task
from gagar_env.verify import Verifier
from gagar_env.warm import servers
task = load_task("ledger-rounding")
verifier = Verifier(sandbox="bwrap")
assert verifier.verify(task, task.solution_patch).passed and servers.counts["warm"] == 1, servers.counts
print("ready", flush=True)
if sys.argv[1] == "busy":
    sys.stdin.readline()  # its server has been looked for: the forks of one look as it does
    while True:
        verifier.verify(task, task.solution_patch)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["end", "kill", "busy"])
def test_life_1_a_driver_that_ends_leaves_no_server(how, best_kind):
    if best_kind != "bwrap":
        pytest.skip("only bwrap and rootfs have warm servers")
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "ready\n"
        (server,) = serving(child.pid)
        nest = os.readlink(f"/proc/{server}/ns/pid").strip("pid:[]")
        if how == "busy":
            child.stdin.write("\n")
            child.stdin.flush()
            time.sleep(0.5)
        pids = below(child.pid)
        if how == "end":
            child.communicate("", timeout=30)
            assert child.returncode == 0
        else:
            child.kill()
    assert gone(pids)
    ends = time.monotonic() + 30
    while left := [f for f, _, _ in os.walk("/sys/fs/cgroup") if f"/gagar.{nest}." in f]:
        assert time.monotonic() < ends, left
        time.sleep(0.05)
