"""All that a task needs before its first sandbox: base tree, environment, and the specification of its sandboxes."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
from dataclasses import dataclass

from gagar_env.bases import Base, prepare_base
from gagar_env.cache import Once, Progress, cache_root
from gagar_env.environments import BuiltEnvironment, prepare_environment
from gagar_env.errors import TaskError
from gagar_env.sandbox import HOST_KINDS, IMAGE_KINDS, choose_kind
from gagar_env.sandbox.base import Limits, SandboxImage, SandboxSpec
from gagar_env.tasks.task import Image, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Provision:
    """A task that is ready to run.

    Attributes:
        environment: What its tests run in.
        spec: The sandbox of an agent.
        official_image: The image of its verification, where the agent's has something taken out; else None.
    """

    task: Task
    base: Base
    environment: BuiltEnvironment
    spec: SandboxSpec
    official_image: SandboxImage | None = None


_bases: Once[Base] = Once()
_environments: Once[BuiltEnvironment] = Once()
_images: Once[SandboxImage] = Once()
_LIFETIME_S = 4 * 3600.0
"""Of a container, at the least; one that is started ahead may have waited for half of it."""
_VERSION = re.compile(r"\d+(\.\d+)*")


def kind_for(task: Task, sandbox: str) -> str:
    """The kind of sandbox that `task` runs in where `sandbox` is asked for.

    `auto` takes a kind that runs images for a task that has an image and names no packages of its own.

    Raises:
        SandboxUnavailableError: If none works here.
        TaskError: If this task cannot run in that kind.
    """
    if sandbox == "auto" and _image_only(task) and task.image is not None and task.image.capabilities:
        sandbox = "docker"  # the only kind that can give them
    kind = choose_kind(sandbox, image=_image_only(task))
    if kind == "rootfs" and task.image is None:
        raise TaskError(f"{task.id} has no image, which a rootfs sandbox runs: use sandbox=bwrap")
    if kind in HOST_KINDS and _image_only(task):
        raise TaskError(f"{task.id} runs in an image, which a {kind} sandbox does not: use {' or '.join(IMAGE_KINDS)}")
    return kind


def _image_only(task: Task) -> bool:
    return task.image is not None and (bool(task.environment.missing) or not task.environment.requirements)


def provision_base(task: Task, *, on_progress: Progress | None = None) -> Base:
    """The base tree that `provision` gives `task`, without its environment: for what runs no tests, as grading.

    Raises:
        TaskError: If the task's source is broken or not known.
        EnvironmentBuildError: If this machine cannot provide it.
    """
    image = task.image if task.repo.kind == "image" else None
    key = str(cache_root()) + repr((task.repo, image, sorted(task.environment.generated_files.items())))

    def make() -> Base:
        return prepare_base(task, on_progress=on_progress)

    base = _bases.get(key, make)
    if not base.tree.is_dir():  # somebody deleted the cache by hand
        _bases.forget(base)
        base = _bases.get(key, make)
    return base


def provision(task: Task, *, sandbox: str = "auto", on_progress: Progress | None = None) -> Provision:
    """Prepare the base tree and the environment or image of `task`, each once in this process and once in the cache.

    A source folder that changes while this process runs is not read again.

    Args:
        task: The task.
        sandbox: The kind it shall run in: `docker` and `rootfs` take its image, others its environment.
        on_progress: Told what takes time, one line each.

    Raises:
        TaskError: If the task's source, environment or image is broken or not known, or it cannot run in that kind.
        SandboxUnavailableError: If that kind does not work here.
        EnvironmentBuildError: If this machine cannot provide it.
    """
    kind = kind_for(task, sandbox)
    base = provision_base(task, on_progress=on_progress)
    image = official = None
    if task.image is not None and kind in IMAGE_KINDS:
        image = _image(task.image, kind, on_progress)
        environment = _in_image(task, image)
        if task.image.hidden:
            official, image = image, _image(without_hidden(task.image, task.id), kind, on_progress)
    else:
        environment = _environment(task, on_progress)
    limits = task.limits
    spec = SandboxSpec(
        tree=base.tree,
        tree_key=base.key,
        env=task.environment.variables,
        search_path=(environment.bin,) if environment.bin else (),
        pythonpath=task.environment.pythonpath,
        expose=environment.expose,
        hide=environment.hide,
        image=image,
        limits=Limits(
            memory_mb=limits.memory_mb,
            processes=limits.processes,
            disk_mb=limits.disk_mb,
            file_mb=min(256, limits.disk_mb),
            cpus=limits.cpus,
            lifetime_s=max(_LIFETIME_S, 4 * (limits.episode_s + task.tests.timeout_s)),
        ),
    )
    return Provision(task=task, base=base, environment=environment, spec=spec, official_image=official)


def _environment(task: Task, on_progress: Progress | None) -> BuiltEnvironment:
    fields = task.environment.model_dump_json(exclude={"generated_files", "pythonpath", "variables"})
    key = str(cache_root()) + fields

    def make() -> BuiltEnvironment:
        return prepare_environment(task.environment, on_progress=on_progress)

    found = _environments.get(key, make)
    if not os.path.exists(found.python):  # as with a base
        _environments.forget(found)
        found = _environments.get(key, make)
    return found


def without_hidden(image: Image, where: str) -> Image:
    """The image that an agent gets: its hidden paths are removed on top of it, once, and that is kept as an image.

    Raises:
        TaskError: If a hidden path is in the work tree, where the base tree stands in place of the image's files.
    """
    workdir = posixpath.normpath(image.workdir) + "/"
    for path in image.hidden:
        if (posixpath.normpath(path) + "/").startswith(workdir):
            raise TaskError(
                f"image.hidden of {where}: {path} is in the work tree, where the base tree stands: give it as official"
                " tests, which are put there for the tests alone"
            )
    command = f"rm -rf -- {' '.join(map(shlex.quote, image.hidden))}"
    return image.model_copy(update={"commands": (*image.commands, command), "hidden": ()})


def _image(image: Image, kind: str, on_progress: Progress | None) -> SandboxImage:
    from gagar_env.images import resolve_image  # brings the engine's client, which not every task needs

    need_engine = kind == "docker"
    return _images.get(
        (repr(image), need_engine), lambda: resolve_image(image, need_engine=need_engine, on_progress=on_progress)
    )


def _in_image(task: Task, image: SandboxImage) -> BuiltEnvironment:
    python = task.environment.python
    if not python or _VERSION.fullmatch(python):
        python = "python3"
    if (os.path.normpath(python) + "/").startswith(image.workdir.rstrip("/") + "/") or python.startswith("."):
        raise TaskError(
            f"environment.python of {task.id}: {python} is in the work tree, where an agent could replace it: name one"
            " outside of it"
        )
    return BuiltEnvironment(python=python, bin="", expose=(), key=f"image {image.id}")
