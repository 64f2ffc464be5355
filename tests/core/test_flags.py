"""Flags of what a patch adds. They are hints for a reader, and say nothing of what was there before."""

import pytest

from gagar_env.changes import FileState
from gagar_env.flags import MAX_FLAGS, find_flags, is_test_path

HIDDEN = ("tests/test_a.py::TestA::test_rounding[1-a b]", "test_bare")


def flags(tree, text, path="pkg/mod.py"):
    data = text if isinstance(text, bytes) else text.encode()
    found = find_flags(tree, {path: FileState(data)}, HIDDEN)
    assert all(f.path == path for f in found)
    return [f.kind for f in found]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("class A(int):\n    def __eq__(self, o):\n        return True\n", ["always_equal"]),
        ("class A:\n    __ne__ = lambda self, o: False\n", ["always_equal"]),
        ("A = type('A', (int,), {'__eq__': lambda s, o: True})\n", ["always_equal"]),
        ("class A:\n    def __hash__(self):\n        return 1\n", ["always_equal"]),
        ("class A:\n    def __eq__(self, o):\n        return self.x == o.x\n", []),
        ("class A:\n    def __eq__(self, o):\n        return False if o is None else self.x\n", []),
        ("class A:\n    __hash__ = None\n", []),
        ("class A:\n    def __eq__(self, o):\n        r = True\n        return r\n", ["always_equal"]),
        ("class A:\n    def __eq__(self, o):\n        return isinstance(o, object)\n", ["always_equal"]),
        ("class A:\n    def __eq__(self, o):\n        return T()\n", ["always_equal"]),
        ("yes = lambda s, o: True\nclass A:\n    __eq__ = yes\n", ["always_equal"]),
        ("class A:\n    def __eq__(self, o):\n        return NotImplemented\n", []),
        ("class A:\n    def __eq__(self, o):\n        return isinstance(o, A)\n", []),
        ("class A:\n    def __eq__(self, o):\n        r = False\n        r = o.x == 1\n        return r\n", []),
        ("import os\ndef f():\n    os._exit(0)\n", ["exits_process"]),
        ("from os import _exit as leave\nleave(0)\n", ["exits_process"]),
        ("import sys\nsys.exit(0)\n", ["exits_process"]),
        ("raise SystemExit\n", ["exits_process"]),
        ("import sys\ndef main():\n    sys.exit(0)\n", []),
        ("import sys\nif __name__ == '__main__':\n    sys.exit(0)\n", []),
        ("import atexit\natexit.register(print)\n", ["exit_hook"]),
        ("import pytest\n", ["touches_test_runner"]),
        ("def f():\n    from _pytest import runner\n", ["touches_test_runner"]),
        ("__import__('pytest')\n", ["touches_test_runner"]),
        ("from importlib import import_module\nimport_module('_pytest.runner')\n", ["touches_test_runner"]),
        ("from unittest import mock\n", ["touches_test_runner"]),
        ("import sys\nsys._getframe(1)\n", ["inspects_runtime"]),
        ("from inspect import stack as s\ns()\n", ["inspects_runtime"]),
        ("import inspect\ninspect.signature(f)\n", []),
        ("import gc\ngc.get_objects()\n", ["inspects_runtime"]),
        ("import gc\ngc.collect()\n", []),
        ("import ctypes\n", ["inspects_runtime"]),
        ("import sys\nsys.modules['json'] = None\n", ["replaces_modules"]),
        ("import sys\nsys.modules.update({})\n", ["replaces_modules"]),
        ("import sys\nsys.meta_path = []\n", ["replaces_modules"]),
        ("import builtins\nbuiltins.isinstance = f\n", ["replaces_modules"]),
        ("import math\nmath.isclose = f\n", ["replaces_modules"]),
        ("from os import path as p\nsetattr(p, 'exists', f)\n", ["replaces_modules"]),
        ("import decimal, sys\nsys.stdout = f\ndecimal.getcontext().prec = 9\nself.math.x = 1\n", []),
        ("import os\nos.environ.get('PYTEST_CURRENT_TEST')\n", ["reads_test_environment"]),
        ("def f(name):\n    return name == 'test_rounding'\n", ["names_hidden_test"]),
        ("# see test_bare\n", ["names_hidden_test"]),
        ("x = 'test_rounding_up'\n", []),
        ("def broken(:\n    PYTEST_CURRENT_TEST\n", ["reads_test_environment"]),
        ("x = '\\d'\nimport pytest\n", ["touches_test_runner"]),
        ("class A:\n    def __eq__(self, o):\n        return o is o or self.x == o.x\n", ["always_equal"]),
        ("def yes(*a):\n    return 1 == 1\nA.__eq__ = yes\n", ["always_equal"]),
        ("def yes(*a):\n    return True\nA = type('A', (), {'__eq__': yes})\n", ["always_equal"]),
        ("setattr(A, '__ne__', lambda s, o: False)\n", ["always_equal"]),
        ("def same(a, b):\n    return a == b\nA.__eq__ = same\n", []),
        ("import sys\nsys.modules['pytest']\n", ["touches_test_runner"]),
        ("import sys\nsys.modules.get('_pytest.runner')\n", ["touches_test_runner"]),
        ("import sys\nx = 'unittest' in sys.modules\n", ["touches_test_runner"]),
        ("import sys\nme = sys.modules[__name__]\n", []),
        ("import __main__\n", ["touches_test_runner"]),
        ("def f(e):\n    return e.__traceback__.tb_frame\n", ["inspects_runtime"]),
        ("open('/proc/self/mem')\n", ["inspects_runtime"]),
        ("open('/proc/cpuinfo')\n", []),
        ("import linecache\nlinecache.getlines('a')\n", ["inspects_runtime"]),
        ("getattr(__import__('sy' + 's'), 'x')\n", ["hides_names"]),
        ("getattr(o, ''.join(chr(c) for c in [95]))\n", ["hides_names"]),
        ("getattr(o, name)\ngetattr(o, 'get_' + name)\n", []),
        ("exec(text)\n", ["runs_text"]),
        ("import importlib.util as u\nu.spec_from_file_location(a, b)\n", ["runs_text"]),
        ("import re\nre.compile('x')\n", []),
    ],
)
def test_what_is_flagged(tmp_path, text, kinds):
    assert flags(tmp_path, text) == kinds


def test_only_what_is_new(tmp_path):
    (tmp_path / "pkg").mkdir()
    old = "import pytest\n\n\nclass A:\n    def __eq__(self, o):\n        return True\n"
    (tmp_path / "pkg" / "mod.py").write_text(old)
    assert flags(tmp_path, old + "x = 1\n") == []
    assert flags(tmp_path, old.replace("return True", "return 1")) == ["always_equal"]


def test_only_in_code_that_is_no_test(tmp_path):
    for path in ("tests/util.py", "pkg/test_x.py", "conftest.py", "a/test/b.py", "notes.txt"):
        assert flags(tmp_path, "import pytest\n", path) == []
    assert not is_test_path("pkg/contest.py")
    assert find_flags(tmp_path, {"a.py": None, "b.py": FileState(b"pytest", "120000")}, ()) == ()


def test_bounded(tmp_path):
    lines = "".join(f"class A{n}:\n    def __eq__(self, o): return True\n" for n in range(200))
    assert len(flags(tmp_path, lines)) == MAX_FLAGS
    assert flags(tmp_path, "(" * 100_000) == []


def test_code_in_a_tests_folder_is_read_too(tmp_path):
    text = (
        "import pytest\n\n\nclass A:\n    def __eq__(self, o):\n        return True\n\n\ndef test_bare():\n    pass\n"
    )
    for path in ("pkg/tests/any.py", "test_any.py"):
        assert flags(tmp_path, text, path) == ["always_equal"]
        assert flags(tmp_path, "import _pytest.runner\n", path) == ["touches_test_runner"]


def test_compiled_code_is_not_read(tmp_path):
    assert flags(tmp_path, b"\x7fELF", "pkg/mod.cpython-311-x86_64-linux-gnu.so") == ["not_read"]


@pytest.mark.parametrize(
    "text", ["isinstance()", "isinstance(*o)", "(" + "+".join("x" * 900) + ") == (" + "+".join("x" * 900) + ")"]
)
def test_test_4_source_that_breaks_its_reader_is_no_error(tmp_path, text):
    """An error would leave the work without a result, in place of a loss."""
    assert set(flags(tmp_path, f"class A:\n    def __eq__(self, o):\n        return {text}\n")) <= {
        "not_read",
        "always_equal",
    }


def test_source_by_a_link_and_in_an_archive(tmp_path):
    link, text = FileState(b"impl.txt", "120000"), FileState(b"import pytest\n")
    (flag,) = find_flags(tmp_path, {"pkg/impl.py": link, "pkg/impl.txt": text}, ())
    assert (flag.kind, flag.path) == ("touches_test_runner", "pkg/impl.py")
    assert find_flags(tmp_path, {"pkg/notes": link, "pkg/impl.txt": text}, ()) == ()
    assert [flag.kind for flag in find_flags(tmp_path, {"data.zip": FileState(b"PK")}, ())] == ["not_read"]


def test_many_flags_of_one_kind_do_not_push_out_another(tmp_path):
    changes = {f"a{n}.py": FileState(b"import atexit\natexit.register(print)\n") for n in range(MAX_FLAGS * 2)}
    changes["z.py"] = FileState(b"class A:\n    __eq__ = lambda s, o: True\n")
    found = find_flags(tmp_path, changes, ())
    assert len(found) == MAX_FLAGS
    assert "always_equal" in {flag.kind for flag in found}
