"""A task as a folder.

task.toml             id, title, tags, [tests], [environment], [limits], [repo], [image]
issue.md              the problem statement
repo/                 the base tree, unless [repo] names another source
bug.patch             applied to the base tree before it is committed
solution.patch        the reference patch
solutions/*.patch     further known solutions; `clean-`, `sloppy-` or `wrong-` begins the file name
solutions.json        those whose names or order files do not keep: a list of name, kind, patch
tests/                the hidden tests, mirroring the repository; or tests.patch
run_tests.sh          what runs them, where it is not pytest; it may stand alone
extra.json            the raw source row
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gagar_env._compat import tomllib
from gagar_env.errors import TaskError
from gagar_env.tasks.faults import check_tests, validated
from gagar_env.tasks.formats.harbor import harbor_id, is_harbor_folder, load_harbor_folder
from gagar_env.tasks.heads import folder_head
from gagar_env.tasks.paths import absolute_paths
from gagar_env.tasks.task import Task

TASK_FILE = "task.toml"
ISSUE_FILE = "issue.md"
SOLUTION_FILE = "solution.patch"
SOLUTIONS_FILE = "solutions.json"
BUG_FILE = "bug.patch"
TESTS_PATCH_FILE = "tests.patch"
SCRIPT_FILE = "run_tests.sh"
EXTRA_FILE = "extra.json"

_KINDS = ("clean", "sloppy", "wrong")


def is_task_folder(path: Path) -> bool:
    """Whether `path` is a folder with a `task.toml`; one that is still being written is none."""
    half_written = path.name.startswith(".") and path.name.endswith(".tmp")
    return (path / TASK_FILE).is_file() and not half_written


def folder_task_id(path: Path) -> str:
    """The id of the task in `path`, read from the head of its `task.toml`; the folder's name when it says none.

    Reads no table and no other file, so that many tasks are listed quickly. A broken file is listed under its folder's
    name and explained when it is loaded.
    """
    return harbor_id(path) if is_harbor_folder(path) else folder_head(path).id


def load_task_folder(path: Path | str) -> Task:
    """Read the task in `path`: a folder as above, or a task directory of Harbor.

    Raises:
        TaskError: One line that names the file and the field, for any fault of the folder.
    """
    folder = Path(path).expanduser().absolute()
    if not is_task_folder(folder):
        what = "has no task.toml" if folder.is_dir() else "is no folder"
        raise TaskError(f"task folder {path}: it {what}")
    if is_harbor_folder(folder):
        return load_harbor_folder(folder)
    where = f"{TASK_FILE} of {folder.name}"
    data = _toml(folder / TASK_FILE, where)
    for key in ("problem_statement", "solution_patch", "solutions", "source"):
        if key in data:
            raise TaskError(f"{where}: {key}: unknown field; it is a file of the folder")
    data.setdefault("id", folder.name)
    data["problem_statement"] = _text(folder, ISSUE_FILE)
    data["solution_patch"] = _bytes(folder, SOLUTION_FILE, "; make an empty one if there is no reference")
    data["solutions"] = _solutions(folder)
    data["source"] = str(folder)
    if (folder / EXTRA_FILE).exists():
        _only_here(data, "extra", EXTRA_FILE, where)
        data["extra"] = _parsed(folder, EXTRA_FILE)
    data["repo"] = _repo(folder, data.get("repo"), where)
    tests = data.get("tests")
    if isinstance(tests, dict):
        for key in ("patch", "folder"):
            if key in tests:
                raise TaskError(f"{where}: tests.{key}: unknown field; put the tests into tests/ or tests.patch")
        if (folder / SCRIPT_FILE).exists():
            _only_here(tests, "script", SCRIPT_FILE, f"{where}: tests")
            tests = tests | {"script": _text(folder, SCRIPT_FILE)}
        data["tests"] = tests | _hidden_tests(folder, alone="script" in tests)
    data = absolute_paths(data, folder)
    task = validated(Task, data, where)
    _check_tests(task, where)
    return task


def _toml(path: Path, where: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TaskError(f"{where}: not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise TaskError(f"{where}: not valid UTF-8") from None
    except OSError as error:
        raise TaskError(f"{where}: cannot be read: {error.strerror}") from None
    return found


def _bytes(folder: Path, name: str, advice: str = "") -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise TaskError(f"{name} of {folder.name}: the file is missing{advice}") from None
    except OSError as error:
        raise TaskError(f"{name} of {folder.name}: cannot be read: {error.strerror}") from None


def _text(folder: Path, name: str) -> str:
    try:
        text = _bytes(folder, name).decode("utf-8")
    except UnicodeDecodeError:
        raise TaskError(f"{name} of {folder.name}: not valid UTF-8") from None
    if not text.strip():
        raise TaskError(f"{name} of {folder.name}: must not be empty")
    return text


def _parsed(folder: Path, name: str) -> Any:
    try:
        return json.loads(_bytes(folder, name))
    except (ValueError, RecursionError) as error:
        raise TaskError(f"{name} of {folder.name}: not valid JSON: {error}") from None


def _only_here(table: dict[str, Any], field: str, file: str, where: str) -> None:
    if field in table:
        raise TaskError(f"{where}: {field}: is given twice, here and in the file {file}")


def _solutions(folder: Path) -> list[Any]:
    found: list[Any] = []
    for path in sorted((folder / "solutions").glob("*.patch")):
        kind, _, rest = path.stem.partition("-")
        if kind not in _KINDS or not rest:
            raise TaskError(
                f"solutions/{path.name} of {folder.name}: its name must begin with clean-, sloppy- or wrong-"
            )
        patch = _bytes(folder, f"solutions/{path.name}")
        found.append({"name": path.stem, "kind": kind, "patch": patch})
    if (folder / SOLUTIONS_FILE).exists():
        more = _parsed(folder, SOLUTIONS_FILE)
        if not isinstance(more, list):
            raise TaskError(f"{SOLUTIONS_FILE} of {folder.name}: not a list")
        found += more
    return found


def _repo(folder: Path, given: object, where: str) -> object:
    if given is None:
        if not (folder / "repo").is_dir():
            raise TaskError(f"repo of {folder.name}: the folder is missing")
        given = {"kind": "tree", "path": "repo"}
    if isinstance(given, dict) and (folder / BUG_FILE).exists():
        _only_here(given, "patch", BUG_FILE, f"{where}: repo")
        given = given | {"patch": _bytes(folder, BUG_FILE)}
    return given


def _hidden_tests(folder: Path, *, alone: bool) -> dict[str, object]:
    """The tests' place; there need be none where a script stands alone."""
    tree, patch = folder / "tests", folder / TESTS_PATCH_FILE
    if tree.is_dir() == patch.is_file():
        if alone and not tree.is_dir():
            return {}
        state = "both are there" if tree.is_dir() else "neither is there"
        raise TaskError(f"tests of {folder.name}: a folder tests/ or a file tests.patch: {state}")
    return {"folder": tree} if tree.is_dir() else {"patch": _bytes(folder, TESTS_PATCH_FILE)}


def _check_tests(task: Task, where: str) -> None:
    """What can be seen without running anything: a listed file that is nowhere, lists that cannot decide."""
    tests = task.tests
    needed = (
        ("files", tests.files, not tests.script),
        ("fail_to_pass", tests.fail_to_pass, tests.mode == "f2p_p2p"),
        ("expected", tests.expected, tests.mode == "exact_map"),
    )
    for field, ids, is_needed in needed:
        if is_needed and not ids:
            raise TaskError(f"{where}: tests.{field}: must not be empty")
    check_tests(tests, where)
    if tests.folder is None or tests.place or task.repo.kind != "tree":
        return
    for path in tests.files:
        if not any((root / path).exists() for root in (tests.folder, task.repo.path)):
            raise TaskError(f"{where}: tests.files: {path!r} is neither in tests/ nor in repo/")
