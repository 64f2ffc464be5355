"""From what a task says of its image to an image that is there."""

from __future__ import annotations

from gagar_env.cache import Progress
from gagar_env.engine import why_no_engine
from gagar_env.errors import TaskError
from gagar_env.images.build import built_image
from gagar_env.images.commands import prepared_image
from gagar_env.images.load import described_image, loaded_image
from gagar_env.images.made import Facts
from gagar_env.images.pull import digest_of, engine_platform, image_by_name, own_platform, platform_of, runs_on
from gagar_env.sandbox.base import SandboxImage
from gagar_env.tasks.task import Image


def resolve_image(image: Image, *, on_progress: Progress | None = None, need_engine: bool = True) -> SandboxImage:
    """Find, pull, load or build an image, each once.

    Args:
        image: What a task says.
        need_engine: False for who can read a saved image without an engine: then it is not loaded into one.
        on_progress: Told what takes time, one line each.

    Raises:
        TaskError: If there is no such image, file or folder, or it is for another platform.
        EnvironmentBuildError: If it cannot be had here: it cannot be pulled, or a step of building it fails.
        SandboxUnavailableError: If it needs an engine and there is none.
        SandboxError: If the engine fails.
    """
    if image.archive is not None:
        shown = str(image.archive)
        if not image.commands and (not need_engine or why_no_engine()):
            wanted = image.platform or own_platform()
            facts = described_image(image.archive, wanted, on_progress)
        else:
            wanted = image.platform or engine_platform()
            facts = loaded_image(image.archive, wanted, on_progress)
        if not runs_on(facts, wanted):
            raise TaskError(f"image {shown}: it is for {platform_of(facts)}, not {wanted}: set image.platform")
    elif image.dockerfile:
        shown = "of the Dockerfile"
        facts = built_image(image.dockerfile, image.context, image.platform, on_progress)
    else:
        shown = image.reference
        facts = image_by_name(image.reference, image.platform, on_progress)
    if image.commands:
        facts = prepared_image(facts, shown, image.commands, on_progress)
    return _resolved(image, facts, shown)


def _resolved(image: Image, facts: Facts, reference: str) -> SandboxImage:
    config = facts.get("Config") or {}
    return SandboxImage(
        id=str(facts["Id"]),
        reference=reference,
        digest=digest_of(facts, image.reference) if image.reference and not image.commands else "",
        env=variables(config.get("Env")),
        workdir=image.workdir.rstrip("/"),
        user=image.user,
        platform=platform_of(facts),
        capabilities=image.capabilities,
        shm_mb=image.shm_mb,
        archive=None if image.commands else image.archive,
    )


def variables(lines: list[str] | None) -> dict[str, str]:
    """`NAME=value` lines of an image's configuration."""
    return dict(line.partition("=")[::2] for line in lines or () if "=" in line)
