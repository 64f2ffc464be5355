"""Images by name: found in the engine, or pulled into it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable

from gagar_env.cache import Progress
from gagar_env.engine import engine, engine_errors
from gagar_env.engine_faults import one_line
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.images.made import Facts, find, patient

EVERY_S = 1.0
"""Between two lines of progress."""
_ARCHES = {"x86_64": "amd64", "aarch64": "arm64", "armhf": "arm", "i386": "386"}

_NO_ACCESS = re.compile(r"unauthorized|authentication required|no basic auth|forbidden|denied: |toomanyrequests", re.I)
_NONE_SUCH = re.compile(
    r"pull access denied|does not exist|manifest unknown|name unknown|no such image|not found: manifest|: not found"
    r"|repository .* not found|invalid reference format|invalid (repository|tag)",
    re.I,
)
_NO_PLATFORM = re.compile(
    r"no matching manifest|does not match the specified platform|does not provide .*platform", re.I
)


def engine_platform() -> str:
    """The platform of the engine's own machine, such as `linux/amd64`."""
    with engine_errors("ask for its version"):
        version = engine().version()
    return f"{version.get('Os') or 'linux'}/{_arch(version.get('Arch') or 'amd64')}"


def own_platform() -> str:
    """The platform of this machine."""
    return f"linux/{_arch(os.uname().machine)}"


def image_by_name(reference: str, platform: str, on_progress: Progress | None) -> Facts:
    """The image of that name for that platform; pulled where the engine does not have it.

    Raises:
        TaskError: If there is no such image, or none for that platform.
        EnvironmentBuildError: If it cannot be pulled.
    """
    wanted = platform or engine_platform()
    found = find(reference)
    if found is not None and runs_on(found, wanted):
        return found
    if re.fullmatch(r"(sha256:)?[0-9a-f]{64}", reference):
        raise TaskError(
            f"image {reference}: "
            + (
                f"it is for {platform_of(found)}, not {wanted}"
                if found
                else "it is not in the engine, and an id cannot be pulled"
            )
        )
    try:
        _pull(reference, wanted, on_progress)
    except (TaskError, EnvironmentBuildError) as error:
        if found is None:
            raise
        raise type(error)(f"the engine has it for {platform_of(found)}, not {wanted}; {error}") from error
    found = find(reference)
    if found is None:
        raise EnvironmentBuildError(f"image {reference}: it was pulled and is not there: was it removed just now?")
    if not runs_on(found, wanted):
        raise TaskError(
            f"image {reference}: it is for {platform_of(found)}, not {wanted}: set image.platform, or choose another"
        )
    return found


def platform_of(facts: Facts) -> str:
    """Such as `linux/arm64/v8`."""
    parts = (facts.get("Os"), facts.get("Architecture"), facts.get("Variant"))
    return "/".join(part for part in parts if part)


def runs_on(facts: Facts, wanted: str) -> bool:
    """Whether an image is for that platform; what it does not say is no difference."""
    system, _, rest = wanted.lower().partition("/")
    arch, _, variant = rest.partition("/")
    pairs = (
        (facts.get("Os"), system),
        (facts.get("Architecture"), _arch(arch)),
        (facts.get("Variant"), variant),
    )
    return all(not has or not want or has == want for has, want in pairs)


def digest_of(facts: Facts, reference: str) -> str:
    """`name@sha256:...` as a registry knows it; empty for an image that came from none."""
    digests: list[str] = list(facts.get("RepoDigests") or ())
    asked = reference.partition("@")[2]
    name = _familiar(re.sub(r":[^/:]*$", "", reference.partition("@")[0]))
    for digest in digests:
        if (asked and digest.endswith("@" + asked)) or (not asked and _familiar(digest.partition("@")[0]) == name):
            return digest
    return digests[0] if digests else ""


def _familiar(name: str) -> str:
    return name.removeprefix("docker.io/").removeprefix("library/")


def _arch(name: str) -> str:
    return _ARCHES.get(name, name)


def _pull(reference: str, platform: str, on_progress: Progress | None) -> None:
    import docker.errors
    import requests.exceptions
    import urllib3.exceptions

    lines = PullProgress(reference, on_progress)
    try:
        with patient():
            for event in engine().pull(reference, stream=True, decode=True, platform=platform):
                if error := event.get("error"):
                    raise _explained(reference, platform, error)
                lines.event(event)
    except (docker.errors.DockerException, requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as error:
        raise _explained(reference, platform, one_line(error)) from error
    lines.end()


def _explained(reference: str, platform: str, said: str) -> TaskError | EnvironmentBuildError:
    said = " ".join(said.split())
    if _NO_PLATFORM.search(said):
        return TaskError(
            f"image {reference}: there is none for {platform}: set image.platform, or choose another ({said})"
        )
    if _NO_ACCESS.search(said) and "pull access denied" not in said:
        return EnvironmentBuildError(
            f"image {reference}: its registry does not let us in: docker login, then again ({said})"
        )
    if _NONE_SUCH.search(said):
        return TaskError(f"image {reference}: no such image, or it needs `docker login` ({said})")
    return EnvironmentBuildError(
        f"image {reference}: it is not in the engine and its registry does not answer: look at the network, or"
        f" `docker load` the image ({said})"
    )


class PullProgress:
    """Turns the engine's reports on single layers into one line now and then."""

    def __init__(self, reference: str, tell: Progress | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._reference = reference
        self._tell = tell
        self._clock = clock
        self._next = 0.0
        self._layers: dict[str, tuple[int, int]] = {}

    def event(self, event: dict[str, object]) -> None:
        """One report of the engine."""
        detail, layer = event.get("progressDetail"), str(event.get("id", ""))
        if isinstance(detail, dict) and event.get("status") == "Downloading" and detail.get("total"):
            self._layers[layer] = (int(detail.get("current", 0)), int(detail["total"]))
        elif layer in self._layers and event.get("status") in ("Download complete", "Pull complete"):
            total = self._layers[layer][1]
            self._layers[layer] = (total, total)
        if self._tell is not None and self._layers and self._clock() >= self._next:
            self._next = self._clock() + EVERY_S
            self._tell(self._line())

    def end(self) -> None:
        """It is there."""
        if self._tell is not None:
            self._tell(f"image {self._reference}: pulled")

    def _line(self) -> str:
        done, total = (sum(column) for column in zip(*self._layers.values(), strict=True))
        return f"image {self._reference}: {100 * done // total}% of {total / 1e6:.0f} MB"
