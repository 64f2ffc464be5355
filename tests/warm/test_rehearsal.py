"""What a server runs before it serves: pytest, once, on two tests of its own. Nothing of it may be seen afterwards."""

import json
import os
import subprocess
import sys
from pathlib import Path

import gagar_env

PACKAGE = Path(gagar_env.__file__).parent
SCRIPT = """
import gc, json, logging, os, signal, sys, threading, warnings
sys.path.insert(0, {package!r})
import faulthandler, tempfile
import reporter_rehearsal, pytest
{change}
def state():
    return {{
        "path": list(sys.path), "meta_path": list(map(repr, sys.meta_path)), "environ": dict(os.environ),
        "argv": list(sys.argv), "caches": sorted(sys.path_importer_cache), "files": sorted(os.listdir("/proc/self/fd")),
        "links": [os.readlink("/proc/self/fd/%d" % n) for n in (0, 1, 2)], "cwd": os.getcwd(),
        "signals": [repr(signal.getsignal(n)) for n in signal.valid_signals()],
        "filters": list(map(repr, warnings.filters)),
        "handlers": repr(logging.getLogger().handlers), "threads": threading.active_count(), "gc": gc.isenabled(),
        "streams": [repr(s) for s in (sys.stdin, sys.stdout, sys.stderr)],
        "hooks": [repr(h) for h in (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook)],
        "faults": faulthandler.is_enabled(), "tempdir": tempfile.tempdir, "log": len(logging._handlerList),
        "raise": logging.raiseExceptions, "kinds": [sorted(vars(k)) for k in (pytest.Function, pytest.Module)],
        "last": [hasattr(sys, name) for name in ("last_type", "last_value", "last_traceback", "last_exc")],
        "trace": [sys.gettrace(), sys.getprofile()],
    }}
tops = lambda: {{name.partition(".")[0] for name in sys.modules}}
before, known = state(), tops()
reason = reporter_rehearsal.rehearse(pytest)
gc.collect()  # as a server does then
after = state()
print(json.dumps([reason, before, after, sorted(tops() - known)]))
"""


def rehearse(tmp_path, change="", **env):
    """Reason, state before, state after, top-level modules that it left."""
    script = tmp_path / "scratch" / "reporter.py"
    script.parent.mkdir()
    script.write_text(SCRIPT.format(package=str(PACKAGE), change=change))
    done = subprocess.run(
        [sys.executable, "-s", "-B", str(script)],
        cwd=tmp_path,
        env={"PATH": os.defpath, **env},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stderr == ""
    return json.loads(done.stdout)  # which is all that was printed


def test_it_leaves_what_it_found(tmp_path):
    hidden = {"PYTEST_ADDOPTS": "--no-such-option", "PYTEST_PLUGINS": "no_such_plugin"}
    reason, before, after, modules = rehearse(tmp_path, **hidden)
    assert reason == ""
    assert after == before
    assert hidden.items() <= before["environ"].items()
    assert modules == []  # the work tree may hold one of that name
    assert not list(tmp_path.rglob("__pycache__"))
    assert not list(tmp_path.rglob(".pytest_cache"))


def test_a_pytest_that_does_not_do_as_expected_is_not_served(tmp_path):
    reason, before, after, _ = rehearse(tmp_path, "pytest.main = lambda *a, **k: 3")
    assert reason == "pytest ends its rehearsal with 3"
    assert after == before


def test_a_pytest_that_breaks_is_not_served(tmp_path):
    reason, before, after, _ = rehearse(tmp_path, "def main(*a): raise SystemExit('not today')\npytest.main = main")
    assert reason == "pytest cannot be rehearsed: SystemExit: not today"
    assert after == before
