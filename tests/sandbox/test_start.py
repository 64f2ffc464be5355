"""How a holder starts a program: what the program has, and that the holder has nothing of it afterwards."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gagar_env.sandbox._cgroup import find_places
from gagar_env.sandbox.base import SANDBOX_UID

if os.geteuid() != 0:
    pytest.skip("only root has another user to give to a program", allow_module_level=True)
pytestmark = pytest.mark.bwrap
ROOT = Path(__file__).parents[2]
LOOK = """
read -r line; echo "$line"; [ -e /proc/self/fd/4 ] && wc -c <&4
echo files $(ls /proc/self/fd)
echo place $(pwd) $TOLD $SECRET
cat /proc/self/status /proc/self/cgroup
ps -o pgid= -p $$ | sed 's/^ */group /'; ps -o sid= -p $$ | sed 's/^ */session /'; echo pid $$
echo status >&3
"""
HOLDER = """
import atexit, ctypes, json, os, sys, types
package = types.ModuleType("gagar_env")  # without the imports of the package itself, as the launcher has it
package.__path__ = [sys.argv[1] + "/gagar_env"]
sys.modules["gagar_env"] = package
from gagar_env.sandbox._cgroup import Cgroup, find_places
from gagar_env.sandbox._start import start

asked = json.loads(sys.argv[2])


def state():
    lines = open("/proc/self/status").read().splitlines()
    mine = [line for line in lines if line.startswith(("Uid", "Gid", "Groups", "CapPrm", "CapEff", "SigIgn"))]
    return mine, open("/proc/self/cgroup").read(), os.getcwd(), sorted(os.listdir("/proc/self/fd"))


os.environ["SECRET"] = "s"
os.setgroups([1, 2])
if asked["ambient"]:  # one capability that a program keeps when its user changes
    libc, header, sets = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, sets)
    sets[2] = 1
    assert libc.capset(header, sets) == 0
    assert libc.prctl(47, 2, 0, 0, 0) == 0
places = find_places()
cgroup = Cgroup(places, memory_mb=512, disk_mb=0, processes=64, cpus=1.0) if asked["cgroup"] else None
if asked["moved"]:  # by somebody who manages jobs, say
    place = next(folder for folder, _, version in places if version == 1)
    os.mkdir(f"{place}/moved-{os.getpid()}")
    atexit.register(os.rmdir, f"{place}/moved-{os.getpid()}")
    atexit.register(lambda: open(f"{place}/tasks", "w").write("0"))
    open(f"{place}/moved-{os.getpid()}/tasks", "w").write("0")
os.open("/etc/shadow", os.O_RDONLY)  # a file that nobody else may read
(commands, feed), (answers, output), (told, status) = os.pipe(), os.pipe(), os.pipe()
os.write(feed, b"line\\n")
given = [commands, output, status]
if asked["crossed"]:  # the numbers that are wanted, each for another
    high = [os.dup2(fd, 60 + n) for n, fd in enumerate((feed, answers, told, *given))]
    os.closerange(3, 60)
    (feed, answers, told), given = high[:3], [os.dup2(fd, n, inheritable=False) for fd, n in zip(high[3:], (4, 5, 3))]
    for fd in high:
        os.set_inheritable(fd, False)
    for fd in high[3:]:
        os.close(fd)
before, error, pid = state(), "", 0
owner = (asked["uid"], asked["gid"])
if asked["again"]:
    os.waitpid(start(["/bin/true"], {}, given, text=b"", owner=owner, cgroup=cgroup, spawn=asked["spawn"]), 0)
try:
    pid = start(asked["argv"], {"PATH": "/usr/bin:/bin", "TOLD": "yes"}, given, text=b"t" * asked["text"], owner=owner,
                cgroup=cgroup, spawn=asked["spawn"])
except (OSError, OverflowError) as failure:
    error = str(failure)
after = state()
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if pid else None
for fd in given[1:]:
    os.close(fd)
if cgroup:
    assert cgroup.remove()
out = os.read(answers, 60000).decode()
told = os.read(told, 99).decode()
print(json.dumps({"error": error, "code": code, "out": out, "told": told, "same": before == after}))
"""


@pytest.fixture(params=[True, False], ids=["spawned", "forked"])
def start(request):
    def run(argv=("/bin/sh", "-c", LOOK), **more):
        asked = {
            "argv": list(argv),
            "spawn": request.param,
            "uid": SANDBOX_UID,
            "gid": SANDBOX_UID,
            "text": 4000,
            "cgroup": False,
        }
        asked |= {"crossed": False, "ambient": False, "moved": False, "again": False, **more}
        command = [sys.executable, "-I", "-S", "-B", "-c", HOLDER, str(ROOT), json.dumps(asked)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def field(said, name):
    return next(line.split()[1:] for line in said["out"].splitlines() if line.startswith(name))


@pytest.mark.parametrize("more", [{}, {"ambient": True}, {"crossed": True}], ids=["", "ambient", "crossed"])
def test_the_program_has_what_it_shall_have_and_no_more(start, more):
    said = start(**more)
    assert (said["error"], said["code"], said["told"]) == ("", 0, "status\n")
    assert said["out"].splitlines()[:2] == ["line", "4000"]
    assert field(said, "files") == ["0", "1", "2", "3", "4", "5"]  # the last is that of `ls`
    assert field(said, "place") == ["/", "yes"]
    assert field(said, "Uid:") == field(said, "Gid:") == [str(SANDBOX_UID)] * 4
    assert field(said, "Groups:") == []
    assert [field(said, f"Cap{name}:") for name in ("Prm", "Eff", "Amb")] == [["0" * 16]] * 3
    assert field(said, "group") == field(said, "pid")
    assert int(field(said, "SigIgn:")[0], 16) & ~(3 << 31) == 0  # see tests/warm/test_warm_parity.py


def test_no_text_no_file(start):
    assert field(start(text=0), "files") == ["0", "1", "2", "3", "4"]


def test_the_holder_is_what_it_was(start):
    assert start(cgroup=bool(find_places()))["same"]


@pytest.mark.skipif(not find_places(), reason="no cgroups can be made here")
def test_the_program_is_in_the_cgroup(start):
    assert "/gagar." in start(cgroup=True)["out"]
    assert "/gagar." not in start(cgroup=False)["out"]


@pytest.mark.skipif(not find_places(), reason="no cgroups can be made here")
def test_a_cgroup_that_was_lived_in_is_not_visited(start):
    """A forked program has a session of its own, a spawned one the holder's."""
    said = start(cgroup=True, again=True)
    assert "/gagar." in said["out"]
    assert field(said, "session") == field(said, "pid")


@pytest.mark.skipif(not any(version == 1 for *_, version in find_places()), reason="no cgroups of the first version")
def test_a_holder_that_was_moved_stays_where_it_is(start):
    said = start(cgroup=True, moved=True)
    assert said["same"]
    assert "/gagar." in said["out"]


def test_a_program_that_cannot_be_started_leaves_nothing(start):
    said = start(("/no/such/program",), cgroup=bool(find_places()))
    assert said["same"]
    assert "No such file" in said["error"] + said["out"]
    assert said["code"] in (None, 127)


def test_a_user_that_cannot_be_had_leaves_nothing(start):
    said = start(uid=2**40, cgroup=bool(find_places()))
    assert said["same"]
    assert "uid is" in said["error"] + said["out"]
