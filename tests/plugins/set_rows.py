"""One small row in the shape of each public set."""

import json

TEST_PATCH = """\
diff --git a/tests/test_a.py b/tests/test_a.py
--- a/tests/test_a.py
+++ b/tests/test_a.py
@@ -1 +1,2 @@
 x
+y
"""
PATCH = "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n"
CLASSIC = {
    "repo": "pallets/flask",
    "instance_id": "pallets__flask-1",
    "base_commit": "4c288bc97ea371817199908d0d9b12de9dae327e",
    "patch": PATCH,
    "test_patch": TEST_PATCH,
    "problem_statement": "Title\r\n\r\nText",
    "hints_text": "",
    "created_at": "2023-02-22T14:00:17Z",
    "version": "2.3",
    "FAIL_TO_PASS": '["tests/test_a.py::test_x"]',
    "PASS_TO_PASS": '["tests/test_a.py::test_y"]',
    "environment_setup_commit": "182ce3dd15dfa3537391c3efaf9c3ff407d134d4",
}
SWE_BENCH_5 = CLASSIC | {
    "image": "swebench/sweb.eval.x86_64.pallets_1776_flask-1:v2",
    "log_parser": "parse_log_pytest",
    "eval_type": "pass_and_fail",
    "eval_script": f"""\
#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
git status
git show
git -c core.fileMode=false diff 4c288bc97ea371817199908d0d9b12de9dae327e
git checkout 4c288bc97ea371817199908d0d9b12de9dae327e tests/test_a.py
git apply -v - <<'EOF_114329324912'
{TEST_PATCH}
EOF_114329324912
: '>>>>> Start Test Output'
pytest -rA tests/test_a.py
: '>>>>> End Test Output'
git checkout 4c288bc97ea371817199908d0d9b12de9dae327e tests/test_a.py
""",
}
BUG = """\
diff --git a/src/calc.py b/src/calc.py
index 0a1b2c3..4d5e6f7 100644
--- a/src/calc.py
+++ b/src/calc.py
@@ -1,2 +1,2 @@ class Calc:
 def add(a, b):
-    return a + b
+    return a - b
"""
SMITH = {
    "instance_id": "oauthlib__oauthlib.1fd52536.func_basic__ab12cd34",
    "repo": "swesmith/oauthlib__oauthlib.1fd52536",
    "image_name": "jyangballin/swesmith.x86_64.oauthlib_1776_oauthlib.1fd52536",
    "patch": BUG,
    "FAIL_TO_PASS": ["tests/test_calc.py::test_add"],
    "PASS_TO_PASS": ["tests/test_calc.py::test_zero"],
    "problem_statement": "add() is wrong",
}
R2E = {
    "repo_name": "aiohttp",
    "docker_image": "namanjain12/aiohttp_final:f0d74880deec8fcd982bce639c93c5e130d41654",
    "commit_hash": "f0d74880deec8fcd982bce639c93c5e130d41654",
    "problem_statement": "\n[ISSUE]\n\n**Title:** It breaks\n\n[/ISSUE]\n",
    "expected_output_json": '{"\\u001b[1mTestA.test_x\\u001b[0m": "PASSED", "test_y - ValueError: x": "FAILED"}',
    "modified_files": ["src/a.py"],
    "parsed_commit_content": json.dumps(
        {
            "file_diffs": [
                {
                    "header": {"file": {"path": "src/a.py"}},
                    "old_file_content": "x\r\n",
                    "new_file_content": "y\r\nno newline",
                },
                {
                    "header": {"file": {"path": "tests/test_a.py"}},
                    "old_file_content": "x\n",
                    "new_file_content": "y\n",
                },
            ]
        }
    ),
}
REBENCH_1 = CLASSIC | {
    "repo": "owner/name",
    "instance_id": "owner__name-1",
    "docker_image": "swerebench/sweb.eval.x86_64.owner_1776_name-1",
    "FAIL_TO_PASS": ["tests/test_a.py::test_x"],
    "PASS_TO_PASS": [],
    "meta": {"is_lite": True, "has_test_patch": True},
    "install_config": {
        "python": "3.9",
        "install": "pip install -e .",
        "log_parser": "parse_log_pytest",
        "test_cmd": "pytest --no-header -rA",
    },
    "requirements": "pytest==7.4.4\n",
    "environment": "name: testbed\n",
    "license_name": "MIT",
}
REBENCH_2 = {
    "repo": "gin-gonic/gin",
    "instance_id": "gin-gonic__gin-9",
    "base_commit": "4c288bc97ea371817199908d0d9b12de9dae327e",
    "created_at": 1700000000000,
    "image_name": "docker.io/swerebenchv2/gin-gonic-gin:9",
    "language": "go",
    "interface": "No new interfaces are introduced.",
    "license": "MIT",
    "patch": PATCH,
    "pr_description": "",
    "problem_statement": "It breaks",
    "test_patch": TEST_PATCH.replace("test_a.py", "a_test.go"),
    "FAIL_TO_PASS": ["TestA"],
    "PASS_TO_PASS": ["TestB"],
    "install_config": {"test_cmd": ["go test -v ./..."], "log_parser": "parse_log_gotest", "install": ["go mod tidy"]},
    "meta": {"llm_metadata": {"difficulty": "easy"}},
}
SWERL = {
    "instance": {
        "instance_id": "owner__name-1",
        "repo": "owner/name",
        "base_commit": "4c288bc97ea371817199908d0d9b12de9dae327e",
        "image_name": "org/name:1",
        "problem_statement": "It breaks",
        "setup_script": "make ready",
        "test_script": "run the-tests",
        "regression_script": "run old-tests",
        "fail_to_pass": ["tests/test_a.py::a"],
        "PASS_TO_PASS": "[]",
        "patch": PATCH,
    },
    "responses_create_params": {"input": []},
}
