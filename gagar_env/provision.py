"""All that a task needs before its first sandbox: base tree, environment, and the specification of its sandboxes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

from gagar_env.bases import Base, prepare_base
from gagar_env.cache import Progress, cache_root
from gagar_env.environments import BuiltEnvironment, prepare_environment
from gagar_env.sandbox.base import Limits, SandboxSpec
from gagar_env.tasks.task import Task

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """A task that is ready to run."""

    task: Task
    base: Base
    environment: BuiltEnvironment
    spec: SandboxSpec


class _Once(Generic[Value]):
    """Values by key, each made by the first thread that asks; the others wait for it. A failure is not kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[str, Future[Value]] = {}

    def get(self, key: str, make: Callable[[], Value]) -> Value:
        with self._lock:
            mine = key not in self._made
            future = self._made.setdefault(key, Future())
        if mine:
            try:
                future.set_result(make())
            except BaseException as error:
                with self._lock:
                    del self._made[key]
                future.set_exception(error)
        return future.result()


_bases: _Once[Base] = _Once()
_environments: _Once[BuiltEnvironment] = _Once()


def provision_base(task: Task, *, on_progress: Progress | None = None) -> Base:
    """The base tree that `provision` gives `task`, without its environment: for what runs no tests, as grading.

    Raises:
        TaskError: If the task's source is broken or not known.
        EnvironmentBuildError: If this machine cannot provide it.
    """
    return _bases.get(
        str(cache_root()) + repr((task.repo, sorted(task.environment.generated_files.items()))),
        lambda: prepare_base(task, on_progress=on_progress),
    )


def provision(task: Task, *, on_progress: Progress | None = None) -> Provision:
    """Prepare the base tree and the environment of `task`, each once in this process and once in the cache.

    A source folder that changes while this process runs is not read again.

    Args:
        task: The task.
        on_progress: Told what takes time, one line each.

    Raises:
        TaskError: If the task's source or environment is broken or not known.
        EnvironmentBuildError: If this machine cannot provide it.
    """
    base = provision_base(task, on_progress=on_progress)
    environment = _environments.get(
        str(cache_root()) + task.environment.model_dump_json(exclude={"generated_files", "pythonpath", "variables"}),
        lambda: prepare_environment(task.environment, on_progress=on_progress),
    )
    limits = task.limits
    spec = SandboxSpec(
        tree=base.tree,
        env=task.environment.variables,
        search_path=(environment.bin,),
        pythonpath=task.environment.pythonpath,
        expose=environment.expose,
        limits=Limits(
            memory_mb=limits.memory_mb,
            processes=limits.processes,
            disk_mb=limits.disk_mb,
            file_mb=min(256, limits.disk_mb),
        ),
    )
    return Provision(task=task, base=base, environment=environment, spec=spec)
