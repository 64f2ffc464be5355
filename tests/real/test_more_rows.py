"""Further real rows of public sets, on clones of their repositories.

Neither rows nor code are part of the repository, only what the sets do not say: `more-envs.json` has the environment of
each row, and the SHA-256 of the row. `GAGAR_MORE_ROWS` names a file with the rows, `GAGAR_REPO_DIR` the clones.
"""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from gagar_env.check import check_task
from gagar_env.tasks import Task, load_task_file

ENVIRONMENTS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("more-envs.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def rows() -> Path:
    file = os.environ.get("GAGAR_MORE_ROWS", "")
    if not file:
        pytest.skip("GAGAR_MORE_ROWS is not set: it names a file with the rows of more-envs.json")
    if not Path(file).is_file():
        pytest.fail(f"GAGAR_MORE_ROWS: there is no file {file}")
    return Path(file)


def load(rows: Path, repo_dir: Path | None = None) -> dict[str, Task]:
    tasks = load_task_file(rows, repo_dir=repo_dir, environments=ENVIRONMENTS)
    return {task.id: task for task in tasks if task.id in ENVIRONMENTS}


def test_environments_are_pinned_and_say_which_row_they_are_for() -> None:
    assert len(ENVIRONMENTS) >= 10
    assert len({known["repo"] for known in ENVIRONMENTS.values()}) >= 4
    for known in ENVIRONMENTS.values():
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in known["requirements"])
        assert re.fullmatch(r"[0-9a-f]{64}", known["record_sha256"])
        assert known["set"]


def test_rows_load_unchanged(rows: Path) -> None:
    tasks = load(rows)
    assert set(tasks) == set(ENVIRONMENTS)
    for name, task in tasks.items():
        packed = json.dumps(task.extra, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        assert hashlib.sha256(packed.encode()).hexdigest() == ENVIRONMENTS[name]["record_sha256"]
        assert task.environment.requirements == tuple(ENVIRONMENTS[name]["requirements"])
        assert not task.environment.missing
        assert task.tests.fail_to_pass


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
def test_row_on_its_base_commit(rows: Path, name: str) -> None:
    folder = os.environ.get("GAGAR_REPO_DIR", "")
    if not folder:
        pytest.skip("GAGAR_REPO_DIR is not set: it names a clone, or a folder of clones")
    task = load(rows, Path(folder))[name]
    if task.repo.missing:
        pytest.skip(task.repo.missing)
    result = check_task(task)
    assert result.problems == ()
    assert [(run.name, run.outcome.value) for run in result.runs] == [("no-op", "failed"), ("reference", "passed")]
