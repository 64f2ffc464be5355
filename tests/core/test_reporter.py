"""The reporter as it runs in a sandbox: a plain process with a job file.

More interpreters, each with a pytest of its own, can be named in GAGAR_TEST_PYTHONS (separated by `:`).
"""

import ast
import hashlib
import hmac
import json
import os
import subprocess
from pathlib import Path

import pytest

from gagar_env.environments import prepare_environment
from gagar_env.warm import REPORTER_FILES, SERVER_FILES

LEAN = "lean environment"
REPORTER = Path(__file__).parents[2] / "gagar_env" / "reporter.py"
PYTHONS = [LEAN, *filter(None, os.environ.get("GAGAR_TEST_PYTHONS", "").split(":"))]
KEY = "ab" * 32
CALC = {"src/calc.py": "def add(a, b):\n    return a - b\n"}
TESTS = {
    "tests/test_a.py": "import calc\n\n\ndef test_1():\n    assert calc.add(1, 1) == 2\n\n\ndef test_2(): pass\n",
    "tests/test_b.py": "class TestB:\n    def test_3(self): pass\n",
}
IDS = {"tests/test_a.py::test_1": "failed", "tests/test_a.py::test_2": "passed"}
IDS["tests/test_b.py::TestB::test_3"] = "passed"
FILES = ("tests/test_a.py", "tests/test_b.py")


@pytest.fixture(params=PYTHONS, ids=lambda path: path if path == LEAN else Path(path).parents[1].name)
def report(request, tmp_path, lean_environment):
    """Runs the reporter on files and returns what it reports."""

    python = prepare_environment(lean_environment).python if request.param == LEAN else request.param

    def run(files, arguments=FILES, *, own=("src", "tests"), before=()):
        work, scratch = tmp_path / "tree", tmp_path / "scratch"
        for path, text in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        scratch.mkdir()
        for name in REPORTER_FILES:
            (scratch / name).write_bytes(REPORTER.with_name(name).read_bytes())
        job = {
            "key": KEY,
            "report": str(scratch / "report"),
            "sentinel": "test_0123456789ab",
            "pythonpath": ["src"],
            "own": list(own),
            "before": ["-o", f"cache_dir={scratch}/cache", "-p", "no:randomly", *before],
            "after": ["--maxfail=0", *arguments],
        }
        (scratch / "job.json").write_text(json.dumps(job))
        command = [python, "-s", "-B", str(scratch / "reporter.py"), str(scratch / "job.json")]
        environment = {"PATH": os.defpath, "LANG": "C.UTF-8"}
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, timeout=120, check=False)
        assert not (scratch / "job.json").exists()
        assert (scratch / "report").exists(), done.stdout + done.stderr
        signature, body = (scratch / "report").read_bytes().split(b"\n", 1)
        assert signature.decode() == hmac.new(bytes.fromhex(KEY), body, hashlib.sha256).hexdigest()
        found = json.loads(body)
        assert found["exit"] == done.returncode
        found["status"] = {node_id: record["status"] for node_id, record in found["tests"].items()}
        return found

    return run


def fell(found):
    """Files whose sentinel failed where it should: in its call."""
    right = {"setup": "passed", "call": "failed", "teardown": "passed"}
    return {s["file"] for s in found["sentinels"].values() if s == {"file": s["file"], **right}}


def test_it_is_written_for_python_3_6_and_alone():
    names = set()
    for name in SERVER_FILES:
        tree = ast.parse(REPORTER.with_name(name).read_text(), feature_version=(3, 6))
        names |= {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        names |= {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    standard = {"sys", "hashlib", "importlib.util", "json", "os", "builtins", "types"}
    server = {"ctypes", "gc", "importlib", "resource", "signal", "socket", "threading"}
    rehearsal = {"faulthandler", "linecache", "tempfile"}
    own = {"runner_sentinel", "runner_watch", "reporter_rehearsal", "reporter_server"}
    assert names == {*standard, *server, *rehearsal, *own, "pytest"}


def test_every_test_is_on_record(report):
    found = report({**CALC, **TESTS})
    assert (found["exit"], found["fault"], found["errors"]) == (1, "", [])
    assert found["status"] == IDS
    assert sorted(found["collected"]) == sorted(IDS)
    assert fell(found) == set(FILES)
    assert found["failed"] == 3
    assert "assert 0 == 2" in found["tests"]["tests/test_a.py::test_1"]["message"]


KINDS = """
import unittest

import pytest


def test_skip(): pytest.skip("why")

@pytest.mark.xfail
def test_xfail(): assert 0

@pytest.mark.xfail
def test_xpass(): pass

@pytest.mark.xfail(strict=True)
def test_strict(): pass

@pytest.fixture
def early(): 1 / 0

@pytest.fixture
def late():
    yield
    1 / 0

def test_early(early): pass

def test_late(late): pass

class TestU(unittest.TestCase):
    def test_ok(self): self.assertEqual(1, 1)
    def test_bad(self): self.assertEqual(1, 2)
    @unittest.skip("no")
    def test_skip(self): pass
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    def test_sub(self):
        for i in range(2):
            with self.subTest(i=i):
                self.assertEqual(i, 0)

@pytest.fixture(autouse=True)
def picky(request):
    assert request.function.__name__ != "test_0123456789ab"
    assert request.node.name in request.node.nodeid
"""


def test_every_kind_of_result(report):
    found = report({"tests/test_k.py": KINDS}, ["tests/test_k.py"])
    status = {node_id.partition("::")[2]: s for node_id, s in found["status"].items()}
    assert status == {
        "test_skip": "skipped",
        "test_xfail": "xfailed",
        "test_xpass": "xpassed",
        "test_strict": "failed",
        "test_early": "error",
        "test_late": "error",
        "TestU::test_ok": "passed",
        "TestU::test_bad": "failed",
        "TestU::test_skip": "skipped",
        "TestU::test_expected": "xfailed",
        "TestU::test_sub": "failed",
    }
    assert fell(found) == {"tests/test_k.py"}


@pytest.mark.parametrize(
    "options",
    [
        "-x --tb=no -q",
        "--maxfail=1",
        "-W error",
        "--no-such-option",
        "-p no_such_plugin",
        "-n 2 --dist=loadfile",
    ],
)
def test_options_of_the_repository_hide_nothing(report, options):
    found = report({**CALC, **TESTS, "pytest.ini": f"[pytest]\naddopts = {options}\nfilterwarnings = error\n"})
    assert found["status"] == IDS
    assert fell(found) == set(FILES)
    assert found["config_file"].endswith("/tree/pytest.ini")


def test_options_of_the_repository_that_choose_tests_are_kept(report):
    found = report({**CALC, **TESTS, "tox.ini": "[pytest]\naddopts = -k test_3\n"})
    assert list(found["status"]) == ["tests/test_b.py::TestB::test_3"]
    assert fell(found) == {"tests/test_b.py"}


def test_a_conftest_that_looks_at_items_suits_the_sentinels(report):
    conftest = (
        "def pytest_collection_modifyitems(items):\n    items.reverse()\n\n\n"
        "def pytest_runtest_setup(item):\n    item.function, item.module, item.cls, item.fixturenames\n"
    )
    found = report({**CALC, **TESTS, "conftest.py": conftest})
    assert found["status"] == IDS
    assert fell(found) == set(FILES)


def test_tests_that_are_no_functions_have_a_sentinel_too(report):
    found = report({"README.rst": ">>> 1\n1\n"}, ["README.rst"])
    assert found["status"] == {"README.rst::README.rst": "passed"}
    assert fell(found) == {""}


TRICK = (
    "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n"
    "    result = yield\n    result.get_result().outcome = 'passed'\n"
)


@pytest.mark.parametrize("place", ["conftest.py", "tests/conftest.py"])
def test_hack_1_what_turns_failures_turns_the_sentinels(report, place):
    found = report({**CALC, **TESTS, place: TRICK})
    assert set(found["status"].values()) == {"passed"}
    assert fell(found) == set()


def test_names_in_the_work_tree_take_nobodys_place(report):
    stop = "import os\nos._exit(0)\n"
    names = ("pytest", "_pytest", "json", "hmac", "hashlib", "sitecustomize", "usercustomize")
    shadows = {f"{folder}{name}.py": stop for name in names for folder in ("", "src/")}
    assert report({**CALC, **TESTS, **shadows})["status"] == IDS


def test_a_repository_that_pytest_is_made_of_is_the_one_tested(report):
    mine = {"src/pluggy/__init__.py": "raise ImportError('this is mine')\n"}
    assert "this is mine" in report({**CALC, **TESTS, **mine}, own=("src", "pluggy"))["fault"]


def test_a_name_that_is_new_is_not_preferred(report):
    mine = {"src/pluggy/__init__.py": "raise ImportError('this is mine')\n"}
    assert report({**CALC, **TESTS, **mine})["status"] == IDS


@pytest.mark.parametrize(
    ("source", "says"),
    [("def (:\n", "SyntaxError"), ("import sys\nsys.exit(0)\n", "SystemExit"), ("1 / 0\n", "ZeroDivisionError")],
)
def test_test_2_a_module_that_does_not_import(report, source, says):
    found = report({**TESTS, "src/calc.py": source})
    assert found["exit"] in (2, 3)
    assert found["status"] == {}
    assert says in found["errors"][0][1]


def test_a_forked_child_reports_nothing(report):
    text = "import os\n\n\ndef test_f():\n    child = os.fork()\n    if child:\n        os.waitpid(child, 0)\n"
    found = report({"tests/test_f.py": text}, ["tests/test_f.py"])
    assert found["status"] == {"tests/test_f.py::test_f": "passed"}


@pytest.mark.slow
def test_inner_sessions_of_pytest_report_nothing(report):
    text = (
        "pytest_plugins = ['pytester']\n\n\ndef test_inner(testdir):\n"
        "    testdir.makepyfile('def test_x(): assert 0')\n"
        "    testdir.inline_run().assertoutcome(failed=1)\n"
    )
    files = {"tests/test_i.py": text.split("\n", 1)[1], "conftest.py": text.split("\n", 1)[0] + "\n"}
    found = report(files, ["tests/test_i.py"])
    assert found["status"] == {"tests/test_i.py::test_inner": "passed"}


def test_hack_4_exit_hooks_have_no_say(report):
    text = "import atexit, os\natexit.register(os._exit, 0)\n\n\ndef test_1(): pass\n"
    assert report({"tests/test_e.py": text}, ["tests/test_e.py"])["exit"] == 1


def test_children_find_the_same_modules(report):
    text = (
        "import subprocess, sys\n\n\ndef test_c():\n"
        "    subprocess.check_call([sys.executable, '-c', 'import calc'], cwd='/')\n"
    )
    found = report({**CALC, "tests/test_c.py": text}, ["tests/test_c.py"])
    assert found["status"] == {"tests/test_c.py::test_c": "passed"}


def test_spawned_processes_work(report):
    text = (
        "import multiprocessing, calc\n\n\ndef test_m():\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        assert pool.apply(calc.add, (3, 1)) == 2\n        pool.close()\n        pool.join()\n"
    )
    found = report({**CALC, "tests/test_m.py": text}, ["tests/test_m.py"])
    assert found["status"] == {"tests/test_m.py::test_m": "passed"}
