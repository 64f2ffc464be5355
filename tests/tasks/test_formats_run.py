"""Rows and directories of public sets, run for real in a container."""

import json
from pathlib import Path

import pytest

from gagar_env.episode import Outcome
from gagar_env.tasks import load_task_folder
from gagar_env.tasks.formats import task_from_row
from gagar_env.verify import Verifier

pytestmark = [pytest.mark.docker, pytest.mark.slow]

FIX = """\
diff --git a/calc.py b/calc.py
--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""
NEW_TEST = """\
diff --git a/test_calc.py b/test_calc.py
new file mode 100644
--- /dev/null
+++ b/test_calc.py
@@ -0,0 +1,5 @@
+from calc import add
+
+
+def test_add():
+    assert add(1, 2) == 3
"""
DOCKERFILE = (
    "FROM {image}\nUSER root\nWORKDIR /work/calc\nRUN printf 'def add(a, b):\\n    return a - b\\n' > calc.py\n"
)


def test_a_directory_of_harbor(tmp_path: Path, test_image: str, image_kind: str) -> None:
    for name, text in {
        "task.toml": 'schema_version = "1.4"\n[environment]\nnetwork_mode = "no-network"\n',
        "instruction.md": "add subtracts",
        "environment/Dockerfile": DOCKERFILE.format(image=test_image),
        "tests/test.sh": "mkdir -p /logs/verifier\nif python3 -m pytest -q -p no:cacheprovider /tests/test_it.py\n"
        "then echo 1.0 > /logs/verifier/reward.txt\n"
        "else echo 0 > /logs/verifier/reward.txt\nfi\n",
        "tests/test_it.py": "import sys\nsys.path.insert(0, '.')\nfrom calc import add\n\n\n"
        "def test_it():\n    assert add(1, 2) == 3\n",
    }.items():
        (tmp_path / "task" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "task" / name).write_text(text)
    task = load_task_folder(tmp_path / "task")
    verifier = Verifier(sandbox=image_kind)
    fixed = verifier.verify(task, FIX.encode())
    assert fixed.passed, (fixed.reason, fixed.output_tail)
    assert verifier.verify(task, b"").outcome is Outcome.FAILED


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    (tmp_path / "owner__name-1").mkdir()
    (tmp_path / "owner__name-1" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    return tmp_path


def test_a_row_of_swe_bench_5(clone: Path, test_image: str, image_kind: str) -> None:
    base = "4c288bc97ea371817199908d0d9b12de9dae327e"
    script = [
        *("#!/bin/bash", "set -uxo pipefail", "cd /testbed", "git status", f"git checkout {base} test_calc.py"),
        *("git apply -v - <<'EOF_114329324912'", NEW_TEST, "EOF_114329324912", ": '>>>>> Start Test Output'"),
        *("python3 -m pytest -rA -p no:cacheprovider test_calc.py", ": '>>>>> End Test Output'"),
        f"git checkout {base} test_calc.py",
    ]
    row = {
        "repo": "owner/name",
        "instance_id": "owner__name-1",
        "base_commit": base,
        "patch": FIX,
        "test_patch": NEW_TEST,
        "problem_statement": "add subtracts",
        "FAIL_TO_PASS": json.dumps(["test_calc.py::test_add"]),
        "PASS_TO_PASS": "[]",
        "image": test_image,
        "log_parser": "parse_log_pytest",
        "eval_type": "pass_and_fail",
        "eval_script": "\n".join(script),
    }
    task = task_from_row(row, repo_dir=clone)
    verifier = Verifier(sandbox=image_kind)
    fixed = verifier.verify(task, task.solution_patch)
    assert fixed.passed, (fixed.reason, fixed.output_tail)
    assert verifier.verify(task, b"").outcome is Outcome.FAILED


def test_a_row_of_swe_smith(tmp_path: Path, test_image: str, image_kind: str) -> None:
    tree = tmp_path / "owner__name.1fd52536.bug"
    tree.mkdir()
    (tree / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (tree / "test_calc.py").write_text("from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    row = {
        "instance_id": tree.name,
        "repo": "swesmith/owner__name.1fd52536",
        "image_name": test_image,
        "patch": FIX.replace("-    return a - b\n+    return a + b", "-    return a + b\n+    return a - b"),
        "FAIL_TO_PASS": ["test_calc.py::test_add"],
        "PASS_TO_PASS": [],
        "problem_statement": "add subtracts",
    }
    task = task_from_row(row, repo_dir=tmp_path)
    task = task.model_copy(update={"environment": task.environment.model_copy(update={"python": "python3"})})
    verifier = Verifier(sandbox=image_kind)
    fixed = verifier.verify(task, task.solution_patch)
    assert fixed.passed, (fixed.reason, fixed.output_tail)
    cheated = FIX.replace("calc.py", "test_calc.py").encode()
    assert verifier.verify(task, b"").outcome is Outcome.FAILED
    assert not verifier.verify(task, cheated).passed
