"""Images from a Dockerfile, built by the engine's own builder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from gagar_env.cache import Progress
from gagar_env.engine import engine, engine_errors
from gagar_env.engine_faults import one_line
from gagar_env.errors import EnvironmentBuildError, SandboxError, TaskError
from gagar_env.images.made import Facts, key_of, labels, make_once, patient

_IGNORE = ".dockerignore"
_STEP = re.compile(r"step (\d+)/\d+ ?: (.*)", re.I)  # of how many: labels that are added count there
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_IMAGE = re.compile(r" ---> ([0-9a-f]{12,64})")
_NEEDS_BUILDKIT = re.compile(
    r"requires BuildKit|unknown flag: (mount|link|chmod|checksum|parents|exclude|network|security)"
    r"|unknown instruction: |buildkit",
    re.I,
)
_BUILDKIT_ADVICE = (
    "; if that is syntax of BuildKit (RUN --mount, here-documents, COPY --link): it is not supported here, build the"
    " image with `docker build` and give its name as `reference`"
)


def built_image(text: str, context: Path | None, platform: str, on_progress: Progress | None) -> Facts:
    """The image of a Dockerfile; built once for its text, the files it can copy from, and the platform.

    Raises:
        TaskError: If the context is no folder.
        EnvironmentBuildError: If a step fails; says which.
        SandboxError: If the engine fails.
    """
    files = _context_files(context)
    key = key_of(text, _content_key(context, files), platform)

    def make(name: str) -> None:
        from docker.utils.build import create_archive

        dockerfile = f".gagar-{key}.dockerfile"  # no file of the context has that name
        extra = [(dockerfile, text), (_IGNORE, _hiding(context, files, dockerfile))]
        with engine_errors("pack the build context"):
            packed: IO[bytes] = create_archive(
                str(context or "/"), files=[name for name in files if name != _IGNORE], extra_files=extra
            )
        build = _Build(on_progress)
        with packed, patient(), _left_clean(build), engine_errors("build an image"):
            events = engine().build(
                fileobj=packed,
                custom_context=True,
                dockerfile=dockerfile,
                tag=name,
                labels=labels("built", key),
                platform=platform or None,
                rm=True,
                forcerm=True,
                decode=True,
            )
            build.follow(events)

    return make_once("built", key, make, on_progress=on_progress)


class _Build:
    """Follows the output of one build: which step it is at, what it said last, which images it made."""

    def __init__(self, tell: Progress | None) -> None:
        self._tell = tell
        self._step = ""
        self._last: deque[str] = deque(maxlen=20)
        self._new = False
        self.made: list[str] = []

    def follow(self, events: Iterator[dict[str, Any]]) -> None:
        import docker.errors

        try:
            for event in events:
                self._event(event)
        except docker.errors.APIError as error:
            if error.status_code != 400:
                raise
            raise EnvironmentBuildError(self._explain(one_line(error))) from error  # it cannot be read

    def _event(self, event: dict[str, Any]) -> None:
        if error := event.get("error"):
            raise EnvironmentBuildError(self._explain(str(error)))
        for line in _COLOUR.sub("", str(event.get("stream", ""))).splitlines():
            self._line(line)

    def _line(self, line: str) -> None:
        if step := _STEP.match(line):
            self._step = f"step {step[1]}, {step[2].strip()}"
            self._new = not step[2].upper().startswith("FROM")
            self._last.clear()
            if self._tell is not None:
                self._tell(f"image: {self._step}")
        elif "---> Using cache" in line:
            self._new = False
        elif (image := _IMAGE.match(line)) is not None:
            if self._new:
                self.made.append(image[1])
        elif line.strip() and not line.startswith((" ---> ", "Removing intermediate container")):
            self._last.append(line.strip())

    def _explain(self, error: str) -> str:
        error = " ".join(error.split())
        last = f"; it said last: {self._last[-1][:300]}" if self._last else ""
        advice = _BUILDKIT_ADVICE if _NEEDS_BUILDKIT.search(error) else ""
        return f"image.dockerfile: {self._step or 'the Dockerfile'}: {error[:500]}{last}{advice}"


@contextlib.contextmanager
def _left_clean(build: _Build) -> Iterator[None]:
    """Remove what the steps before a failed one made."""
    try:
        yield
    except BaseException:
        for image in reversed(build.made):
            with contextlib.suppress(SandboxError), engine_errors("remove an unfinished image"):
                engine().remove_image(image, noprune=True)
        raise


def _context_files(context: Path | None) -> list[str]:
    """What of the context the builder is given: `.dockerignore` counts."""
    from docker.utils.build import exclude_paths

    if context is None:
        return []
    if not context.is_dir():
        raise TaskError(f"image.context: {context} is no folder")
    ignored: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        lines = (context / _IGNORE).read_text("utf-8", "replace").splitlines()
        ignored = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return sorted(path for path in exclude_paths(str(context), ignored) if path)


def _hiding(context: Path | None, files: list[str], dockerfile: str) -> str:
    """Rules by which the builder itself leaves out what is added here."""
    if context is not None and _IGNORE in files:
        return f"{(context / _IGNORE).read_text('utf-8', 'replace')}\n{dockerfile}\n"
    return f"{dockerfile}\n{_IGNORE}\n"


def _content_key(context: Path | None, files: list[str]) -> str:
    found = hashlib.sha256()
    for name in files:
        assert context is not None
        path = context / name
        mode = path.lstat().st_mode
        data = b""
        if stat.S_ISLNK(mode):
            data = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(mode):
            data = path.read_bytes()
        found.update(os.fsencode(f"{name}\0{mode:o}\0{len(data)}\0") + data)
    return found.hexdigest()
