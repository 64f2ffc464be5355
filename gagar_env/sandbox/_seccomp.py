"""The system call filter of the `bwrap` and `rootfs` sandboxes: a classic BPF program, assembled here.

It refuses what Docker's default profile refuses to a container without capabilities, and io_uring besides: what loads
code into the kernel, mounts, makes or joins namespaces, reads keys, or sets the machine's clock. Nothing that compiles,
tests, debugs its own children or talks to itself needs any of it.

- A refused call fails with EPERM. `clone3` fails with ENOSYS: its flags lie in memory that a filter cannot read, and C
  libraries fall back to `clone`, whose flags are checked. Calls newer than this list fail with ENOSYS too.
- A program of another architecture (32 bit) is killed; x32 calls fail with ENOSYS.
- Machines other than x86_64 and aarch64 get no filter.
"""

from __future__ import annotations

import errno
import functools
import os
import struct

FILTER_FD = 4
"""Where bubblewrap reads it: the lowest descriptor behind those of the shell."""
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEWEST = 462
"""The last call that was looked at (mseal, Linux 6.10)."""

_DENIED: dict[str, tuple[int, int]] = {  # numbers on x86_64 and aarch64; -1 where there is none
    # file systems
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "sysfs": (139, -1),
    "ustat": (136, -1),
    # namespaces
    "unshare": (272, 97),
    "setns": (308, 268),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    # keys
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # what runs in the kernel, or watches it
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "create_module": (174, -1),
    "query_module": (178, -1),
    "get_kernel_syms": (177, -1),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "syslog": (103, 116),
    "acct": (163, 89),
    # the machine
    "reboot": (169, 142),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "vhangup": (153, 58),
    # memory placement, which shows and moves pages of others
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "get_mempolicy": (239, 236),
    "set_mempolicy_home_node": (450, 450),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # other processes, beyond what ptrace allows
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    # long gone
    "uselib": (134, -1),
    "_sysctl": (156, -1),
    "vserver": (236, -1),
}
_CLONE, _CLONE3, _PERSONALITY, _SOCKET = (56, 220), (435, 435), (135, 92), (41, 198)
_NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
_AF_VSOCK = 40
"""Speaks to the hypervisor: no network namespace holds it."""

_LOAD, _EQUAL, _GREATER, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in `struct seccomp_data`, little endian
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000


def denied(machine: str) -> dict[str, int]:
    """Numbers of the calls that are always refused with EPERM on this kind of machine, by name."""
    column = list(_ARCHITECTURES).index(machine)
    return {name: numbers[column] for name, numbers in _DENIED.items() if numbers[column] >= 0}


@functools.cache
def program(machine: str = os.uname().machine, allowed: frozenset[str] = frozenset()) -> bytes:
    """The filter as `bwrap --seccomp` and the kernel take it; empty where there is none for this machine.

    Args:
        machine: As `uname -m` says it.
        allowed: Calls that are let through nevertheless, by name.
    """
    if machine not in _ARCHITECTURES:
        return b""
    column = list(_ARCHITECTURES).index(machine)
    code: list[tuple[int, int, str, str]] = []  # operation, value, where to go if it holds, and if not
    code += [(_LOAD, _ARCHITECTURE, "", ""), (_EQUAL, _ARCHITECTURES[machine], "", "kill")]
    code += [(_LOAD, _NUMBER, "", ""), (_GREATER, _NEWEST, "missing", "")]
    code += [(_EQUAL, number, "denied", "") for name, number in sorted(denied(machine).items()) if name not in allowed]
    code += [
        (_EQUAL, _CLONE3[column], "missing", ""),
        (_EQUAL, _CLONE[column], "clone", ""),
        (_EQUAL, _PERSONALITY[column], "personality", ""),
        (_EQUAL, _SOCKET[column], "socket", "allow"),
    ]
    labels = {"clone": len(code)}
    code += [(_LOAD, _FIRST_ARGUMENT, "", ""), (_ANY_BIT, _NAMESPACE_FLAGS, "denied", "allow")]
    labels["personality"] = len(code)
    code += [(_LOAD, _FIRST_ARGUMENT, "", "")]
    code += [(_EQUAL, value, "allow", "") for value in _PERSONALITIES[:-1]]
    code += [(_EQUAL, _PERSONALITIES[-1], "allow", "denied")]
    labels["socket"] = len(code)
    code += [(_LOAD, _FIRST_ARGUMENT, "", ""), (_EQUAL, _AF_VSOCK, "denied", "allow")]
    returns = (
        ("allow", _ALLOW),
        ("denied", _ERRNO | errno.EPERM),
        ("missing", _ERRNO | errno.ENOSYS),
        ("kill", _KILL),
    )
    for label, value in returns:
        labels[label] = len(code)
        code.append((_RETURN, value, "", ""))
    out = bytearray()
    for place, (operation, value, yes, no) in enumerate(code):
        jumps = [labels[label] - place - 1 if label else 0 for label in (yes, no)]
        out += struct.pack("=HBBI", operation, *jumps, value)
    return bytes(out)
