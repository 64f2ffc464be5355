"""One cgroup for each sandbox: what all its processes together may take, and that nothing of it stays."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gagar_env.sandbox import SandboxSpec, open_sandbox, why_unavailable
from gagar_env.sandbox import _kernel as kernel
from gagar_env.sandbox._cgroup import Cgroup, find_places, name_of, remove_leftovers
from gagar_env.sandbox.base import Limits

if reason := why_unavailable("bwrap"):
    pytest.skip(f"bwrap does not work here: {reason}", allow_module_level=True)
ROOT = Path(__file__).parents[2]
PLACES = find_places()
if not PLACES:
    pytest.skip("no cgroups can be made here: not root, and no delegated tree", allow_module_level=True)
pytestmark = [pytest.mark.bwrap, pytest.mark.slow]


@pytest.fixture(params=["bwrap", pytest.param("rootfs", marks=pytest.mark.docker)])
def kind(request):
    return request.param


def folders(holder=None):
    """Cgroups of a holder (of all, without one), by controller."""
    end = name_of(holder).split(".", 1)[1] if holder else ""
    return {
        name: found
        for folder, controllers, _ in PLACES
        for found in Path(folder).glob("gagar.*")
        if found.name.endswith(end)
        for name in controllers
    }


def holder_of(box):
    """The process that serves a sandbox: its shell's parent."""
    marker = f"sleep 7{time.monotonic_ns()}"
    worker = threading.Thread(target=lambda: box.run(marker, timeout_s=1))
    worker.start()
    found = ""
    while worker.is_alive() and not found:
        found = subprocess.run(["pgrep", "-fx", marker], capture_output=True, text=True, check=False).stdout.strip()
    pid = int(found)
    name = None
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        last = line.rpartition("/")[2]
        if last.startswith("gagar."):
            name = last
    worker.join()
    assert name is not None, "its processes are in no cgroup of ours"
    return int(name.split(".")[2])


def limit(folder, controller):
    names = {"memory": ("memory.limit_in_bytes", "memory.max"), "pids": ("pids.max",)}[controller]
    return int(next((folder / name).read_text() for name in names if (folder / name).exists()))


def test_each_sandbox_has_its_own_and_it_goes_with_it(kind, tree, limits, system):
    boxes = [open_sandbox(kind, SandboxSpec(tree=tree, limits=limits, **system)) for _ in range(2)]
    try:
        holders = [holder_of(box) for box in boxes]
        assert len(set(holders)) == 2
        for holder in holders:
            mine = folders(holder)
            assert "memory" in mine
            assert limit(mine["memory"], "memory") == (limits.memory_mb + limits.disk_mb) << 20
            if "pids" in mine:
                assert limits.processes < limit(mine["pids"], "pids") <= limits.processes + 16
    finally:
        for box in boxes:
            box.close()
    assert [folders(holder) for holder in holders] == [{}, {}]


def test_odd_mounts_take_it_from_nobody(monkeypatch):
    odd = ["99", "1", "0:99", "/", "/caf\udce9", "rw", "-", "9p", "drvfs", "rw,path=C:\\Program", "Files\\x;trans=fd"]
    table = kernel.mount_table()
    monkeypatch.setattr(kernel, "mount_table", lambda: [odd, *table])
    assert find_places() == PLACES


def test_it_cannot_be_seen_or_left_from_inside(sh):
    result = sh("cat /proc/self/cgroup; ls /sys/fs/cgroup; find / -name cgroup.procs 2>/dev/null")
    assert b"gagar" not in result.output
    assert b"cgroup.procs" not in result.output


def test_memory_of_all_processes_together(kind, tree, system):
    limits = Limits(memory_mb=256, disk_mb=64)
    greedy = open_sandbox(kind, SandboxSpec(tree=tree, limits=limits, **system))
    sibling = open_sandbox(kind, SandboxSpec(tree=tree, limits=limits, **system))
    script = """
for i in 1 2 3 4; do python3 -c 'x = bytearray(120 << 20); import time; time.sleep(30)' & done
rc=0; for job in $(jobs -p); do wait $job; r=$?; [ $r -gt $rc ] && rc=$r; done; exit $rc
"""
    try:
        sibling.run("echo kept > kept", timeout_s=20)
        assert sibling.run("python3 -c 'x = bytearray(120 << 20)'", timeout_s=30).exit_code == 0
        result = greedy.run(script, timeout_s=60)
        assert result.exit_code == 137
        assert sibling.run("cat kept", timeout_s=20).output == b"kept\n"
        assert greedy.run("echo alive", timeout_s=20).output == b"alive\n"
    finally:
        greedy.close()
        sibling.close()


def test_files_are_no_reason_to_be_killed(kind, tree, system):
    """All of the disk, and nearly all of the memory, are there at one time."""
    box = open_sandbox(kind, SandboxSpec(tree=tree, limits=Limits(memory_mb=192, disk_mb=128, file_mb=128), **system))
    try:
        script = "head -c 120000000 /dev/zero > big; python3 -c 'x = bytearray(120 << 20); print(len(x))'"
        assert box.run(script, timeout_s=60).output == b"125829120\n"
    finally:
        box.close()


def test_many_busy_processes_do_not_starve_a_sibling(kind, tree, system):
    if not any("cpu" in controllers for _, controllers, _ in PLACES):
        pytest.skip("no cgroups for processors here")
    crowd = open_sandbox(kind, SandboxSpec(tree=tree, **system))
    single = open_sandbox(kind, SandboxSpec(tree=tree, **system))
    busy = "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
    seconds = {}

    def use(name, box, number):
        box.write_scratch("busy.py", busy.encode())
        output = box.run(
            f"for i in $(seq {number}); do python3 {box.scratch}/busy.py & done; wait", timeout_s=120
        ).output
        seconds[name] = sum(map(float, output.split()))

    try:
        threads = [threading.Thread(target=use, args=a) for a in (("crowd", crowd, 64), ("single", single, 1))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # as processes among processes, one would get a 64th of the others; as two sandboxes, about as much
        assert seconds["single"] > seconds["crowd"] / 16
    finally:
        crowd.close()
        single.close()


def test_processors_are_limited(kind, tree, system):
    if not any("cpu" in controllers for _, controllers, _ in PLACES):
        pytest.skip("no cgroups for processors here")
    box = open_sandbox(kind, SandboxSpec(tree=tree, limits=Limits(cpus=0.2), **system))
    try:
        script = """
import time
end = time.monotonic() + 3
while time.monotonic() < end: pass
print(time.process_time())
"""
        box.write_scratch("busy.py", script.encode())
        assert float(box.run(f"python3 {box.scratch}/busy.py", timeout_s=60).output) < 1.5
    finally:
        box.close()


def test_can_be_switched_off(tree, limits, monkeypatch):
    monkeypatch.setenv("GAGAR_CGROUPS", "0")
    box = open_sandbox("bwrap", SandboxSpec(tree=tree, limits=limits))
    try:
        with pytest.raises(AssertionError, match="no cgroup of ours"):
            holder_of(box)
    finally:
        box.close()


DRIVER = """
import os, sys, time
from pathlib import Path
from gagar_env.sandbox import SandboxSpec, open_sandbox
from gagar_env.sandbox import _launch
box = open_sandbox("bwrap", SandboxSpec(tree=Path({tree!r})))
launcher = _launch._launcher[0].pid
with open(f"/proc/{{launcher}}/task/{{launcher}}/children") as file:
    print(launcher, *file.read().split(), flush=True)
time.sleep(100)
"""


@pytest.fixture
def driver(tree):
    """A trainer with one sandbox: the process, and the numbers of its launcher and holder."""
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER.format(tree=str(tree))], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    launcher, holder = map(int, process.stdout.readline().split())
    yield process, launcher, holder
    process.kill()
    process.communicate()


def eventually(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_gone_after_the_trainer_is_killed(driver):
    process, _, holder = driver
    name = name_of(holder)
    assert folders(holder)
    process.send_signal(signal.SIGKILL)
    process.wait()
    eventually(lambda: not any(found.name == name for found in folders().values()))


def test_the_next_trainer_removes_what_was_left(driver):
    process, launcher, holder = driver
    mine = folders(holder)
    assert mine
    for pid in (holder, launcher, process.pid):  # nobody is left who could clean up
        os.kill(pid, signal.SIGKILL)
    process.wait()
    eventually(lambda: not any((folder / "cgroup.procs").read_text() for folder in mine.values()))
    assert all(folder.is_dir() for folder in mine.values())
    own = Path(PLACES[0][0], name_of(os.getpid()) + "1")  # as of a holder that has this number now, and did not then
    own.mkdir()
    group = Cgroup(PLACES, memory_mb=16, disk_mb=0, processes=4, cpus=1)  # of one that is alive
    try:
        remove_leftovers(PLACES)
        assert not any(folder.exists() for folder in mine.values())
        assert not own.exists()
        assert all(os.path.isdir(folder) for folder in group.folders)
    finally:
        group.remove()


def test_born_inside_the_unified_tree():
    """The way of version 2, for real where such a tree can be written to, whatever it controls."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    trees = [fields[1] for fields in mounts if fields[2] == "cgroup2" and os.access(fields[1], os.W_OK)]
    if not trees:
        pytest.skip("no tree of version 2 that can be written to")
    group = Cgroup([(trees[0], (), 2)], memory_mb=1, disk_mb=1, processes=1, cpus=1)
    try:
        source, sink = os.pipe()
        pid = group.fork()
        if pid == 0:
            group.enter()
            os.write(sink, Path("/proc/self/cgroup").read_bytes())
            os._exit(0)
        os.waitpid(pid, 0)
        os.close(sink)
        with open(source, "rb") as file:
            assert os.path.basename(group.folders[0]).encode() in file.read()
    finally:
        group.remove()
    assert not os.path.exists(group.folders[0])
