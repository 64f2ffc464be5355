"""Which tasks a command works on; `gagar tasks list`, `show` and `sets`."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.markdown import Markdown
from rich.markup import escape
from rich.table import Table

from gagar_env.cli.output import console, counted, print_json
from gagar_env.errors import TaskError, UnknownTaskError
from gagar_env.tasks.faults import did_you_mean
from gagar_env.tasks.file import OnBad, load_task_file
from gagar_env.tasks.heads import folder_head
from gagar_env.tasks.public import PUBLIC, find_public, load_public
from gagar_env.tasks.registry import expand_name, load_task, task_folders, task_ids, task_sets
from gagar_env.tasks.task import Task
from gagar_env.tasks.template import new_task

_log = logging.getLogger(__name__)

WIDE = 110
"""Columns of a terminal from which on the tags are shown."""
MANY = 500
"""Registered tasks from which on a list reads only the head of each."""

OnBroken = Callable[[str, str], None]
"""Told the id of a task that does not load, and why."""


def select(
    names: Sequence[str],
    task_file: Path | None,
    repo: Path | None,
    *,
    skip: Path | None = None,
    on_broken: OnBroken | None = None,
) -> list[Task]:
    """The tasks of these names, or all of them, from a file or from the registry.

    Args:
        names: Ids of tasks and names of sets; with a file, the name of a public set stands for all of it.
        task_file: Where they are, in place of the registry.
        repo: Where the repositories of its rows are.
        skip: A quarantine file: these ids are left out.
        on_broken: Told of tasks that do not load, which are left out then; without it, the first one raises.

    Raises:
        UnknownTaskError: For a name that is not there, with those that are near.
        TaskError: If the file, or a task, is broken.
    """
    if task_file is None and repo is not None:
        raise TaskError("--repo says where the repositories of --task-file are: give --task-file as well")
    left_out = _skipped(skip)
    if task_file is None:
        found = list(_registered(names, left_out, on_broken))
    else:
        found = _of_file(names, task_file, repo, left_out, on_broken)
    return [task for task in found if task.id not in left_out] if left_out else found


def usable(names: Sequence[str], task_file: Path | None, repo: Path | None) -> list[Task]:
    """The tasks as `select` has them, without those that do not load: one warning names each.

    Raises:
        UnknownTaskError: As in `select`.
        TaskError: If the file as a whole is broken, or every task is.
    """
    faults: list[str] = []
    tasks = select(names, task_file, repo, on_broken=lambda _, reason: faults.append(reason))
    if faults and not tasks:
        raise TaskError(faults[0])
    for reason in faults:
        _log.warning("left out: %s", reason)
    return tasks


def select_one(name: str, task_file: Path | None, repo: Path | None) -> Task:
    """The task of that id.

    Raises:
        UnknownTaskError: If there is none.
        TaskError: If it is broken.
    """
    if task_file is None and repo is None:
        return load_task(name)
    broken: dict[str, str] = {}
    found = select([name], task_file, repo, on_broken=broken.__setitem__)
    if not found:
        raise TaskError(broken[name])
    return found[0]


def make_new(name: str, folder: Path) -> None:
    """Write a template task and say what to do with it.

    Raises:
        TaskError: If it cannot be written there.
    """
    made = new_task(name, folder)
    console.print(f"made {made}: change its files, then", markup=False, highlight=False)
    console.print(f"  gagar check --task-file {shlex.quote(str(made))}", markup=False, highlight=False, soft_wrap=True)


def _skipped(skip: Path | None) -> frozenset[str]:
    if skip is None:
        return frozenset()
    from gagar_env.checks.quarantine import read_quarantine

    return read_quarantine(skip)


def _registered(names: Sequence[str], left_out: frozenset[str], on_broken: OnBroken | None) -> Iterator[Task]:
    wanted: dict[str, None] = {}
    for name in names:
        try:
            ids = expand_name(name)
        except UnknownTaskError as error:
            if not Path(name).exists():
                raise
            raise TaskError(
                f"no task {name!r}, but there is a file or folder of that name: `--task-file {shlex.quote(name)}`"
            ) from error
        if ids is None:
            yield from load_public(name, on_bad=_told(on_broken))
        else:
            wanted.update(dict.fromkeys(ids))
    for task_id in wanted if names else task_ids():
        if task_id in left_out:
            continue
        try:
            yield load_task(task_id)
        except TaskError as error:
            if on_broken is None:
                raise
            on_broken(task_id, str(error))


def _of_file(
    names: Sequence[str],
    task_file: Path,
    repo: Path | None,
    left_out: frozenset[str],
    on_broken: OnBroken | None,
) -> list[Task]:
    broken: dict[str, str] = {}

    def note(task_id: str, reason: str) -> None:
        broken[task_id] = reason

    on_bad = None if on_broken is None else _told(note)
    tasks = {task.id: task for task in load_task_file(task_file, repo_dir=repo, on_bad=on_bad)}
    wanted = list(dict.fromkeys(name for name in names if find_public(name) is None))
    if names and not any(map(find_public, names)):
        for name in wanted:
            if name not in tasks and name not in broken:
                known = sorted({*tasks, *broken})
                raise UnknownTaskError(f"no task {name!r} in {task_file}{did_you_mean(name, known)}")
    else:
        wanted = list(dict.fromkeys([*tasks, *broken]))
    for task_id, reason in broken.items():
        if on_broken is not None and task_id in wanted and task_id not in left_out:
            on_broken(task_id, reason)
    return [tasks[name] for name in wanted if name in tasks]


def _told(on_broken: OnBroken | None) -> OnBad | None:
    if (told := on_broken) is None:
        return None
    return lambda row: told(row.id or row.where, row.reason)


def _row(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "title": task.title or task.problem_statement.strip().splitlines()[0],
        "tags": list(task.tags),
        "fail_to_pass": len(task.tests.fail_to_pass),
        "pass_to_pass": len(task.tests.pass_to_pass),
        "source": task.source,
    }


def rows(names: Sequence[str], task_file: Path | None, repo: Path | None) -> list[dict[str, Any]]:
    """One row for each task. Of very many registered ones only the heads are read, and counts are None."""
    if task_file is not None or repo is not None:
        return [_row(task) for task in usable(names, task_file, repo)]
    folders = task_folders()
    wanted: dict[str, None] = {}
    for name in names:
        if (ids := expand_name(name)) is None:
            return [_row(task) for task in usable(names, task_file, repo)]
        wanted.update(dict.fromkeys(ids))
    chosen = list(wanted) if names else list(folders)
    if len(chosen) <= MANY:
        return [_row(task) for task in usable(chosen, None, None)] if chosen else []
    found = []
    for task_id in chosen:
        if (folder := folders.get(task_id)) is None:
            found.append(_row(load_task(task_id)))
        else:
            head = folder_head(folder)
            counts = {"fail_to_pass": None, "pass_to_pass": None}
            found.append({"id": task_id, "title": head.title, "tags": list(head.tags), **counts, "source": str(folder)})
    return found


def show_list(rows: Sequence[dict[str, Any]], *, as_json: bool) -> None:
    """Print one line for each task."""
    if as_json:
        print_json(rows)
        return
    wide = console.width >= WIDE
    table = Table(title=counted(len(rows), "task"))
    table.add_column("task", no_wrap=len(max((row["id"] for row in rows), key=len, default="")) < console.width // 2)
    table.add_column("what")
    if wide:
        table.add_column("tags")
    table.add_column("fail\nto pass", justify="right")
    table.add_column("pass\nto pass", justify="right")
    for row in rows:
        tags = [escape(", ".join(row["tags"]))] if wide else []
        counts = ("-" if row[name] is None else str(row[name]) for name in ("fail_to_pass", "pass_to_pass"))
        table.add_row(escape(row["id"]), escape(row["title"][:90]), *tags, *counts)
    console.print(table)


def show(task: Task, *, as_json: bool) -> None:
    """Print one task. Solutions and hidden tests are left out."""
    if as_json:
        kept = task.model_dump(mode="json", exclude={"solution_patch", "solutions", "extra"})
        for secret in ("patch", "script"):
            kept["tests"].pop(secret, None)
        print_json(kept)
        return
    console.rule(task.id)
    console.print(Markdown(task.problem_statement))
    console.rule("judged by")
    limits = task.limits
    lines = (
        _judged(task),
        f"{_runs_in(task)}; at most {counted(limits.turns, 'turn')}, {limits.command_s:g} s for a command",
        f"from {task.source or 'a Task object'}",
    )
    for line in lines:
        console.print(line, markup=False, highlight=False)


def _runs_in(task: Task) -> str:
    environment, image = task.environment, task.image
    if environment.missing:
        return environment.missing
    if image is not None and not environment.requirements:
        named = image.reference or (str(image.archive) if image.archive else "of its Dockerfile")
        return f"image {named}, in {image.workdir}"
    return f"Python {environment.python or 'that runs gagar'}, {counted(len(environment.requirements), 'package')}"


def _judged(task: Task) -> str:
    tests = task.tests
    how = f"its script, read by {tests.parser}" if tests.script and tests.parser else "its script"
    if tests.mode == "exact_map":
        return f"{counted(len(tests.expected), 'test')} must end as listed, and no other may run, by {how}"
    if tests.mode == "exit_code":
        return "the exit code of its script must be 0"
    if tests.mode == "reward_file":
        return f"its script must write a reward of {tests.pass_at:g} or more"
    where = how if tests.script else ", ".join(tests.files) or "files that are not known"
    return (
        f"{counted(len(tests.fail_to_pass), 'test')} must go from fail to pass, {len(tests.pass_to_pass)} must keep "
        f"passing, in {where}"
    )


def show_sets(*, as_json: bool) -> None:
    """Print the sets: those that are registered, and the public ones."""
    found = [{"name": name, "tasks": len(ids), "what": "on this machine"} for name, ids in task_sets().items()]
    for name, public in PUBLIC.items():
        found.append({"name": name, "tasks": None, "what": f"{public.dataset} ({public.split}): {public.about}"})
    if as_json:
        print_json(found)
        return
    table = Table()
    table.add_column("set", no_wrap=True)
    table.add_column("tasks", justify="right")
    table.add_column("what")
    for row in found:
        table.add_row(
            escape(str(row["name"])), "-" if row["tasks"] is None else str(row["tasks"]), escape(str(row["what"]))
        )
    console.print(table)
