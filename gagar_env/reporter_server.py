"""Waits with pytest imported, and forks for each run: the warm server's part inside of a sandbox.

Copied into a sandbox beside `reporter.py`, for the same Pythons; imports nothing of this package. How a server is
started, and what it may do, is told in `gagar_env.sandbox._aside`.

A request holds the namespaces of a fresh sandbox. The fork enters them and gives up all that it does not need for good:
it is then where a Python that has just imported pytest would be, with the same modules, arguments and variables. Only
in there is the job read; the server never sees one, nor anything that an agent wrote. Three processes take part:

    who waits, outside of the sandbox's processes -> who waits, inside, as a shell would -> the run
"""

import ctypes
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import threading

import reporter_rehearsal  # beside this file

_CONNECTION, _HELLO, _STATUS = 3, 3, 4
_HIGH = 200
_NAMESPACES = (
    ("net", 0x40000000),
    ("ipc", 0x08000000),
    ("uts", 0x04000000),
    ("cgroup", 0x02000000),
    ("pid", 0x20000000),
    ("mnt", 0x00020000),
)
_NEWUSER = 0x10000000
_SET_DUMPABLE, _CAPBSET_DROP, _SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 4, 24, 38, 22, 2
_EINVAL = 22
_KILLED = 128
_FINDERS = ("_frozen_importlib", "_frozen_importlib_external", "importlib", "_distutils_hack")

_libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("text", ctypes.c_void_p))


def why_not():
    """Why this interpreter cannot serve; empty when it can."""
    if not hasattr(gc, "freeze"):
        return "Python %d.%d is too old" % sys.version_info[:2]
    if threading.active_count() != 1:
        return "something starts threads with the interpreter"
    for finder in sys.meta_path:
        kind = finder if isinstance(finder, type) else type(finder)
        if kind.__module__.partition(".")[0] not in _FINDERS:
            return "something changes how modules are found: " + kind.__module__
    return _from_the_tree(os.getcwd())


def _from_the_tree(top):
    """Which file makes the interpreter look into the work tree when it starts; empty when none does.

    The tree that a server starts in is empty, and what is not there is left out of the path.
    """
    for folder in sys.path:
        try:
            names = [name for name in os.listdir(folder) if name.endswith((".pth", ".egg-link"))]
        except OSError:
            continue
        for name in names:
            with open(os.path.join(folder, name), "rb") as stream:
                lines = os.fsdecode(stream.read()).splitlines()
            for line in lines:
                if top in line or (os.path.realpath(os.path.join(folder, line.strip())) + os.sep).startswith(
                    top + os.sep
                ):
                    return "the environment imports from the work tree: " + name
    if any((os.path.realpath(folder) + os.sep).startswith(top + os.sep) for folder in sys.path):
        return "the path of modules holds the work tree"
    return ""


def serve(pytest, known):
    """Answer requests. Returns in a process of its own for each, which is the run and nothing else.

    `known` are the modules that were imported before this one.
    """
    if pytest is None:
        sys.exit("the environment has no pytest")
    before = set(sys.modules) - known
    for name in getattr(sys.modules["_pytest.config"], "default_plugins", ()):
        importlib.import_module("_pytest." + name)  # as pytest does first, before it looks at the work tree
    _answer(reporter_rehearsal.rehearse(pytest))
    for name in before:  # the work tree may hold modules of these names, in a folder that it puts on the path later
        del sys.modules[name]


def _answer(reason):
    """Say whether this can serve, and do it. `reason` is why not, if it is known already."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, _CONNECTION)
    reason = reason or why_not()
    connection.send(b"no " + reason.encode() if reason else b"ready")
    gc.collect()
    gc.freeze()  # what a collection would look at, it would copy
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a fork ended: none stays as a zombie
    room = socket.CMSG_SPACE(64 * 4)
    while True:
        data, control, _, _ = connection.recvmsg(1 << 16, room)
        if not data:
            os._exit(0)
        fds = []
        for _, _, part in control:
            fds += [int.from_bytes(part[n : n + 4], sys.byteorder) for n in range(0, len(part) // 4 * 4, 4)]
        if os.fork() == 0:
            try:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                connection.detach()
                if _is_the_run(json.loads(data.decode("ascii")), fds):
                    return
            except BaseException as error:
                _hello("no " + type(error).__name__ + ": " + str(error))
            os._exit(70)
        for fd in fds:
            os.close(fd)


def _is_the_run(request, fds):
    """Enter the sandbox and fork twice. True in the run, once it may begin; the others end here."""
    given = dict(zip(request["fds"], fds))
    for number, name in enumerate(("commands", "output", "output", "hello", "status")):
        os.dup2(given[name], _HIGH + number)
    hello = _HIGH + _HELLO
    os.dup2(hello, _CONNECTION)  # from here on an error can be told
    os.setsid()
    _enter(given)
    _confine(request)
    os.chdir(request["cwd"])
    for number in range(5):
        os.dup2(_HIGH + number, number)
    os.closerange(5, 1024)
    child = os.fork()
    if child:
        os.closerange(0, _STATUS)
        how = os.waitpid(child, 0)[1]
        if os.WIFEXITED(how):
            os.write(_STATUS, b"%d\n" % os.WEXITSTATUS(how))
        os._exit(0)
    os.close(_STATUS)
    os.setsid()
    inherited = [(number, signal.signal(number, signal.SIG_IGN)) for number in (signal.SIGINT, signal.SIGQUIT)]
    child = os.fork()
    if child:
        os.closerange(0, _STATUS)
        how = os.waitpid(child, 0)[1]
        os._exit(os.WEXITSTATUS(how) if os.WIFEXITED(how) else _KILLED + os.WTERMSIG(how))
    for number, handler in inherited:
        signal.signal(number, handler)
    reason = _in_the_way()
    _hello("no " + reason if reason else "ready")
    if reason or not _told_to_begin():  # which is after it has been looked at
        os._exit(70)
    os.close(_HELLO)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return True


def _hello(text):
    try:
        os.write(_HELLO, text.encode("utf-8", "replace")[:1000])
    except OSError:
        pass


def _told_to_begin():
    """Wait for the command, which is of three parts and says nothing else."""
    parts = 0
    while parts < 3:
        data = os.read(0, 4096)
        if not data:
            return False
        parts += data.count(b"\0")
    return True


def _in_the_way():
    """What of the work tree has the name of something that is imported already; empty when nothing has."""
    with open(sys.argv[1], "rb") as stream:
        job = json.loads(stream.read().decode("ascii"))
    names = set(job["own"])
    for folder in [os.getcwd()] + job["pythonpath"]:
        names.update(_importable(folder))
    both = sorted(names.intersection(name.partition(".")[0] for name in sys.modules))
    return "the work tree holds " + both[0] + ", which is imported already" if both else ""


def _importable(folder):
    """Names of what can be imported from a folder."""
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if os.path.isdir(os.path.join(folder, name)):
            yield name
        elif name.endswith((".py", ".pyc", ".so")):
            yield name.partition(".")[0]


def _call(name, *arguments):
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, name + ": " + os.strerror(number))


def _prctl(option, value):
    _call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def _enter(given):
    for name in given:
        if name.startswith("door"):
            os.write(given[name], b"0")
    _call("setns", given["owner"], _NEWUSER)
    for name, kind in _NAMESPACES:
        _call("setns", given[name], kind)
    one, other = os.fstat(given["owner"]), os.fstat(given["user"])
    if (one.st_dev, one.st_ino) != (other.st_dev, other.st_ino):
        _call("setns", given["user"], _NEWUSER)


def _confine(request):
    known = 0
    while known < 64 and _libc.prctl(_CAPBSET_DROP, *map(ctypes.c_ulong, (known, 0, 0, 0))) == 0:
        known += 1
    if ctypes.get_errno() != _EINVAL:  # EINVAL: this kernel knows no more
        raise OSError("the capabilities do not go")
    _call("capset", (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())
    _prctl(_SET_NO_NEW_PRIVS, 1)
    _prctl(_SET_DUMPABLE, 1)  # as after the start of a program; with capabilities it was not
    for name, value in request["limits"].items():
        kind = getattr(resource, name)
        most = resource.getrlimit(kind)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (value, value))
    text = bytes.fromhex(request["filter"])
    held = ctypes.create_string_buffer(text, len(text))
    program = _Filter(len(text) // 8, ctypes.addressof(held))
    none = ctypes.c_ulong(0)
    _call("prctl", _SET_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(program), none, none)
