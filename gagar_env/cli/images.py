"""`gagar images`: images of tasks, had ahead; and those that were made here."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
from rich.table import Table

from gagar_env.cli.output import console, counted, errors, print_json, progress_line
from gagar_env.engine import engine
from gagar_env.errors import GagarError, TaskError
from gagar_env.images import resolve_image
from gagar_env.images.made import find, made_here
from gagar_env.tasks.task import Image, Task


def pull(tasks: Sequence[Task], *, named: bool, as_json: bool) -> bool:
    """Have the images of tasks; True when all are there.

    Args:
        tasks: The tasks; those without an image are left out.
        named: The user named them, so that none may be left out.
        as_json: Print a list instead of a table.

    Raises:
        TaskError: If there is none to have.
    """
    without = [task.id for task in tasks if task.image is None]
    if without and (named or len(without) == len(tasks)):
        what = f"{without[0]} has" if named else f"{counted(len(tasks), 'task')}: none has"
        raise TaskError(f"{what} {'no' if named else 'an'} image: it runs on this machine's own system")
    images: dict[str, tuple[Image, list[str]]] = {}
    for task in tasks:
        if task.image is not None:
            images.setdefault(repr(task.image), (task.image, []))[1].append(task.id)
    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    rows: list[dict[str, Any]] = []
    with progress_line(*columns) as progress:
        bar = progress.add_task("", total=len(images))
        for image, users in images.values():
            rows.append(_had(image, users, tell=lambda line: progress.update(bar, description=line)))
            progress.advance(bar)
    _show(rows, as_json=as_json)
    for row in rows:
        if row["error"]:
            errors.print(f"gagar: {row['error']}", markup=False, highlight=False, soft_wrap=True)
    return not any(row["error"] for row in rows)


def _had(image: Image, users: list[str], *, tell: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"tasks": users, "image": "", "id": "", "digest": "", "size": 0, "error": ""}
    row["image"] = image.reference or str(image.archive or "Dockerfile")
    try:
        found = resolve_image(image, on_progress=tell)
        row |= {"id": found.id, "digest": found.digest}
        if found.archive is not None:
            row["size"] = found.archive.stat().st_size
        elif facts := find(found.id):
            row["size"] = int(facts.get("Size") or 0)
    except GagarError as error:
        row["error"] = str(error)
    return row


def _show(rows: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    table = Table("image", "id", "digest", "tasks")
    table.add_column("size", justify="right", no_wrap=True)
    for row in rows:
        if not row["error"]:
            digest = row["digest"].partition("@")[2][:19]
            users = row["tasks"][0] if len(row["tasks"]) == 1 else counted(len(row["tasks"]), "task")
            table.add_row(escape(row["image"]), row["id"][:19], digest or "-", users, _megabytes(row["size"]))
    if table.row_count:
        console.print(table)


def show_list(*, as_json: bool) -> None:
    """Print the images that this package made, newest first."""
    rows = [
        {
            "name": image["name"],
            "kind": image["kind"],
            "id": image["Id"],
            "created": datetime.fromtimestamp(image["Created"], timezone.utc).isoformat(timespec="seconds"),
            "size": image["Size"],
        }
        for image in made_here()
    ]
    if as_json:
        print_json(rows)
        return
    table = Table(caption="sizes count shared layers; `docker rmi NAME` removes one")
    table.add_column("name", overflow="fold")
    table.add_column("created", no_wrap=True)
    table.add_column("size", justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["name"], row["created"][:19].replace("T", " "), _megabytes(row["size"]))
    console.print(table)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def prune(*, as_json: bool) -> None:
    """Remove images that were made here, and say which."""
    import docker.errors

    removed = []
    for row in made_here():
        with contextlib.suppress(docker.errors.APIError):  # a container uses it, or another image is made of it
            engine().remove_image(row["name"])
            removed.append(row["name"])
    if as_json:
        print_json(removed)
    else:
        console.print(f"{counted(len(removed), 'image')} removed", highlight=False)
