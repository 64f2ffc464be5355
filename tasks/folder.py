"""A task as a folder.

task.toml             id, title, tags, [tests], [environment], [limits], [repo]
issue.md              the problem statement
repo/                 the base tree, unless [repo] names another source
solution.patch        the reference patch
solutions/*.patch     further known solutions; `clean-`, `sloppy-` or `wrong-` begins the file name
tests/                the hidden tests, mirroring the repository; or tests.patch
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from gagar_env._compat import tomllib
from gagar_env.errors import TaskError
from gagar_env.tasks.faults import check_relative, validated
from gagar_env.tasks.task import Task

TASK_FILE = "task.toml"

_KINDS = ("clean", "sloppy", "wrong")


def is_task_folder(path: Path) -> bool:
    """Whether `path` is a folder with a `task.toml`."""
    return (path / TASK_FILE).is_file()


def folder_task_id(path: Path) -> str:
    """The id of the task in `path`, read from the head of its `task.toml`; the folder's name when it says none.

    Reads no table and no other file, so that many tasks are listed quickly. A broken file is listed under its folder's
    name and explained when it is loaded.
    """
    head: list[str] = []
    try:
        with (path / TASK_FILE).open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("["):
                    break
                head.append(line)
        named = tomllib.loads("".join(head)).get("id")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        named = None
    return named if isinstance(named, str) else path.name


def load_task_folder(path: Path | str) -> Task:
    """Read the task in `path`.

    Raises:
        TaskError: One line that names the file and the field, for any fault of the folder.
    """
    folder = Path(path).expanduser().absolute()
    if not is_task_folder(folder):
        what = "has no task.toml" if folder.is_dir() else "is no folder"
        raise TaskError(f"task folder {path}: it {what}")
    where = f"{TASK_FILE} of {folder.name}"
    data = _toml(folder / TASK_FILE, where)
    for key in ("problem_statement", "solution_patch", "solutions", "source"):
        if key in data:
            raise TaskError(f"{where}: {key}: unknown field; it is a file of the folder")
    data.setdefault("id", folder.name)
    data["problem_statement"] = _text(folder, "issue.md")
    data["solution_patch"] = _bytes(folder, "solution.patch", "; make an empty one if there is no reference")
    data["solutions"] = _solutions(folder)
    data["source"] = str(folder)
    data["repo"] = _repo(folder, data.get("repo"), where)
    tests = data.get("tests")
    if isinstance(tests, dict):
        for key in ("patch", "folder"):
            if key in tests:
                raise TaskError(f"{where}: tests.{key}: unknown field; put the tests into tests/ or tests.patch")
        data["tests"] = tests | _hidden_tests(folder)
    task = validated(Task, data, where)
    _check_tests(task, where)
    return task


def _toml(path: Path, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TaskError(f"{where}: not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise TaskError(f"{where}: not valid UTF-8") from None
    except OSError as error:
        raise TaskError(f"{where}: cannot be read: {error.strerror}") from None


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


def _solutions(folder: Path) -> list[dict[str, Any]]:
    found = []
    for path in sorted((folder / "solutions").glob("*.patch")):
        kind, _, rest = path.stem.partition("-")
        if kind not in _KINDS or not rest:
            raise TaskError(
                f"solutions/{path.name} of {folder.name}: its name must begin with clean-, sloppy- or wrong-"
            )
        patch = _bytes(folder, f"solutions/{path.name}")
        found.append({"name": path.stem, "kind": kind, "patch": patch})
    return found


def _repo(folder: Path, given: object, where: str) -> object:
    if given is None:
        if not (folder / "repo").is_dir():
            raise TaskError(f"repo of {folder.name}: the folder is missing")
        return {"kind": "tree", "path": folder / "repo"}
    if isinstance(given, dict) and isinstance(given.get("path"), str):
        path = Path(given["path"]).expanduser()
        return given | {"path": path if path.is_absolute() else folder / path}
    return given


def _hidden_tests(folder: Path) -> dict[str, object]:
    tree, patch = folder / "tests", folder / "tests.patch"
    if tree.is_dir() == patch.is_file():
        state = "both are there" if tree.is_dir() else "neither is there"
        raise TaskError(f"tests of {folder.name}: a folder tests/ or a file tests.patch: {state}")
    return {"folder": tree} if tree.is_dir() else {"patch": _bytes(folder, "tests.patch")}


def _check_tests(task: Task, where: str) -> None:
    """What can be seen without running anything: a listed file that is nowhere, lists that cannot decide."""
    tests = task.tests
    for field, ids in (("files", tests.files), ("fail_to_pass", tests.fail_to_pass)):
        if not ids:
            raise TaskError(f"{where}: tests.{field}: must not be empty")
    named = (*tests.fail_to_pass, *tests.pass_to_pass)
    if twice := sorted(test for test, times in Counter(named).items() if times > 1):
        raise TaskError(f"{where}: tests: {twice[0]!r} is listed twice")
    for field, paths in (("files", tests.files), ("support", tests.support)):
        for path in paths:
            check_relative(path, f"{where}: tests.{field}")
    if tests.folder is None or task.repo.kind != "tree":
        return
    for path in tests.files:
        if not any((root / path).exists() for root in (tests.folder, task.repo.path)):
            raise TaskError(f"{where}: tests.files: {path!r} is neither in tests/ nor in repo/")
