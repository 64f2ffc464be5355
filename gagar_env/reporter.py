"""Runs pytest on a work tree and writes down, signed, what became of every test.

This file is copied into a sandbox and run there by the task's own Python (3.6 and newer) with the
task's own pytest (3.10 and newer): it imports nothing of this package.

    PYTHON -s -B reporter.py job.json

A job that says `serve` makes it a warm server: see `reporter_server.py`, beside this file then.

- The job holds the key of the signature. It is deleted before anything of the repository is imported.
- What this file needs, pytest included, is imported before the work tree can be, so that a `json.py` or
  `pytest.py` in the repository takes nobody's place. Only where pytest itself, or something that it is
  made of, is what the repository holds does the work tree come first.
- Beside the tests of each file it runs a sentinel that must fail: what turns failures into passes turns
  this one too.
- A test has passed when its call passed and nothing else of it failed. Attempts that a rerun plugin of
  the task calls `rerun` do not count; otherwise the worst of several results does.
- What happens to the runner itself meanwhile is noted too, by `runner_watch.py` beside this file.
- The process ends at once after the report: exit hooks of the repository have no say.

The report is a line with the HMAC-SHA256 of the rest, then JSON. Code under test runs in this process, so
a patch that is written against this very file can forge it; nothing run in one process can prevent that.
"""

import sys

if __name__ == "__main__":
    import runner_sentinel  # both beside this file
    import runner_watch

    del sys.path[0], sys.modules["runner_sentinel"], sys.modules["runner_watch"]

import hashlib
import importlib.util
import json
import os
from builtins import dict, float, getattr, hasattr, int, isinstance, len, list, set, sorted, str, tuple, type

# names above: what replaces a builtin while tests run does not replace it here

UNUSABLE = 86
"""Exit code when pytest cannot be run at all."""
_SEVERITY = ("passed", "xpassed", "skipped", "xfailed", "error", "failed")
_MESSAGE_CHARS = 2000


def _text(value):
    """Text that any JSON reader takes: no lone surrogates."""
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def _node_id(node_id):
    """As every pytest prints it: old ones keep a `()` for the instance of a class."""
    return _text(node_id).replace("::()::", "::")


def _message(report):
    longrepr = getattr(report, "longrepr", None)
    if isinstance(longrepr, tuple) and len(longrepr) == 3:
        longrepr = longrepr[2]
    crash = getattr(longrepr, "reprcrash", None)
    try:
        text = _text(getattr(crash, "message", None) or longrepr or "")
    except Exception as error:
        text = "no message: " + type(error).__name__
    return text.strip()[:_MESSAGE_CHARS]


def _status(report):
    """What one phase of a test says about it; None when it says nothing."""
    if report.outcome not in ("passed", "failed", "skipped"):
        return None
    if report.outcome == "failed":
        return "failed" if report.when == "call" else "error"
    if hasattr(report, "wasxfail"):
        if report.outcome == "skipped":
            return "xfailed"
        return "xpassed" if report.when == "call" else None
    if report.outcome == "skipped":
        return "skipped"
    return "passed" if report.when == "call" else None


def _json(value, quote=json.encoder.encode_basestring_ascii):
    """What `json.dumps` gives, without parts that tests may have replaced."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        return "{" + ", ".join([_json(key) + ": " + _json(value[key]) for key in value]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([_json(item) for item in value]) + "]"
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    return float.__repr__(value) if isinstance(value, float) else int.__repr__(value)


def make_plugin(pytest, name, watch):
    """The plugin that records. `name` is that of the sentinels; nobody can know it beforehand."""

    class Sentinel(pytest.Item):
        def runtest(self):
            runner_sentinel.must_fail()

        def repr_failure(self, excinfo, *args, **kwargs):
            return str(excinfo.value)

        def reportinfo(self):
            return "sentinel", 0, self.name

    def new(kind, parent, **more):
        if hasattr(kind, "from_parent"):
            return kind.from_parent(parent, name=name, **more)
        return kind(name, parent, **more)

    class Recorder(object):
        def __init__(self):
            self.started = False
            self.tests = {}
            self.sentinels = {}
            self.items = []
            self.errors = []
            self.collected = []
            self.failed, self.last = 0, None
            self.config_file = ""

        @pytest.hookimpl(tryfirst=True)
        def pytest_sessionstart(self, session):
            self.started = True
            config = session.config
            path = config.inipath if hasattr(config, "inipath") else config.inifile
            self.config_file = _text(path or "")

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(self, session, items):
            yield
            last = {}
            bare = False
            for position, item in enumerate(items):
                module = item.getparent(pytest.Module) if isinstance(item, pytest.Function) else None
                if module is None:
                    bare = True
                else:
                    last[module] = position
            for module, position in sorted(last.items(), key=lambda pair: -pair[1]):
                sentinel = new(pytest.Function, module, callobj=runner_sentinel.must_fail)
                del sentinel.fixturenames[:]  # the repository's fixtures may not suit it
                items.insert(position + 1, sentinel)
                self._expect(sentinel, module.nodeid)
            if bare:
                sentinel = new(Sentinel, session)
                items.append(sentinel)
                self._expect(sentinel, "")

        def _expect(self, sentinel, place):
            self.sentinels[sentinel.nodeid] = {"file": _text(place)}

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection_finish(self, session):
            ids = [item.nodeid for item in session.items]
            self.collected = [_node_id(i) for i in ids if i not in self.sentinels]
            watch.look_at_items([i for i in session.items if i.nodeid not in self.sentinels])

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(self, item, call):
            watch.made(item, call)
            yield
            watch.made(item, call)

        def pytest_collectreport(self, report):
            if report.failed:
                self.errors.append([_node_id(report.nodeid), _message(report)])

        def pytest_internalerror(self, excrepr):
            self.errors.append(["internal error", _text(excrepr)[-_MESSAGE_CHARS:]])

        def pytest_runtest_logreport(self, report):
            if report.nodeid in self.sentinels:
                self.sentinels[report.nodeid][report.when] = report.outcome
                if report.when == "teardown" and report.failed and self.last is not None:
                    # of the module or session: without the sentinel its last test would be told
                    self.last.update(status="error", message=_message(report))
                return
            watch.reported(report)
            status = _status(report)
            if type(report).__name__.lower().startswith("subtest") and status not in ("failed", "error"):
                status = None  # the test that holds it has a report of its own
            record = self.tests.setdefault(_node_id(report.nodeid), {"status": None, "seconds": 0.0, "message": ""})
            self.last = record
            record["seconds"] += getattr(report, "duration", 0.0)
            before = record["status"]
            if status and (before is None or _SEVERITY.index(status) > _SEVERITY.index(before)):
                record["status"] = status
                record["message"] = "" if status == "passed" else _message(report)

        @pytest.hookimpl(tryfirst=True)
        def pytest_sessionfinish(self, session):
            self.failed = session.testsfailed
            watch.look_at_plugins(session.config.pluginmanager)
            watch.look_at_items([i for i in getattr(session, "items", ()) if i.nodeid not in self.sentinels])

    return Recorder()


def load_pytest(folders, own, report, early):
    """Put the work tree's folders on the path; `report` is told which of its names, `own`, pytest needs."""
    pytest, watch, before, installed = early
    sys.path[:0] = folders
    report["shared"] = sorted(installed.intersection(own))
    if pytest is None or installed.intersection(own):
        for name in set(sys.modules) - before:
            if name.partition(".")[0] in installed:
                del sys.modules[name]
        importlib.invalidate_caches()
        import pytest

        watch = runner_watch.Watch()
    return pytest, watch


def run(job, early):
    """Run the job's tests and return what is to be reported."""
    folders = [os.path.abspath(folder) for folder in job["pythonpath"]]
    has_xdist = "xdist" not in job["own"] and importlib.util.find_spec("xdist") is not None
    report = {"fault": "", "exit": UNUSABLE, "python": sys.version.split()[0], "tests": {}}
    try:
        pytest, watch = load_pytest([os.getcwd()] + folders, job["own"], report, early or runner_watch.import_pytest())
    except BaseException as error:
        report["fault"] = _text("pytest cannot be imported: %s: %s" % (type(error).__name__, error))
        return report
    if folders:
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)  # for what the tests start
    plugin = make_plugin(pytest, job["sentinel"], watch)
    serial = ["-n0", "--dist=no"] if has_xdist else []
    # options of the base's own configuration that do not fit this environment are given up as a whole
    for more in (serial, ["-p", "no:xdist", "-o", "addopts="]):
        arguments = job["before"] + more + job["after"]
        sys.argv[:] = [os.path.join(os.path.dirname(pytest.__file__), "__main__.py")] + arguments
        del plugin.errors[:]
        try:
            code = int(pytest.main(arguments, plugins=[plugin]))
        except BaseException as error:
            plugin.errors.append(["pytest", _text("%s: %s" % (type(error).__name__, error))])
            code = UNUSABLE
        if plugin.started:
            break
    for key in ("sentinels", "errors", "collected", "failed", "config_file"):
        report[key] = getattr(plugin, key)
    ended = {node_id: record for node_id, record in plugin.tests.items() if record["status"]}
    watch.look()
    seen = [[_text(what), _text(file)] for what, file in sorted(watch.seen)]
    report.update(tests=ended, exit=code, pytest=_text(pytest.__version__), seen=seen)
    return report


def read_job():
    """The job, in the file that this was started with."""
    with open(sys.argv[1], "rb") as stream:
        return json.loads(stream.read().decode("ascii"))


def main():
    """Read the job, run it, write the report, end the process."""
    job, early = read_job(), None
    if "serve" in job:  # returns in a process of its own for each run
        early, known = runner_watch.import_pytest(), set(sys.modules)
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        import reporter_server

        del sys.path[0]
        reporter_server.serve(early[0], known)
        job = read_job()
    process = os.getpid()
    os.unlink(sys.argv[1])
    place = job["report"]
    # HMAC by hand: objects and functions of C cannot be replaced in place, those of the modules hmac and json can
    key = bytes.fromhex(job.pop("key"))
    inner = hashlib.sha256(bytes(b ^ 0x36 for b in key.ljust(64, b"\0")))
    outer = hashlib.sha256(bytes(b ^ 0x5C for b in key.ljust(64, b"\0")))
    getpid, leave, write = os.getpid, os._exit, os.write
    open_file, flags = os.open, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK

    report = run(job, early)
    if getpid() != process:  # a child that a test forked came back to here
        leave(UNUSABLE)
    try:
        body = _json(report).encode("ascii")
        inner.update(body)
        outer.update(inner.digest())
        data = outer.hexdigest().encode("ascii") + b"\n" + body
        target = open_file(place, flags, 0o600)
        while data:
            data = data[write(target, data) :]
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    finally:
        leave(report["exit"])


if __name__ == "__main__":
    main()
