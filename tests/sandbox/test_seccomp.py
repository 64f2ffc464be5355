"""The system call filter: what it refuses, and that honest programs do not notice it."""

import errno
import os
import shutil
import struct

import pytest

from gagar_env.sandbox import SandboxSpec, open_sandbox, why_unavailable
from gagar_env.sandbox._seccomp import denied, program

pytestmark = pytest.mark.slow

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS = 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS


@pytest.fixture(params=["bwrap", pytest.param("rootfs", marks=pytest.mark.docker)])
def kind(request):
    if reason := why_unavailable(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return request.param


def verdict(code, arch, number, argument=0):
    """What the kernel would answer: the few instructions that the filter has."""
    data = struct.pack("<iIQ6Q", number - (1 << 32) if number >> 31 else number, arch, 0, argument, 0, 0, 0, 0, 0)
    place, value = 0, 0
    while True:
        operation, yes, no, given = struct.unpack_from("=HBBI", code, 8 * place)
        place += 1
        if operation == 0x20:
            value = struct.unpack_from("<I", data, given)[0]
        elif operation == 0x06:
            return given
        else:
            holds = {0x15: value == given, 0x25: value > given, 0x45: bool(value & given)}[operation]
            place += yes if holds else no


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_the_filter_of_each_machine(machine):
    code, arch = program(machine), ARCHITECTURES[machine]
    other = next(value for name, value in ARCHITECTURES.items() if name != machine)
    assert len(code) % 8 == 0
    assert len(code) // 8 < 256
    for number in range(1024):
        assert verdict(code, other, number) == KILL
    clone, personality, socket = {"x86_64": (56, 135, 41), "aarch64": (220, 92, 198)}[machine]
    refused = set(denied(machine).values())
    allowed = set(range(463)) - refused - {435}
    for number in refused:
        assert verdict(code, arch, number) == EPERM
    for number in allowed:
        assert verdict(code, arch, number) == ALLOW, number
    for number in (435, 463, 600, 0x40000000, 0x40000000 + 59, 0xFFFFFFFF):
        assert verdict(code, arch, number) == ENOSYS
    assert verdict(code, arch, clone, 0x11) == ALLOW
    assert verdict(code, arch, clone, 0x3D0F00) == ALLOW, "threads"
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(code, arch, clone, flag | 0x11) == EPERM
    assert [verdict(code, arch, personality, n) for n in (0, 8, 0x20000, 0xFFFFFFFF, 0x40000, 0x400000)] == [
        *(ALLOW,) * 4,
        *(EPERM,) * 2,
    ]
    assert [verdict(code, arch, socket, n) for n in (1, 2, 10, 16, 40)] == [*(ALLOW,) * 4, EPERM]


@pytest.mark.parametrize(
    ("machine", "name", "number"),
    [
        ("x86_64", "mount", 165),
        ("aarch64", "mount", 40),
        ("x86_64", "bpf", 321),
        ("aarch64", "bpf", 280),
        ("aarch64", "unshare", 97),
        ("aarch64", "keyctl", 219),
        ("aarch64", "open_by_handle_at", 265),
        ("aarch64", "perf_event_open", 241),
        ("x86_64", "io_uring_setup", 425),
    ],
)
def test_numbers(machine, name, number):
    assert denied(machine)[name] == number


def test_no_filter_for_other_machines():
    assert program("riscv64") == b""


def test_it_is_on(sh):
    fields = dict(line.split(":\t", 1) for line in sh("cat /proc/self/status").output.decode().splitlines())
    assert fields["Seccomp"] == ("2" if program() else "0")


needs_filter = pytest.mark.skipif(not program(), reason="no filter for this machine")


@needs_filter
def test_refused_calls_of_a_real_program(box, sh):
    numbers = denied(os.uname().machine)
    script = f"""
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    return errno.errorcode.get(ctypes.get_errno(), "none") if result == -1 else "worked"
for name, number in {numbers!r}.items():
    print(name, call(number, -1, -1, -1, -1, -1, -1))
print("clone3", call(435, 0, 0))
print("newest", call(700))
print("personality", call({135 if os.uname().machine == "x86_64" else 92}, 0x0040000))
"""
    box.write_scratch("calls.py", script.encode())
    answers = dict(line.split() for line in sh(f"python3 {box.scratch}/calls.py").output.decode().splitlines())
    assert answers.pop("clone3") == "ENOSYS"
    assert answers.pop("newest") == "ENOSYS"
    assert answers.pop("personality") == "EPERM"
    assert set(answers) == set(numbers)
    assert set(answers.values()) == {"EPERM"}


@needs_filter
@pytest.mark.parametrize(
    "command",
    [
        "unshare -U true",
        "unshare -n true",
        "unshare -m true",
        "mount -t tmpfs x /tmp",
        "mount --bind /tmp /mnt",
        "dmesg",
        "setarch -R true",
        "chroot / true",
        "hostname other",
        "date -s 2001-01-01",
        "python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)'",
    ],
)
def test_refused_programs(sh, command):
    assert sh(command).exit_code != 0


HONEST = {
    "threads": """
import threading
done = []
threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert sorted(done) == list(range(8))
""",
    "multiprocessing": """
import multiprocessing, os
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(abs, [-1, -2, -3]) == [1, 2, 3]
    queue = multiprocessing.Queue()
    child = multiprocessing.Process(target=queue.put, args=(7,))
    child.start(); assert queue.get() == 7; child.join()
""",
    "shared memory": """
from multiprocessing import shared_memory
block = shared_memory.SharedMemory(create=True, size=4096)
block.buf[:2] = b"ok"
block.close(); block.unlink()
""",
    "asyncio": """
import asyncio
async def main():
    server = await asyncio.start_server(lambda r, w: (w.write(b"hi"), w.close()), "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    assert await reader.read() == b"hi"
    writer.close(); server.close()
    child = await asyncio.create_subprocess_exec("echo", "x", stdout=-1)
    assert (await child.communicate())[0] == b"x\\n"
asyncio.run(main())
""",
    "sqlite": """
import sqlite3
base = sqlite3.connect("/tmp/base.db")
base.execute("pragma journal_mode=wal"); base.execute("create table t (a)"); base.execute("insert into t values (1)")
base.commit(); assert base.execute("select * from t").fetchall() == [(1,)]; base.close()
""",
    "ptrace of an own child": """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
pid = os.fork()
if pid == 0:
    assert libc.ptrace(0, 0, 0, 0) == 0
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(5)
assert os.WIFSTOPPED(os.waitpid(pid, 0)[1])
assert libc.ptrace(7, pid, 0, 0) == 0
assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 5
""",
    "files": """
import os, shutil, tempfile, mmap, fcntl
with tempfile.TemporaryDirectory() as folder:
    with open(folder + "/a", "wb+") as file:
        file.write(bytes(8192)); file.flush(); fcntl.flock(file, fcntl.LOCK_EX)
        mmap.mmap(file.fileno(), 8192).close()
    shutil.copy(folder + "/a", folder + "/b"); os.link(folder + "/a", folder + "/c"); os.chmod(folder + "/b", 0o600)
    os.utime(folder + "/b"); os.rename(folder + "/b", folder + "/d")
    with open(os.memfd_create("x"), "wb") as file: file.write(b"x")
os.sched_setaffinity(0, os.sched_getaffinity(0)); os.nice(1)
""",
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_programs(box, sh, name):
    box.write_scratch("honest.py", HONEST[name].encode())
    result = sh(f"python3 {box.scratch}/honest.py", timeout_s=60)
    assert (result.exit_code, result.output) == (0, b"")


def test_honest_git(sh):
    result = sh(
        "git init -q . && git add -A && git commit -qm x && git gc -q && git log --oneline | wc -l", timeout_s=60
    )
    assert (result.exit_code, result.output.strip()) == (0, b"1")


def test_honest_compiler(tree, limits):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    box = open_sandbox("bwrap", SandboxSpec(tree=tree, limits=limits))
    try:
        source = '#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }'
        result = box.run(f"echo '{source}' > a.c && gcc -O2 -o a a.c && ./a", timeout_s=60)
        assert (result.exit_code, result.output) == (0, b"compiled\n")
        assert box.run("echo 'int main(){return 0;}' > b.c; gcc -m32 -o b b.c && ./b", timeout_s=60).exit_code != 0
    finally:
        box.close()


@needs_filter
def test_another_architecture_is_refused(sh, box):
    """A 64 bit program can enter the kernel by the 32 bit gate, where all numbers mean something else."""
    if os.uname().machine != "x86_64":
        pytest.skip("this gate is of x86_64")
    script = """
import ctypes, mmap
code = bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3])  # mov eax, getpid; int 0x80; ret
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
"""
    box.write_scratch("gate.py", script.encode())
    result = sh(f"python3 {box.scratch}/gate.py")
    assert result.exit_code == 128 + 31
    assert sh("echo fine").output == b"fine\n"
