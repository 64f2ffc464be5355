"""Environments of rows that do not say what they run in, from what `swebench` knows of their repository and version.

What is left open there (names without a version, what the repository itself requires, pytest) is resolved in a dry run
to what there was when the row was made, or when its Python was a year old if that was later; and written down. Nothing
of the repository runs; packages without a wheel are built in a sandbox. What cannot be pinned so is not pinned: the row
then runs in its set's image, or says why not.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from gagar_env.cache import Progress
from gagar_env.errors import GagarError, TaskError
from gagar_env.gitcommand import find_git_dir, git
from gagar_env.interpreters import find_interpreter
from gagar_env.making.by_date import resolve_by_date
from gagar_env.making.candidate import refusal
from gagar_env.making.declared import read_declared
from gagar_env.making.environment import generated_files, modules_in, refuse_compiled, required_by_tests, source_folder
from gagar_env.package_index import normal_name
from gagar_env.provision import provision_base
from gagar_env.swebench.pins import RepoSpec
from gagar_env.tasks.formats.base import ACTIVATE, CONDA_PYTHON
from gagar_env.tasks.formats.base import test_files as files_of_tests
from gagar_env.tasks.formats.images import SWE_BENCH_MULTILINGUAL, SWE_BENCH_PYTHON, image_by_rule
from gagar_env.tasks.task import Task

_LINE = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<extras>\[[^\]]*\])?\s*(?P<rest>[^#]*)")
_EXTRA = re.compile(r"\.\[[^\]]+\]")
_DEEPEST = 4
_PYTHONS = {
    **{"3.6": (2016, 12, 23), "3.7": (2018, 6, 27), "3.8": (2019, 10, 14), "3.9": (2020, 10, 5), "3.10": (2021, 10, 4)},
    **{"3.11": (2022, 10, 24), "3.12": (2023, 10, 2), "3.13": (2024, 10, 7), "3.14": (2025, 10, 7)},
}
"""When each version was released."""


def needs_pins(task: Task) -> bool:
    """Whether the row of `task` leaves open what its tests run in."""
    row = {str(key).lower(): value for key, value in task.extra.items()}
    named = any(row.get(name) for name in ("image", "image_name", "docker_image"))
    return bool(row.get("version") and row.get("repo")) and not task.tests.script and not named


def entry_for(
    task: Task, spec: RepoSpec | None, *, python: str = "", on_progress: Progress | None = None
) -> dict[str, Any]:
    """The entry of an `environments.json` for the row of `task`: pins, or an image, or why neither is known.

    Args:
        task: As `load_task_file` reads it without any environments; its clone is needed for pins.
        spec: What `swebench` knows of its repository and version.
        python: The version to take in the place of the one that `swebench` names.
        on_progress: Told what takes time.
    """
    row = {str(key).lower(): value for key, value in task.extra.items()}
    repo, version = str(row["repo"]), str(row["version"])
    if spec is None:
        return {"missing": f"swebench knows nothing of {repo} {version}, which {task.id} needs: name its environment"}
    if spec.fail_only:
        return {"missing": f"the tests of {repo} print failures alone, so that {task.id} cannot be graded"}
    try:
        return _on_host(task, spec, row, python, on_progress)
    except GagarError as error:
        reason = str(error)
    if repo.lower() not in SWE_BENCH_PYTHON | SWE_BENCH_MULTILINGUAL:
        return {"missing": f"no environment for {task.id}: {reason}"}
    entry: dict[str, Any] = {"image": image_by_rule("swe-bench", task.id), "note": f"not pinned: {reason}"}
    if spec.by_pytest:
        return entry | {"python": CONDA_PYTHON}
    return entry | _script(task, spec, before=ACTIVATE)


def _on_host(
    task: Task, spec: RepoSpec, row: Mapping[str, Any], python: str, on_progress: Progress | None
) -> dict[str, Any]:
    """Python and pins for a sandbox without an image.

    Raises:
        GagarError: If they cannot be had without a guess.
    """
    if not spec.in_python:
        raise refusal("language", "it is no Python repository")
    if task.repo.kind == "image" or task.repo.missing:
        raise refusal("no_clone", "no clone was given")
    if any("apt" in command.split() or "apt-get" in command.split() for command in spec.pre_install):
        raise refusal("system_packages", "it needs packages of the system")
    before = made_at(row.get("created_at"))
    if before is None:
        raise refusal("no_date", "the row has no created_at, by which to choose versions")
    tree = provision_base(task).tree
    name = str(row["repo"]).rpartition("/")[2]
    refuse_compiled(tree, name)
    declared = read_declared(tree)
    own = {normal_name(name), normal_name(declared.name or name)}
    read = _reader(task, tree, row)
    lines = [*_from_files(read, spec.requirement_files), *declared.runtime]
    if any(_EXTRA.search(command) for command in spec.install):
        # Of an extra for developers what the tests import, or pytest loads: not what builds documents and the like.
        modules = {*modules_in(tree), *modules_in(tree / source_folder(tree))}
        lines += required_by_tests(tree, declared, modules, normal_name(declared.name or name))
    if spec.by_pytest:
        lines.append("pytest")
    # These are installed last, over what the repository asks for.
    last = {normal_name(_name(line)) for line in spec.packages if "==" in line}
    lines = [*spec.packages, *(line for line in lines if normal_name(_name(line)) not in last)]
    wanted = [line for line in dict.fromkeys(lines) if normal_name(_name(line)) not in own]
    version = python or spec.python
    found = find_interpreter(version)
    before = max(before, in_use_since(found.version))
    pins = resolve_by_date(wanted, found, before, on_progress=on_progress)
    layout = source_folder(tree)
    entry = {
        "repo": row["repo"],
        "python": version,
        "requirements": [pin for pin in pins if normal_name(_name(pin)) not in own],
        "pythonpath": [layout],
        "generated_files": generated_files(tree, layout, declared, declared.name or name, f"{row['version']}.0"),
        "test_command": " && ".join(spec.test_commands),
        "resolved_before": before.isoformat(),
    }
    return entry if spec.by_pytest else entry | _script(task, spec, before="")


def made_at(value: Any) -> datetime | None:
    """When a row was made: ISO text, or seconds or milliseconds since 1970; None where it does not say it."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        else:
            found = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def in_use_since(python: str) -> datetime:
    """When packages were made for a Python: a year after its release. Nothing older is known to run in it."""
    released = _PYTHONS.get(".".join(python.split(".")[:2]), (2016, 12, 23))
    return datetime(*released, tzinfo=timezone.utc) + timedelta(days=365)


def _script(task: Task, spec: RepoSpec, *, before: str) -> dict[str, str]:
    """How tests run that are not pytest's."""
    if not spec.parser or not spec.test_commands:
        return {"missing": f"swebench names neither command nor parser for {task.id}"}
    commands = [*spec.build, *spec.test_commands]
    if spec.in_python:
        named = files_of_tests(task.tests.patch.decode("utf-8", "surrogateescape"))
        if task.tags[-1] == "django/django":
            named = [path.removeprefix("tests/").removesuffix(".py").replace("/", ".") for path in named]
        commands[-1] = " ".join([commands[-1], *map(shlex.quote, named)])
    lines = ["#!/bin/bash", *([before.rstrip("\n")] if before else []), *commands]
    return {"script": "\n".join(lines) + "\n", "parser": spec.parser}


def _reader(task: Task, tree: Path, row: Mapping[str, Any]) -> Callable[[str], str | None]:
    """Reads a file of the commit that the set takes for the environment; of the base tree where it is not there."""
    commit = str(row.get("environment_setup_commit") or "")
    clone = find_git_dir(task.repo.path) if task.repo.kind == "git" and task.repo.path != Path() else None

    def read(name: str) -> str | None:
        if name.startswith(("/", "../")):
            return None
        if clone is not None and re.fullmatch(r"[0-9a-f]{40}", commit):
            with suppress(TaskError):  # the clone may be without it
                return git(clone, "cat-file", "blob", f"{commit}:{name}").decode("utf-8", "replace")
        path = tree / name
        inside = os.path.realpath(path).startswith(os.path.realpath(tree) + os.sep)
        return path.read_text("utf-8", errors="replace") if inside and path.is_file() else None

    return read


def _from_files(read: Callable[[str], str | None], names: tuple[str, ...]) -> Iterator[str]:
    """The lines of the first of these files that is there, and of those that it names."""
    first = next((name for name in names if read(name) is not None), None)
    if first is None and names:
        raise refusal("no_requirements", f"the repository has none of {', '.join(names)}")
    if first is not None:
        yield from _file_lines(read, first, _DEEPEST)


def _file_lines(read: Callable[[str], str | None], name: str, depth: int) -> Iterator[str]:
    text = read(name) if depth >= 0 else None
    if text is None:
        raise refusal("no_requirements", f"{name}: is no file of the repository")
    for raw in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        line = re.sub(r"\s--hash[= ]\S+", "", line).strip()
        if other := re.fullmatch(r"(?:-r|--requirement)[ =]?\s*(\S+)", line):
            yield from _file_lines(read, os.path.normpath(f"{os.path.dirname(name)}/{other[1]}"), depth - 1)
        elif not line or line.startswith(("-e .", ".[", "-c ", "--constraint", "-i ", "--index", "--extra", "-f ")):
            continue
        elif line.startswith(("-", ".")) or "://" in line or " @ " in line:
            raise refusal("address", f"{name}: {line[:80]!r} names no release of a project")
        else:
            yield line


def _name(requirement: str) -> str:
    found = _LINE.match(requirement)
    return found["name"] if found else requirement
