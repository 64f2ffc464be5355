"""What the `bwrap` and `rootfs` sandboxes keep apart. Each test tries to break one property."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

from gagar_env.sandbox import SandboxSpec, open_sandbox, why_unavailable
from gagar_env.sandbox.base import SANDBOX_UID
from gagar_env.sandbox.bwrap import hidden_folders

pytestmark = pytest.mark.bwrap
if reason := why_unavailable("bwrap"):
    pytest.skip(f"bwrap does not work here: {reason}", allow_module_level=True)

PYTHON = os.path.realpath(sys.executable)
ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["bwrap", pytest.param("rootfs", marks=pytest.mark.docker)])
def kind(request):
    return request.param


def test_leak_2_no_network(sh):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = sh(f"exec 5<>/dev/tcp/127.0.0.1/{port} && echo connected")
        assert b"connected" not in result.output
    assert sh("cat /proc/net/dev | grep -c :").output.strip() == b"1"
    assert sh("getent hosts example.com || echo none").output == b"none\n"


def test_leak_2_no_host_environment(sh, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    monkeypatch.setenv("API_KEY", "s3cret")
    environment = sh("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; env").output
    assert b"s3cret" not in environment
    assert b"proxy" not in environment.lower()


@pytest.mark.parametrize(
    "path", ["/usr/x", "/etc/x", "/x", "/bin/x", "/dev/x", "/proc/sys/kernel/hostname", "/var/x", "/home/x"]
)
def test_only_the_work_tree_is_writable(sh, path):
    assert sh(f"echo x > {path}").exit_code != 0


def test_private_places_are_writable(sh, box, kind):
    assert sh(f"touch ~/a /tmp/b /dev/shm/c {box.workdir}/d {box.scratch}/e && echo ok").output == b"ok\n"
    assert (sh("touch /run/x").exit_code == 0) == (kind == "rootfs")


def test_leak_3_host_files_are_absent(sh, tmp_path, kind):
    secret = tmp_path / "secret.txt"
    secret.write_text("needle")
    paths = [secret, Path.home(), "/root", "/work", ROOT]
    if kind == "bwrap":  # an image has its own
        paths += ["/var", "/opt", "/etc/shadow", "/etc/passwd-"]
    for path in paths:
        assert sh(f"cat {path} || ls {path}").exit_code != 0, path
    assert sh("ls /home").output == b"agent\n"


def test_leak_3_own_package_is_masked_where_python_is_exposed(tree):
    """The package's folder holds the built-in tasks' solutions: an exposed interpreter must not bring it along."""
    folders = hidden_folders([str(ROOT)])
    assert str(ROOT / "tasks") in folders
    assert str(ROOT / "gagar_env") in folders
    sandbox = open_sandbox("bwrap", SandboxSpec(tree=tree, expose=(str(ROOT),)))
    try:
        assert sandbox.run(f"ls {ROOT}/pyproject.toml", timeout_s=10).exit_code == 0
        for folder in folders:
            listing = sandbox.run(f"ls -A {folder} && touch {folder}/x", timeout_s=10)
            assert listing.exit_code != 0
            assert b".py" not in listing.output
    finally:
        sandbox.close()


def test_exposed_folder_below_tmp(tree, tmp_path):
    """An environment may live below /tmp, which is hidden by the sandbox's own."""
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv/file").write_text("exposed\n")
    sandbox = open_sandbox("bwrap", SandboxSpec(tree=tree, expose=(str(tmp_path / "venv"),)))
    try:
        assert sandbox.run(f"cat {tmp_path}/venv/file", timeout_s=10).output == b"exposed\n"
        assert sandbox.run(f"touch {tmp_path}/venv/x", timeout_s=10).exit_code != 0
    finally:
        sandbox.close()


def test_two_names_of_one_exposed_folder(tree, tmp_path):
    """A folder and a link to it are two mounts of one source; what comes after them keeps its place."""
    for name in ("a", "z"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    names = ("a", "b", "z")
    sandbox = open_sandbox("bwrap", SandboxSpec(tree=tree, expose=tuple(str(tmp_path / name) for name in names)))
    try:
        files = " ".join(str(tmp_path / name / "file") for name in names)
        assert sandbox.run(f"cat {files}", timeout_s=10).output == b"aaz"
    finally:
        sandbox.close()


def test_processes_of_the_host_are_invisible(sh):
    mine = subprocess.Popen(["sleep", "60"])
    try:
        assert sh(f"kill -0 {mine.pid} || echo none").output.endswith(b"none\n")
        pids = sh("ls /proc | grep -c '^[0-9]'").output
        assert int(pids) < 8
    finally:
        mine.kill()
        mine.wait()


def test_no_privileges(sh, kind):
    status = sh("cat /proc/self/status").output.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1"
    assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == 0
    assert sh("id -u").output == (b"1000\n" if kind == "bwrap" else b"60999\n")


def test_no_nested_user_namespaces(sh):
    assert sh("unshare -Ur true").exit_code != 0
    assert sh("unshare -n true").exit_code != 0
    assert sh("mount -t tmpfs x /tmp").exit_code != 0


def test_minimal_dev(sh):
    names = set(sh("ls /dev").output.decode().split())
    assert {"null", "zero", "urandom", "shm"} <= names
    assert not any(n.startswith(("sd", "vd", "nvme", "mem", "kvm", "fuse", "loop")) for n in names)


def unique_sleep() -> str:
    """A command that no other test runs: other workers have theirs on this machine too."""
    return f"sleep 9{uuid.uuid4().int % 10**9:09}"


def running(marker: str) -> list[int]:
    """Processes of this machine with this command line."""
    listing = subprocess.run(["pgrep", "-fx", marker], capture_output=True, text=True, check=False)
    return [int(pid) for pid in listing.stdout.split()]


def test_run_as_root_drops_to_another_user(sh):
    if os.geteuid() != 0:
        pytest.skip("this test is about running as root")
    marker = unique_sleep()
    worker = threading.Thread(target=lambda: sh(marker, timeout_s=60))
    worker.start()
    found: list[int] = []
    try:
        while not found and worker.is_alive():
            found = running(marker)
        assert found
        assert Path(f"/proc/{found[0]}").stat().st_uid == SANDBOX_UID
    finally:
        for pid in found:
            os.kill(pid, signal.SIGKILL)
        worker.join()


def test_life_2_fork_bomb_stays_inside(tree, limits, kind, system):
    bomber = open_sandbox(kind, SandboxSpec(tree=tree, limits=limits, **system))
    sibling = open_sandbox(kind, SandboxSpec(tree=tree, limits=limits, **system))
    try:
        worker = threading.Thread(target=lambda: bomber.run(":(){ :|:& };:; sleep 9", timeout_s=2))
        worker.start()
        for _ in range(5):
            assert sibling.run("cat pkg/a.py", timeout_s=30).output == b"a = 1\n"
        worker.join()
        assert bomber.run("echo alive", timeout_s=30).output == b"alive\n"
    finally:
        bomber.close()
        sibling.close()


def test_life_2_disk_is_capped(sh, limits):
    result = sh(
        "yes | head -c 30000000 > a; yes > b 2>&1; yes > /dev/shm/c; yes > ~/d; du -sm . ~ /dev/shm", timeout_s=60
    )
    assert not result.timed_out
    used = [int(line.split()[0]) for line in result.output.decode().splitlines() if line[:1].isdigit()]
    assert sum(used) <= limits.disk_mb + 2
    sh("rm -f a b /dev/shm/c ~/d")
    assert sh("echo works > e && cat e").output == b"works\n"


def test_life_2_memory_of_a_process_is_capped(sh):
    result = sh("python3 -c 'x = bytearray(3 << 30)'", timeout_s=60)
    assert result.exit_code != 0
    assert b"MemoryError" in result.output


def test_limits_cannot_be_raised(sh):
    assert sh("ulimit -u unlimited || ulimit -v unlimited || ulimit -f unlimited").exit_code != 0


def test_a_dead_driver_takes_its_sandboxes_along(tree, tmp_path):
    marker = unique_sleep()
    code = f"""
import os, sys, signal, subprocess
from pathlib import Path
from gagar_env.sandbox import SandboxSpec, open_sandbox
box = open_sandbox("bwrap", SandboxSpec(tree=Path({str(tree)!r})))
print(box._holder.call("where"), flush=True)
import threading
worker = threading.Thread(target=lambda: box.run({marker!r}, timeout_s=100))
worker.start()
while worker.is_alive() and subprocess.run(["pgrep", "-fx", {marker!r}], stdout=subprocess.DEVNULL).returncode:
    pass
print("alive" if worker.is_alive() else "ended", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60, check=False, stdout=subprocess.PIPE)
    assert done.stdout.endswith(b"alive\n")
    patience = time.monotonic() + 30
    while left := running(marker):
        assert time.monotonic() < patience, left
        time.sleep(0.1)


def test_works_for_an_ordinary_user(tmp_path):
    """The same sandbox without root: the suite runs as root in many containers, so this drops to a user first."""
    if os.geteuid() != 0:
        pytest.skip("the whole suite runs as an ordinary user already")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv (util-linux) is not installed")
    python = next((p for p in ("/usr/bin/python3",) if os.path.exists(p)), None)
    if python is None:
        pytest.skip("no interpreter that an ordinary user could run")
    home = tmp_path / "home"
    shutil.copytree(
        ROOT / "gagar_env", home / "gagar_env", ignore=shutil.ignore_patterns("tasks", "wrappers", "agents")
    )
    tree = home / "tree"
    tree.mkdir()
    (tree / "f").write_text("1\n")
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder != Path("/") and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    subprocess.run(["chown", "-R", "12345:12345", str(home)], check=True)
    code = """
import sys, types
root = types.ModuleType("gagar_env")  # that user's interpreter has none of the dependencies
root.__path__ = [sys.argv[1] + "/gagar_env"]
sys.modules["gagar_env"] = root
from pathlib import Path
from gagar_env.sandbox import SandboxSpec, open_sandbox
from gagar_env.changes import FileState
box = open_sandbox("bwrap", SandboxSpec(tree=Path(sys.argv[1], "tree")))
box.write({"new": FileState(b"n")})
assert box.run("id -u; cat f new; echo 2 > f; rm -f new; mkdir d; mv f d/", timeout_s=20).output == b"1000\\n1\\nn"
assert dict(box.capture().changes) == {"f": None, "d/f": FileState(b"2\\n")}, box.capture()
box.close()
print("fine")
"""
    done = subprocess.run(
        ["setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", python, "-S", "-c", code, str(home)],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == "fine\n", done.stderr


def test_vec_3_sandboxes_after_a_fork_and_in_many_threads(tree):
    """A forked child makes a launcher of its own; 24 sandboxes in threads do not mix up their output."""
    spec = SandboxSpec(tree=tree)
    outputs: dict[int, bytes] = {}

    def use(number: int) -> None:
        box = open_sandbox("bwrap", spec)
        outputs[number] = box.run(f"sleep 0.1; echo {number} > f; cat f", timeout_s=60).output
        box.close()

    threads = [threading.Thread(target=use, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == {n: f"{n}\n".encode() for n in range(24)}
    code = f"""
import os, sys
from pathlib import Path
from gagar_env.sandbox import SandboxSpec, open_sandbox
box = open_sandbox("bwrap", SandboxSpec(tree=Path({str(tree)!r})))
pid = os.fork()
own = open_sandbox("bwrap", SandboxSpec(tree=Path({str(tree)!r})))
print(own.run("cat pkg/a.py", timeout_s=60).output, flush=True)
own.close()
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
print(box.run("echo parent", timeout_s=60).output)
box.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "b'a = 1\\n'\nb'a = 1\\n'\nb'parent\\n'\n", done.stderr
