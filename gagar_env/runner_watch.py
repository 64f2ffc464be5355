"""Sees what happens to the test runner while code under test runs beside it.

Copied into a sandbox beside `reporter.py`, for the same Pythons; imports nothing of this package.

What is seen is a list of what and where, such as `_pytest.reports.TestReport.from_item_and_call`, or `plugin` and
`calc.py`. Conftest files and plugins of a repository change the runner too, for good reasons: the verifier leaves out
what the official part does, and what is seen without the agent's change or with the reference solution.
"""

import builtins
import importlib.util
import os
import sys
import types
from builtins import any, getattr, hasattr, isinstance, len, list, set, sorted, str, type, vars, zip

# names above: what replaces a builtin while tests run does not replace it here

_RUNNERS = ("pytest", "_pytest", "pluggy", "unittest")
_EARLY = ("_pytest.unittest", "_pytest.skipping", "_pytest.recwarn", "unittest.case")
"""Modules that pytest would import later, maybe after the code under test."""
_OFTEN = ("_pytest.runner", "_pytest.reports", "_pytest.python.Function", "pluggy._", "pluggy.callers", "unittest.case")
_CODE = (types.FunctionType, type, property, staticmethod, classmethod, types.BuiltinFunctionType)
_WRAPPERS = (property, staticmethod, classmethod)
_PLAIN = 4
"""Parts of the mark of a function without named defaults."""
_MOST = 50


def _mark(value):
    """What must stay: the object, what it wraps, a function's code and defaults. All can be replaced in place."""
    inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    named = inner.__kwdefaults__ or {} if isinstance(inner, types.FunctionType) else {}
    mark = [value, inner, getattr(inner, "__code__", None), getattr(inner, "__defaults__", None)]
    return mark + [part for name in sorted(named) for part in (name, named[name])]


def _safely(method):
    """What goes wrong here must neither break the tests nor go unseen."""

    def safe(self, *arguments):
        try:
            method(self, *arguments)
        except Exception as error:
            self.note("the watch failed: " + type(error).__name__)

    return safe


class Watch(object):
    """Remembers what the runner is made of. Make it before anything of the repository is imported."""

    def __init__(self):
        for name in _EARLY:
            if importlib.util.find_spec(name) is not None:
                importlib.import_module(name)
        self.seen = set()
        self._root = os.getcwd() + os.sep
        prefixes = [sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), os.path.dirname(__file__), "<frozen"]
        prefixes += [
            os.path.dirname(vars(sys.modules[n])["__file__"]) for n in ("pytest", "pluggy") if n in sys.modules
        ]
        self._installed = tuple(p for p in prefixes if not self._root.startswith(p + os.sep))
        self._places = [("builtins", vars(builtins)), ("reporter", vars(sys.modules["__main__"]))]
        for name, module in sorted(sys.modules.items()):
            if module is not None and name.partition(".")[0] in _RUNNERS:
                self._places.append((name, vars(module)))
                for key, value in list(vars(module).items()):
                    if isinstance(value, type) and value.__module__ == name:
                        self._places.append((name + "." + key, vars(value)))
        self._parts = [
            (name, space, key, _mark(value))
            for name, space in self._places
            for key, value in list(space.items())
            if isinstance(value, _CODE)
        ]
        self._often = [part for part in self._parts if part[0].startswith(_OFTEN)]
        self._outcomes = {}
        self._tests = set()
        if hasattr(sys, "addaudithook"):  # from Python 3.8 on
            sys.addaudithook(self._audit)

    def note(self, what, file=""):
        """Remember what was seen; a file of the work tree by its path in there."""
        if len(self.seen) < _MOST:
            self.seen.add((what, file[len(self._root) :] if file.startswith(self._root) else file))

    @_safely
    def look(self):
        """Note what has been replaced anywhere in the runner."""
        self._compare(self._parts)
        for finder in list(sys.meta_path) + list(sys.path_hooks):
            self._note_if_new("import hook", finder)

    @_safely
    def look_at_plugins(self, manager):
        """Note plugins that are not installed."""
        for plugin in manager.get_plugins():
            self._note_if_new("plugin", plugin)
        for name in vars(manager.hook):
            impls = getattr(getattr(manager.hook, name), "get_hookimpls", None)
            for impl in impls() if impls else ():
                self._note_if_new("plugin " + name, impl.function)

    def _audit(self, event, arguments):
        """Note who reads the tests: what imports and shows them is installed, or is their own."""
        if event != "open" or not isinstance(arguments[0], (str, bytes)):
            return
        name = arguments[0] if isinstance(arguments[0], str) else os.fsdecode(arguments[0])
        if not name.endswith(".py"):
            return
        name = name.rpartition("/")[2]
        if not (name.startswith("test_") or name.endswith("_test.py") or name in self._tests):
            return
        frame = sys._getframe(1)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.endswith(("/linecache.py", "/_pytest/assertion/rewrite.py")):
                return
            if not file.startswith(self._installed):
                self.note("reads " + name, file)
                return
            frame = frame.f_back

    @_safely
    def look_at_items(self, items):
        """Note tests whose code is not in their file, and tests that were given another way to run."""
        for item in items:
            self._tests.add(str(item.fspath).rpartition("/")[2])
            if not {"runtest", "setup", "reportinfo"}.isdisjoint(vars(item)):
                self.note("runtest of " + item.nodeid)
            code = getattr(getattr(item, "function", None), "__code__", None)
            file = getattr(code, "co_filename", "")
            if file and file != str(item.fspath) and not file.startswith(self._installed):
                self.note("code of " + item.nodeid, file)

    @_safely
    def made(self, item, call):
        """A phase of a test has ended: this is what pytest makes a report of."""
        raised = call.excinfo is not None or bool(getattr(item, "_excinfo", None))
        if raised:
            self._outcomes[item.nodeid, call.when] = raised

    @_safely
    def reported(self, report):
        """Compare a report with what it was made of, and look at what made it."""
        raised = self._outcomes.pop((report.nodeid, report.when), False)
        if raised and report.outcome == "passed" and not hasattr(report, "wasxfail"):
            self.note("outcome of " + report.nodeid)
        if report.when == "call":
            self._compare(self._often)
            for name, tracer in (("sys.settrace", sys.gettrace()), ("sys.setprofile", sys.getprofile())):
                if tracer is not None:
                    self._note_if_new(name, tracer)

    def _compare(self, parts, function=types.FunctionType):
        for name, space, key, before in parts:
            now = space.get(key)
            # a few thousand times in each run, nearly all of them functions without named defaults, or classes
            if now is before[0]:
                if type(now) is function:
                    if now.__code__ is before[2] and now.__defaults__ is before[3] and len(before) == _PLAIN:
                        continue
                elif type(now) not in _WRAPPERS and before[2] is None:
                    continue
            after = _mark(now)
            if len(before) != len(after) or any(a is not b for a, b in zip(before, after)):
                self.note(name + "." + key)

    def _note_if_new(self, what, thing):
        function = getattr(thing, "__func__", thing)
        file = getattr(getattr(function, "__code__", None), "co_filename", None)
        if file is None:
            kind = thing if isinstance(thing, type) else type(thing)
            module = thing if isinstance(thing, types.ModuleType) else sys.modules.get(kind.__module__)
            file = getattr(module, "__file__", None) or ""
        if file and not file.startswith(self._installed):
            self.note(what, file)


def import_pytest():
    """Pytest from the environment (or None), a watch, what was imported before, and what is installed of its parts."""
    before = set(sys.modules)
    try:
        import pytest
    except ImportError:
        pytest = None
    installed = set()
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None) or ""
        if "site-packages" in path or "dist-packages" in path:
            installed.add(name.partition(".")[0])
    return pytest, pytest and Watch(), before, installed
