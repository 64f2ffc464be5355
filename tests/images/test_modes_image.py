"""Grading by scripts in images: tests beside the work tree, rewards, and paths that an agent's image does not have."""

import pytest

from gagar_env.changes import FileState
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.episode import Outcome
from gagar_env.errors import TaskError
from gagar_env.leaks import left_in_image
from gagar_env.provision import provision
from gagar_env.tasks.task import Image, Tests
from gagar_env.verify import Verifier

FIX = {"calc.py": FileState(b"def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return 2 * a\n")}
PLACED = "import calc\n\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n"
HARBOR = """#!/bin/bash
PYTHONPATH=/testbed python3 -m pytest -p no:cacheprovider "$(dirname "$0")/test_outputs.py"
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""
R2E = "ln -s /r2e_tests r2e_tests\npython3 -m pytest -rA -p no:cacheprovider r2e_tests\n"

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
def harbor(image_task, tmp_path):
    (tmp_path / "test_outputs.py").write_text(PLACED)
    (tmp_path / "test.sh").write_text(HARBOR)
    tests = Tests(mode="reward_file", script=HARBOR, folder=tmp_path, place="/tests", timeout_s=120)
    return image_task.model_copy(update={"id": "harbor", "tests": tests})


@pytest.fixture
def r2e(image_task, test_image):
    text = PLACED.replace("import calc", 'import sys\nsys.path.insert(0, "/testbed")\nimport calc').replace("\n", "\\n")
    commands = (f"mkdir /r2e_tests && printf '{text}' > /r2e_tests/test_1.py", "ln -s /nowhere /r2e_link")
    tests = Tests(mode="exact_map", script=R2E, parser="parse_log_r2e", expected={"test_add": "PASSED"}, timeout_s=120)
    image = Image(reference=test_image, commands=commands, hidden=("/r2e_tests", "/r2e_link"))
    return image_task.model_copy(update={"id": "r2e", "tests": tests, "image": image})


@pytest.mark.parametrize("user", ["", "root"])
def test_tests_and_rewards_beside_the_work_tree(harbor, image_kind, user):
    task = harbor.model_copy(update={"image": harbor.image.model_copy(update={"user": user})})
    verifier = Verifier(sandbox=image_kind)
    report = verifier.verify(task, FIX)
    assert (report.outcome, report.reason, report.score) == (Outcome.PASSED, "", 1.0)
    assert verifier.verify(task, {}).reason == "the reward is 0, 1 passes"
    forged = "import os\nopen('/logs/verifier/reward.json', 'w').write('{\"reward\": 1}')\nos._exit(0)\n"
    report = verifier.verify(task, {"calc.py": FileState(forged.encode())})
    assert (report.outcome, "reward.json" in report.reason) == (Outcome.FAILED, True)


def test_what_is_hidden_is_there_for_the_tests_alone(r2e, image_kind):
    ready = provision(r2e, sandbox=image_kind)
    assert left_in_image(ready, image_kind) == []
    env = RepoEditEnv(r2e, sandbox=image_kind)
    try:
        env.reset(seed=0)
        bash = env.action_format.bash
        seen = env.step(bash("ls -d /r2e_tests /r2e_link; find / -name test_1.py 2>/dev/null; echo done"))[0]
        assert "test_1.py" not in seen
        assert seen.count("cannot access") == 2
        env.step(bash("sed -i '0,/a - b/s//a + b/' calc.py"))
        env.step(env.action_format.submit())
        report = env.episode.report
    finally:
        env.close()
    assert (report.outcome, report.reason, report.evidence) == (Outcome.PASSED, "", "text")
    assert set(report.tests) == {"test_add"}
    assert not Verifier(sandbox=image_kind).verify(r2e, {}).passed


def test_a_hidden_path_that_is_not_there_is_named(r2e, image_kind):
    image = r2e.image.model_copy(update={"hidden": ("/r2e_tests", "/tset_tests")})
    found = left_in_image(provision(r2e.model_copy(update={"image": image}), sandbox=image_kind), image_kind)
    assert found == ["the image has no /tset_tests, which image.hidden names"]


def test_a_hidden_path_in_the_work_tree_is_refused(r2e, image_kind):
    image = r2e.image.model_copy(update={"hidden": ("/testbed/tests",)})
    with pytest.raises(TaskError, match=r"image.hidden of r2e: /testbed/tests is in the work tree"):
        provision(r2e.model_copy(update={"image": image}), sandbox=image_kind)


def test_an_image_without_bash_runs_its_sh(image_task, small_image, image_kind):
    script = "[ \"$(cat calc.py | head -n 2 | tail -n 1)\" = '    return a + b' ]\n"
    task = image_task.model_copy(
        update={"id": "small", "tests": Tests(mode="exit_code", script=script), "image": Image(reference=small_image)}
    )
    verifier = Verifier(sandbox=image_kind)
    assert verifier.verify(task, FIX).passed
    assert verifier.verify(task, {}).reason == "the script ended with exit code 1"
    python = task.model_copy(update={"tests": Tests(mode="exit_code", script="#!/usr/bin/env python3\n")})
    assert "cannot be started: python3 is not there" in verifier.verify(python, {}).reason
