"""The system calls that the holder needs and Python does not have. Linux only; standard library only."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import signal
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MNT_DETACH = 0x2
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}

_CLONE3 = 435  # on every machine
_CLONE_INTO_CGROUP = 0x200000000

_libc = ctypes.CDLL(None, use_errno=True)
_libc_held = ctypes.PyDLL(None, use_errno=True)
"""Keeps Python's lock during a call: what forks must not let another thread have it."""


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags` for new ones."""
    _check(_libc.unshare(flags), "unshare")


def own_mounts(more: int = 0) -> None:
    """Enter a mount namespace of our own with the right to mount in it; what is mounted there stays there.

    Args:
        more: Flags of further namespaces to enter.
    """
    if os.geteuid() == 0:
        unshare(CLONE_NEWNS | more)
    else:
        uid, gid = os.geteuid(), os.getegid()
        unshare(CLONE_NEWUSER | CLONE_NEWNS | more)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    mount("none", "/", "", MS_REC | MS_PRIVATE)


_NO_PLACE_FOR_FILES = frozenset(
    {
        *("binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs"),
        *("fusectl", "hugetlbfs", "mqueue", "nsfs", "pstore", "rpc_pipefs", "securityfs", "tracefs"),
    }
)
"""File systems on which no tree, no environment and nothing else of a sandbox can lie."""
_ESCAPED = re.compile(r"\\([0-7]{3})")


def forget_mounts(used: list[str]) -> None:
    """Take away, in our mount namespace, what holds no files that anybody made.

    A program that mounts reads the table of all mounts, once for each of its own: every one in it costs some 40 us.

    Args:
        used: Folders that stay reachable.
    """
    rows = mount_table()
    carriers = {row[1] for row in rows}
    for row in rows:
        number, point, kind = row[0], row[4], row[row.index("-") + 1]
        needed = number in carriers or any(f"{path}/".startswith(f"{point}/") for path in used)
        if kind in _NO_PLACE_FOR_FILES and not needed:
            try:
                _detach_mount(number, point)
            except OSError:  # what a user namespace has from the one above stays
                continue


def mount_table() -> list[list[str]]:
    """The fields of each mount of this process's namespace; names may have any bytes, as those of `os` functions."""
    with open("/proc/self/mountinfo", "rb") as file:
        lines = os.fsdecode(file.read()).split("\n")
    return [
        [_ESCAPED.sub(lambda found: chr(int(found[1], 8)), part) for part in line.split(" ")] for line in lines[:-1]
    ]


def _detach_mount(number: str, point: str) -> None:
    """Take a mount away, unless another one covers it."""
    fd = os.open(point, os.O_PATH | os.O_CLOEXEC)
    try:
        with open(f"/proc/self/fdinfo/{fd}") as file:
            if f"mnt_id:\t{number}\n" in file.read():
                detach(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)


def setns(fd: int, kind: int) -> None:
    """Enter the namespace that is open as `fd`; `kind` is its CLONE_NEW flag."""
    _check(_libc.setns(fd, kind), "setns")


def drop_bounding_set() -> None:
    """No program that this process starts gets capabilities. While it has them itself, for it needs one to do this."""
    for number in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(number), 0, 0, 0) != 0:
            if ctypes.get_errno() != errno.EINVAL:  # EINVAL: this kernel knows no more
                _check(-1, "prctl")
            break


def clear_ambient_capabilities() -> None:
    """No program that this process starts as another user keeps any of its capabilities."""
    if _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 and ctypes.get_errno() != errno.EINVAL:
        _check(-1, "prctl")  # EINVAL: a kernel that has none


def drop_capabilities() -> None:
    """Give up all capabilities of this process."""
    header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _check(_libc.capset(header, sets), "capset")


def confine(filter_text: bytes) -> None:
    """No new privileges from here on, and a system call filter."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    text = ctypes.create_string_buffer(filter_text, len(filter_text))
    fprog = struct.pack("HxxxxxxP", len(filter_text) // 8, ctypes.addressof(text))
    _check(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, fprog, 0, 0), "seccomp")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Attach a file system."""
    done = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(done, f"mount {kind or source} on {target}")


def detach(target: str) -> None:
    """Take away what is mounted there, with all that is mounted below; what is in use goes when its last user does."""
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def leave_keyring() -> None:
    """Get an empty session keyring: the trainer's holds its keys, and all sandboxes could write to it."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:  # where the kernel refuses it, it refuses every use of keyrings
        _libc.syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)


def fork_into(cgroup: int) -> int:
    """Fork a child that is born in the cgroup (of version 2) whose folder is open as `cgroup`.

    To move a process there after its birth takes some 10 ms on an idle machine: the kernel waits for all processors.
    No hooks of Python run, so it is for a process with one thread, and a child that soon becomes another program.
    """
    fields = [0] * 11
    fields[0], fields[4], fields[10] = _CLONE_INTO_CGROUP, signal.SIGCHLD, cgroup
    arguments = (ctypes.c_uint64 * len(fields))(*fields)
    pid = int(_libc_held.syscall(ctypes.c_long(_CLONE3), ctypes.byref(arguments), ctypes.c_size_t(8 * len(fields))))
    if pid < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"clone3: {os.strerror(number)}")
    return pid


def prctl(option: int, value: int) -> None:
    """Set an option of this process that takes one argument."""
    _check(_libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0), "prctl")
