"""Runs pytest once in a warm server, before it serves: what that imports and compiles on the way the runs need not.

Copied into a sandbox beside `reporter_server.py`, for the same Pythons; imports nothing of this package. What stays are
caches (of regular expressions, of what `inspect` found) and parts of packages that were imported already. Everything
else that a session leaves behind is undone: a run must find what a fresh start finds.
"""

import faulthandler
import linecache
import os
import sys
import tempfile

_TESTS = "def test_passes():\n    assert 1 == 1\n\n\ndef test_fails():\n    assert 1 == 2\n"
_NO_PLUGINS = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
_HIDDEN = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", _NO_PLUGINS)
_WARNED = "_pytest_diamond_inheritance_warning_shown"


def rehearse(pytest):
    """Run two tests of our own, with pytest's own plugins: the environment's are for the run to load.

    Returns why that went wrong; empty if it did not.
    """
    folder = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "rehearsal")
    os.mkdir(folder)
    for name, text in (("rehearsed.py", _TESTS), ("pytest.ini", "[pytest]\n")):
        with open(os.path.join(folder, name), "w") as stream:
            stream.write(text)
    options = ["-p", "no:cacheprovider", "-c", os.path.join(folder, "pytest.ini"), "--rootdir", folder]
    modules, path, finders = set(sys.modules), list(sys.path), set(sys.path_importer_cache)
    variables = {name: os.environ.pop(name, None) for name in _HIDDEN}
    os.environ[_NO_PLUGINS] = "1"
    had_faults = faulthandler.is_enabled()
    streams = _silence()
    try:
        code = int(pytest.main(options + [os.path.join(folder, "rehearsed.py")]))
    except BaseException as error:
        return "pytest cannot be rehearsed: %s: %s" % (type(error).__name__, error)
    finally:
        _speak(streams)
        sys.path[:] = path
        for name in set(sys.path_importer_cache) - finders:
            del sys.path_importer_cache[name]
        del os.environ[_NO_PLUGINS]
        os.environ.update({name: value for name, value in variables.items() if value is not None})
        if not had_faults:
            faulthandler.disable()  # pytest 5 and 6 leave it on
        _forget(modules)
    return "" if code == 1 else "pytest ends its rehearsal with %d" % code


def _forget(modules):
    """Remove what the session keeps in other places than its own. `modules` were imported before it."""
    tops = {name.partition(".")[0] for name in modules}
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] not in tops:  # the work tree may hold one of that name, as `code.py`
            del sys.modules[name]
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    for kind in ("Function", "FunctionDefinition"):
        kind = getattr(sys.modules["_pytest.python"], kind, None)
        if kind is not None and _WARNED in vars(kind):
            delattr(kind, _WARNED)
    tempfile.tempdir = None
    linecache.clearcache()


def _silence():
    """Send what is printed nowhere; what `_speak` needs to undo it."""
    streams = [os.dup(1), os.dup(2)]
    null = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(null, number)
    os.close(null)
    return streams


def _speak(streams):
    sys.stdout.flush()
    sys.stderr.flush()
    for number, stream in enumerate(streams, 1):
        os.dup2(stream, number)
        os.close(stream)
