"""A fork of a warm server gives what a fresh start gives, whatever the work is."""

import textwrap

import pytest

from gagar_env.episode import Outcome
from gagar_env.sandbox import choose_kind
from gagar_env.tasks import load_task
from gagar_env.tasks.builtin import FOLDER
from gagar_env.verify import Verifier
from gagar_env.warm import Cold, servers

BUILTIN = sorted(path.parent.name for path in FOLDER.glob("*/task.toml"))
FIRST = """
def answer():
    return 42
"""


def answer(text, **files):
    """Work with this body of `answer`, and more files: `lib__deep` is lib/deep.py."""
    named = {f"{name.replace('__', '/')}.py": content for name, content in files.items()}
    return {"calc.py": f"import os, sys, time\n\n\ndef answer():\n{textwrap.indent(text, '    ')}\n", **named}


def early(text, **files):
    """Work that does something when it is imported, and is right otherwise."""
    named = {f"{name.replace('__', '/')}.py": content for name, content in files.items()}
    return {"calc.py": f"import os, sys, time\n{text}\n{FIRST}", **named}


LATER = "import sys\nsys.path.insert(0, 'lib')\nimport {name}\n\n\ndef answer():\n    return {name}.X\n"
CASES = {
    # what work is like
    "right": answer("return 42"),
    "wrong": answer("return 41"),
    "nothing": {},
    "no syntax": {"calc.py": "def answer(:\n"},
    "no module": early("import nowhere"),
    "raises": answer("raise ValueError('no')"),
    "deep": answer("return answer()"),
    "warns": answer("import warnings\nwarnings.warn('old', DeprecationWarning)\nreturn 42"),
    "prints": answer("print('out'); print('err', file=sys.stderr)\nos.write(1, b'raw')\nreturn 41"),
    "tests of its own": {**answer("return 42"), "tests/test_mine.py": "def test_no():\n    assert 0\n"},
    "conftest": {**answer("return 41"), "conftest.py": "collect_ignore_glob = ['*']\n"},
    "configured": {**answer("return 41"), "pytest.ini": "[pytest]\naddopts = --collect-only\n"},
    # the end of the process
    "exit 0": early("sys.exit(0)"),
    "exit in a test": answer("sys.exit(0)"),
    "_exit 0": early("os._exit(0)"),
    "_exit 1 in a test": answer("os._exit(1)"),
    "signal 9": answer("os.kill(os.getpid(), 9)"),
    "signal 11": answer("os.kill(os.getpid(), 11)"),
    "signal 15": answer("os.kill(os.getpid(), 15)"),
    "abort": answer("os.abort()"),
    "kills its parent": answer("os.kill(os.getppid(), 9)\ntime.sleep(0.1)\nreturn 42"),
    "kills all": answer("os.kill(-1, 9)\ntime.sleep(0.1)\nreturn 42"),
    "kills its group": answer("os.killpg(0, 15)\ntime.sleep(1)\nreturn 42"),
    "interrupts its parent": answer("os.kill(os.getppid(), 2)\nreturn 42"),
    "interrupts itself": answer("os.kill(os.getpid(), 2)\ntime.sleep(1)\nreturn 42"),
    "exit hook": early("import atexit\natexit.register(lambda: os._exit(0))"),
    "fork that comes back": answer("if os.fork():\n    os.wait()\nreturn 42"),
    "fork that raises": answer("if os.fork() == 0:\n    raise SystemExit(0)\nos.wait()\nreturn 42"),
    "thread that stays": early("import threading\nthreading.Thread(target=time.sleep, args=(600,)).start()"),
    # other processes
    "child that stays": answer("import subprocess\nsubprocess.Popen(['sleep', '600'])\nreturn 42"),
    "spawned": {
        **answer("import worker\nreturn worker.run('spawn')"),
        "worker.py": "import multiprocessing as m\ndef f(x):\n    return x + 1\ndef run(how):\n"
        "    with m.get_context(how).Pool(1) as p:\n        return p.map(f, [41])[0]\n",
    },
    "another Python": answer(
        "import subprocess\n"
        'text = \'import sys, os; print(os.environ["PYTHONHASHSEED"], hash("a"), sys.path[1:])\'\n'
        "return subprocess.run([sys.executable, '-c', text], capture_output=True).stdout"
    ),
    # what is imported already
    "code.py": {**answer("import code\nreturn code.X"), "code.py": "X = 42\n"},
    "what failed last": early("assert not [n for n in ('last_type', 'last_value', 'last_exc') if hasattr(sys, n)]"),
    "pytest.py": {**answer("return 41"), "pytest.py": "def main(*a, **k):\n    return 0\n"},  # not taken
    "later code.py": {"calc.py": LATER.format(name="code"), "lib/code.py": "X = 42\n"},
    "later pdb.py": {"calc.py": LATER.format(name="pdb"), "lib/pdb.py": "X = 42\n"},
    "later resource.py": {"calc.py": LATER.format(name="resource"), "lib/resource.py": "X = 42\n"},
    "later ctypes.py": {"calc.py": LATER.format(name="ctypes"), "lib/ctypes.py": "X = 42\n"},
    "later _ctypes.py": {"calc.py": LATER.format(name="_ctypes"), "lib/_ctypes.py": "X = 42\n"},
    "later reporter_server.py": {
        "calc.py": LATER.format(name="reporter_server"),
        "lib/reporter_server.py": "X = 42\n",
    },
    "later difflib.py": {"calc.py": LATER.format(name="difflib"), "lib/difflib.py": "X = 42\n"},
    "later wave.py": {"calc.py": LATER.format(name="wave"), "lib/wave.py": "X = 42\n"},
    "C modules": answer(
        "import ctypes, resource, decimal, sqlite3\nf = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x)\n"
        "return ctypes.CDLL(None).getpid() == os.getpid(), f(7), type(resource.getrusage(0)).__name__"
    ),
    # what it finds
    "modules": {"calc.py": "import sys\nMODULES = sorted(sys.modules)\n\n\ndef answer():\n    return MODULES\n"},
    "arguments": answer("return sys.argv[1:3], sys.flags, sys.path, open('/proc/self/cmdline').read()"),
    "variables": answer("return sorted(os.environ.items())"),
    "order of a set": answer("return [*{'a', 'b', 'c', 'd', 'e', 'f', 'g'}], hash('seed')"),
    "who": answer("return os.getuid(), os.getgid(), os.getgroups(), os.getcwd(), os.umask(0), os.uname().nodename"),
    "confined": answer(
        "names = ('Cap', 'NoNew', 'Seccomp:', 'Uid', 'Gid', 'Groups', 'SigPnd', 'ShdPnd', 'SigBlk', 'SigCgt')\n"
        "return [line.split() for line in open('/proc/self/status') if line.startswith(names)]"
    ),
    # 32 and 33 are the C library's own, which no program can ask for: whom it spawns ignores them
    "ignored signals": answer(
        "(ignored,) = (line.split()[1] for line in open('/proc/self/status') if line.startswith('SigIgn'))\n"
        "return [n for n in range(1, 65) if int(ignored, 16) >> (n - 1) & 1 and n not in (32, 33)]"
    ),
    "limits": answer(
        "import resource as r\nkinds = r.RLIMIT_CORE, r.RLIMIT_FSIZE, r.RLIMIT_AS, r.RLIMIT_CPU, r.RLIMIT_NOFILE\n"
        "return list(map(r.getrlimit, kinds))"
    ),
    "open files": answer("return sorted(os.listdir('/proc/self/fd'))"),
    "mounts": answer("return [line.split()[4:6] for line in open('/proc/self/mountinfo')]"),
    "root folder": answer("return sorted(os.listdir('/')), sorted(os.listdir('/scratch')), os.listdir('/tmp')"),
    "devices": answer("return sorted(os.listdir('/dev')), [os.isatty(n) for n in range(3)], sys.__stdin__.seekable()"),
    "network": answer("import socket\nreturn socket.if_nameindex()"),
    "depth": answer("import inspect\nreturn len(inspect.stack()), sys.getrecursionlimit()"),
    "threads": answer("import threading\nreturn [t.name for t in threading.enumerate()], sys.gettrace()"),
    "main": answer("import __main__\nreturn __main__.__file__, sorted(vars(__main__))"),
    "import hooks": answer("return list(map(str, sys.meta_path)), sorted(sys.path_importer_cache)"),
    # what it may not do
    "no root": answer("try:\n    os.setuid(0)\nexcept OSError as e:\n    return str(e)"),
    "no write": answer("try:\n    open(sys.executable, 'r+b')\nexcept OSError as e:\n    return str(e)"),
    "no namespaces": answer(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "fd = os.open('/proc/1/ns/mnt', os.O_RDONLY) if os.access('/proc/1/ns/mnt', os.R_OK) else 99\n"
        "calls = (libc.unshare(0x10000000), libc.setns(fd, 0), libc.mount(b'a', b'/tmp', b'tmpfs', 0, None))\n"
        "return calls, ctypes.get_errno()"
    ),
    "no other file": answer("return os.path.exists('/root/.cache'), os.path.exists('/proc/2/root/etc')"),
    "memory": answer("return len(bytearray(6 << 30))"),
    "large file": answer("f = open('/tmp/x', 'wb')\nf.truncate(300 << 20)"),
}
HANGS = {
    "sleeps": answer("print('so far', flush=True)\ntime.sleep(600)"),
    "holds its parent": answer("os.kill(os.getppid(), 19)\nreturn 42"),
    "ignores signals": early("import signal\nsignal.pthread_sigmask(0, range(1, 65))\ntime.sleep(600)"),
}
DECLINED = {
    "resource.py": {**answer("import resource\nreturn resource.X"), "resource.py": "X = 42\n"},
    "a folder": {**answer("import logging\nreturn logging.X"), "logging/__init__.py": "X = 42\n"},
    "difflib.py": {**answer("import difflib\nreturn difflib.X"), "difflib.py": "X = 42\n"},
}
DAEMON = (
    "if os.fork() == 0:\n    os.setsid()\n    while True:\n"
    "        open('/scratch/report', 'w').write('{}')\n        time.sleep(0.001)"
)
EVERY_DAY = ("right", "wrong", "_exit 0", "modules")


def params(cases):
    return [
        pytest.param(case, id=name.replace(" ", "_"), marks=() if name in EVERY_DAY else pytest.mark.slow)
        for name, case in cases.items()
    ]


@pytest.mark.parametrize("files", params(CASES))
def test_the_report_is_the_same(pair, files):
    pair.same(files)


@pytest.mark.slow
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_a_daemon_that_writes_gains_nothing(pair, right):
    """Whether it hits the report between the end of the tests and its own is chance, warm and cold."""
    files = early(DAEMON)
    if not right:
        files = {path: text.replace("42", "41") for path, text in files.items()}
    for report in pair.both(files):
        if not report.passed:
            assert report.outcome is Outcome.FAILED
            assert "report" in report.reason or not right
        else:
            assert right


@pytest.mark.parametrize("files", params(HANGS))
def test_what_hangs_hangs(pair, files):
    report = pair.same(files, task=pair.with_tests(timeout_s=5))
    assert report.timed_out
    assert not report.passed


@pytest.mark.parametrize("files", params(DECLINED))
def test_what_takes_the_name_of_something_imported_already_starts_afresh(pair, files):
    before = servers.counts[Cold.DECLINED.value]
    pair.same(files, forked=False)
    assert servers.counts[Cold.DECLINED.value] == before + 1


IN_AN_IMAGE = (
    "right",
    "_exit 0",
    "kills all",
    "modules",
    "variables",
    "who",
    "confined",
    "ignored signals",
    "limits",
    "mounts",
    "no root",
)


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize("name", IN_AN_IMAGE)
def test_the_report_is_the_same_in_an_image(image_pair, name):
    image_pair.same(CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_tasks_get_the_same_report(name):
    """The solution, and nothing at all."""
    if choose_kind("auto") != "bwrap":
        pytest.skip("only bwrap and rootfs have warm servers")
    task = load_task(name)
    for patch in (task.solution_patch, b""):
        warm, cold = (Verifier(sandbox="bwrap", warm=warm).verify(task, patch) for warm in (True, False))
        assert warm.passed == bool(patch)
        statuses = [{i: record.status for i, record in report.tests.items()} for report in (warm, cold)]
        assert statuses[0] == statuses[1]
        assert (warm.outcome, warm.unmet, warm.exit_code, warm.flags, warm.ignored) == (
            *(cold.outcome, cold.unmet, cold.exit_code, cold.flags, cold.ignored),
        )
