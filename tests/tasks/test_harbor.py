"""Task directories of Harbor."""

from pathlib import Path

import pytest

from gagar_env.errors import TaskError
from gagar_env.tasks import load_task_file, load_task_folder
from gagar_env.tasks.folder import folder_task_id
from gagar_env.tasks.write import write_task_folder

TOML = """\
schema_version = "1.4"
[task]
name = "org/fix-build"
description = "Fix the build"
keywords = ["c"]
[metadata]
difficulty = "easy"
[verifier]
timeout_sec = 120.0
env = { MODE = "test", KEY = "${SECRET_KEY}" }
[agent]
timeout_sec = 900
[environment]
memory_mb = 2048
cpus = 1
network_mode = "no-network"
"""
FILES = {
    "task.toml": TOML,
    "instruction.md": "Make it build.\n",
    "environment/Dockerfile": "FROM python:3.12-slim\nWORKDIR /first\nWORKDIR /work/src\nCOPY a.c .\n",
    "environment/a.c": "int main;\n",
    "tests/test.sh": "#!/bin/bash\npytest /tests/test_it.py && echo 1 > /logs/verifier/reward.txt\n",
    "tests/test_it.py": "def test_it(): ...\n",
    "solution/solve.sh": "make\n",
}


@pytest.fixture
def harbor(tmp_path: Path):
    def make(**changed: str | None) -> Path:
        for path, text in {**FILES, **changed}.items():
            if text is not None:
                (tmp_path / "fix-build" / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / "fix-build" / path).write_text(text, "utf-8")
        return tmp_path / "fix-build"

    return make


def test_a_directory(harbor) -> None:
    folder = harbor()
    task = load_task_folder(folder)
    assert task.id == folder_task_id(folder) == "org/fix-build"
    assert (task.title, task.problem_statement) == ("Fix the build", "Make it build.\n")
    tests = task.tests
    assert (tests.mode, tests.reward_folder, tests.place) == ("reward_file", "/logs/verifier", "/tests")
    assert tests.script == FILES["tests/test.sh"]
    assert tests.folder == folder / "tests"
    assert tests.timeout_s == 120
    assert task.image.dockerfile == FILES["environment/Dockerfile"]
    assert (task.image.context, task.image.workdir) == (folder / "environment", "/work/src")
    assert task.repo.kind == "image"
    assert (task.limits.episode_s, task.limits.memory_mb, task.limits.cpus) == (900, 2048, 1)
    assert task.environment.variables == {"MODE": "test"}
    assert task.tags == ("harbor", "c")
    assert task.extra["harbor"]["metadata"] == {"difficulty": "easy"}
    assert task.extra["solve.sh"] == "make\n"
    assert load_task_file(folder.parent) == [task]


def test_it_becomes_a_folder_of_ours(harbor, tmp_path: Path) -> None:
    task = load_task_folder(harbor())
    again = load_task_folder(write_task_folder(task, tmp_path / "ours"))
    drop = {"source": True, "tests": {"folder"}}
    assert again.model_dump(exclude=drop) == task.model_dump(exclude=drop)


def test_an_image_by_name(harbor) -> None:
    text = TOML + 'docker_image = "org/image:1"\nworkdir = "/src"\n'
    task = load_task_folder(harbor(**{"task.toml": text}))
    assert (task.image.reference, task.image.dockerfile, task.image.workdir) == ("org/image:1", "", "/src")


@pytest.mark.parametrize("line", ['network_mode = "public"\n', 'network_mode = "allowlist"\n', ""])
def test_a_network_that_is_not_given_is_said(harbor, line: str) -> None:
    task = load_task_folder(harbor(**{"task.toml": TOML.replace('network_mode = "no-network"\n', line)}))
    assert any(tag.startswith("network:") for tag in task.tags)
    assert "which sandboxes do not give" in task.source


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"task.toml": TOML.replace('"1.4"', '"2.0"')}, "schema_version: '2.0' is not known"),
        ({"task.toml": TOML + "[[steps]]\nname = 'a'\n"}, "steps: a task of several steps"),
        ({"environment/docker-compose.yaml": "services: {}"}, "docker-compose.yaml: a task of several containers"),
        ({"task.toml": TOML + "gpus = 1\n"}, "neither GPU nor TPU"),
        ({"task.toml": TOML + "os = 'windows'\n"}, "environment.os: windows"),
        (
            {"task.toml": TOML.replace("[verifier]", "[verifier]\nenvironment_mode = 'separate'")},
            "verifier.environment_mode",
        ),
        ({"environment/Dockerfile": None}, "neither a docker_image nor a Dockerfile"),
        ({"tests/test.sh": None}, "tests/test.sh of fix-build: cannot be read"),
        ({"task.toml": "x ="}, "cannot be read"),
        ({"task.toml": TOML.replace("120.0", "'x'")}, "tests.timeout_s: "),
    ],
)
def test_what_does_not_run_here_is_refused_on_one_line(harbor, changed, said: str) -> None:
    with pytest.raises(TaskError) as caught:
        load_task_folder(harbor(**changed))
    assert said in str(caught.value)
    assert "fix-build" in str(caught.value)
    assert "\n" not in str(caught.value)
