"""Which tasks were checked on this machine, and the warning for those that were not.

A record is one small file in the cache, named by the task's digest: a task that changes is unchecked again.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from gagar_env.cache import cache_root
from gagar_env.tasks.builtin import FOLDER as BUILTIN
from gagar_env.tasks.digest import task_digest
from gagar_env.tasks.task import Task

SWITCH = "GAGAR_UNCHECKED"
"""Environment variable: `ignore` turns the warning off."""

_FAMILY = {"process": "host", "bwrap": "host", "rootfs": "image", "docker": "image"}
"""Kinds of sandbox that run a task in the same environment: a check in one counts for the other."""


class UncheckedTaskWarning(UserWarning):
    """Episodes are run on a task that `gagar check` has not found good on this machine."""


def record_checked(task: Task | str, *, sandbox: str, ok: bool = True, repeats: int = 1) -> None:
    """Note that a task was checked; `ok=False` takes back what an earlier check noted.

    Args:
        task: The task, or its `task_digest`.
        sandbox: The kind of sandbox that it was checked in.
        ok: Whether it was found good.
        repeats: How often it was verified.

    A cache that cannot be written is no fault: the task counts as unchecked then.
    """
    path = _path(task if isinstance(task, str) else task_digest(task))
    family = _family(sandbox)
    known = _read(path)
    if ok:
        known[family] = {
            "sandbox": sandbox,
            "repeats": repeats,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
    elif known.pop(family, None) is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}.part")
        part.write_text(json.dumps(known), "utf-8")
        part.replace(path)


def checked_in(task: Task | str) -> tuple[str, ...]:
    """Kinds of sandbox that a task, or the task of that digest, was found good in; built-in tasks in all."""
    if isinstance(task, Task) and is_built_in(task):
        return tuple(_FAMILY)
    known = _read(_path(task if isinstance(task, str) else task_digest(task)))
    return tuple(kind for kind in _FAMILY if _FAMILY[kind] in known) + tuple(
        k for k in known if k not in _FAMILY.values()
    )


def is_built_in(task: Task) -> bool:
    """Whether it is one of this package's own, which are checked before each release."""
    return bool(task.source) and BUILTIN in Path(task.source).parents


class _Watch:
    """What this process has looked up: one look at the cache for each task, one warning at all."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.warned = False
        self.good: set[tuple[str, str]] = set()


_watch = _Watch()


def warn_if_unchecked(task: Task, sandbox: str) -> None:
    """Warn, once in a process, that episodes are run on a task that was not checked.

    Args:
        task: The task.
        sandbox: The kind of sandbox that it runs in.

    Warns:
        UncheckedTaskWarning: With the command that checks it. `GAGAR_UNCHECKED=ignore` turns it off.
    """
    key = (task.id, _family(sandbox))
    if _watch.warned or key in _watch.good or os.environ.get(SWITCH, "") in ("ignore", "0", "off"):
        return
    if is_built_in(task) or sandbox in checked_in(task):
        _watch.good.add(key)
        return
    with _watch.lock:
        first, _watch.warned = not _watch.warned, True
    if not first:
        return
    warnings.warn(
        f"task {task.id} was not checked on this machine in a {sandbox} sandbox, and others may not have been: run "
        f"`{check_command(task)}` before you train ({SWITCH}=ignore turns this off)",
        UncheckedTaskWarning,
        stacklevel=3,
    )


def check_command(task: Task) -> str:
    """The command line that checks a task, as far as its origin is known."""
    if task.source and os.path.isdir(task.source):
        return f"gagar check --task-file {task.source}"
    return f"gagar check {task.id}" if not task.source else f"gagar check --task-file FILE {task.id}"


def _family(sandbox: str) -> str:
    return _FAMILY.get(sandbox, sandbox)


def _path(digest: str) -> Path:
    return cache_root() / "checked" / f"{digest}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
