"""The same report warm and cold, whatever the repository brings along: what a rehearsal has imported must not show."""

import pytest

from tests.warm.test_warm_parity import LATER, answer

INI = "[pytest]\naddopts = {}\n"
PATH = "import sys\nsys.path.insert(0, 'src')\n"
CODE = answer("import code\nreturn code.X")
CASES = {
    "pytest.ini": ({"pytest.ini": INI.format("-q")}, answer("return 42")),
    "tests/code.py": ({"tests/conftest.py": "", "tests/code.py": "X = 42\n"}, CODE),
    "src/code.py by a conftest": ({"conftest.py": PATH, "src/code.py": "X = 42\n"}, CODE),
    "src/code.py by tox.ini": ({"tox.ini": "[pytest]\npythonpath = src\n", "src/code.py": "X = 42\n"}, CODE),
    "src/cmd": ({"tox.ini": "[pytest]\npythonpath = src\n", "src/cmd/__init__.py": "X = 42\n"}, answer("return 42")),
    "no debugging": (
        {"pytest.ini": INI.format("-p no:debugging"), "lib/code.py": "X = 42\n"},
        {"calc.py": LATER.format(name="code")},
    ),
    "no capture": (
        {"pytest.ini": INI.format("-p no:capture"), "lib/readline.py": "X = 42\n"},
        {"calc.py": LATER.format(name="readline")},
    ),
    "a temporary folder": (
        {
            "pytest.ini": INI.format("-s"),
            "conftest.py": "import os\nos.mkdir('mine')\nos.environ['TMPDIR'] = os.path.abspath('mine')\n",
        },
        answer("import tempfile\nreturn 42 if tempfile.gettempdir().endswith('mine') else tempfile.gettempdir()"),
    ),
    "a warning that pytest gives once": (
        {
            "pytest.ini": INI.format("-W error"),
            "conftest.py": "import pytest\n\n\nclass Both(pytest.Function, pytest.Collector):\n    pass\n",
        },
        answer("return 42"),
    ),
    "faults": (
        {"pytest.ini": "[pytest]\nfaulthandler_timeout = 30\nfilterwarnings = error\n"},
        answer("import faulthandler\nreturn 42 if faulthandler.is_enabled() else 41"),
    ),
    "no faults": (
        {"pytest.ini": INI.format("-p no:faulthandler")},
        answer("import faulthandler\nreturn 41 if faulthandler.is_enabled() else 42"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("base", "work"), CASES.values(), ids=[name.replace(" ", "_") for name in CASES])
def test_the_report_is_the_same_on_any_repository(pair, tmp_path, base, work):
    pair.same(work, task=pair.on(tmp_path / "base", base))
