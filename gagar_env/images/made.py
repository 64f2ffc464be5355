"""Images that this package makes: their names and labels, and the containers that only serve to make one.

The engine's own list of names is the record of what was made: an image that somebody removed is made again.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, cast

from gagar_env.cache import Progress, one_at_a_time
from gagar_env.engine import engine, engine_errors
from gagar_env.engine_faults import one_line
from gagar_env.errors import SandboxError, TaskError

logger = logging.getLogger(__name__)

KIND_LABEL = "gagar-env.kind"
KEY_LABEL = "gagar-env.key"
PREFIX = "gagar-env/"
LONG_S = 3600.0
"""For one answer of the engine where it works on gigabytes."""

Facts = Mapping[str, Any]
"""What the engine says of an image or a container."""


def key_of(*parts: object) -> str:
    """A short name for content."""
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:40]


def name_of(kind: str, key: str) -> str:
    """The name of an image that is made here."""
    return f"{PREFIX}{kind}:{key}"


def labels(kind: str, key: str) -> dict[str, str]:
    """What marks images, and the containers that make them, as this package's."""
    return {KIND_LABEL: kind, KEY_LABEL: key}


def find(reference: str) -> Facts | None:
    """What the engine knows of an image; None when it is not there."""
    import docker.errors

    with engine_errors(f"look for the image {reference}"):
        try:
            return cast(Facts, engine().inspect_image(reference))
        except docker.errors.NotFound:
            return None
        except docker.errors.APIError as error:
            if error.status_code != 400:
                raise
            raise TaskError(f"image {reference!r}: that is no name of an image ({one_line(error)})") from error


def make_once(kind: str, key: str, make: Callable[[str], None], *, on_progress: Progress | None = None) -> Facts:
    """The image of that kind and key; made first if it is not there, by one process while others wait.

    Args:
        kind: Such as `built`.
        key: Names its content.
        make: Is given the name that the image shall have.
        on_progress: Told when another process is waited for.
    """
    name = name_of(kind, key)
    if (found := find(name)) is None:
        with one_at_a_time("images", f"{kind}-{key}", on_progress=on_progress):
            if (found := find(name)) is None:
                make(name)
                found = find(name)
    if found is None:
        raise SandboxError(f"container engine: the image {name} was made and is not there: was it removed just now?")
    return found


@contextlib.contextmanager
def patient() -> Iterator[None]:
    """Wait long for answers: the engine says nothing while it packs or unpacks a layer."""
    client = engine()
    usual, client.timeout = client.timeout, LONG_S
    try:
        yield
    finally:
        client.timeout = usual


@contextlib.contextmanager
def container(image: str, command: Sequence[str], *, network: bool, workdir: str = "/") -> Iterator[str]:
    """A container of root's that is not started, and is removed with its volumes in the end."""
    from gagar_env.sandbox.docker import owners  # which has the way of getting rid of what a killed process left

    client = engine()
    with engine_errors(f"create a container of {image}"):
        made = client.create_container(
            image,
            entrypoint=[""],  # none, and not the image's own
            command=list(command),
            user="0:0",
            working_dir=workdir,
            labels=owners.labels(LONG_S),
            host_config=client.create_host_config(network_mode=None if network else "none", init=False),
        )["Id"]
    try:
        yield made
    finally:
        try:
            with engine_errors(f"remove the container {made[:12]}"):
                engine().remove_container(made, force=True, v=True)
        except SandboxError as error:
            logger.warning("%s", error)


@dataclass(frozen=True, slots=True)
class Found:
    """A path in a container: what it is, and the archive that it is read from."""

    is_file: bool
    is_folder: bool
    stream: IO[bytes]


_GO_FOLDER, _GO_TYPES = 1 << 31, 0xFE280000
"""As the engine's language writes the modes of files."""


@contextlib.contextmanager
def path_in(made: str, path: str) -> Iterator[Found | None]:
    """Look at a path in a container, running or not; None when it is not there. A link is not followed."""
    client = engine()
    with engine_errors(f"read {path} of the container {made[:12]}"):
        answer = client.get(
            client._url("/containers/{0}/archive", made),
            params={"path": path},
            headers={"Accept-Encoding": "identity"},
            stream=True,
            timeout=client.timeout,
        )
    with contextlib.closing(answer):  # all of it need not be read
        if answer.status_code == 404:
            yield None
            return
        with engine_errors(f"read {path} of the container {made[:12]}"):
            client._raise_for_status(answer)
        mode = json.loads(base64.b64decode(answer.headers["X-Docker-Container-Path-Stat"]))["mode"]
        yield Found(is_file=not mode & _GO_TYPES, is_folder=bool(mode & _GO_FOLDER), stream=answer.raw)


def run_to_end(made: str) -> int:
    """Start a container, and wait for its exit code."""
    client = engine()
    with patient(), engine_errors(f"run the container {made[:12]}"):
        client.start(made)
        return int(client.wait(made, timeout=LONG_S)["StatusCode"])


def commit(made: str, kind: str, key: str, *, like: Facts, workdir: str = "") -> None:
    """Make an image of what a container holds now, to be run as `like` is."""
    config = like.get("Config") or {}
    from gagar_env.sandbox.docker import owners

    marks = {**dict.fromkeys((owners.RUN, owners.OWNER, owners.EXPIRES), ""), **labels(kind, key)}
    changes = [f"LABEL {name}={json.dumps(value)}" for name, value in marks.items()]
    # What the container was created to run is not what its image shall run.
    if config.get("Entrypoint"):
        changes.append(f"ENTRYPOINT {json.dumps(config['Entrypoint'])}")
    changes.append(f"CMD {json.dumps(config.get('Cmd') or ['/bin/sh'])}")
    changes.append(f"USER {config.get('User') or '0'}")
    folder = workdir or config.get("WorkingDir") or "/"
    changes.append("WORKDIR " + folder.replace("\\", "\\\\").replace("$", "\\$"))
    repository, _, tag = name_of(kind, key).partition(":")
    with patient(), engine_errors(f"make the image {repository}:{tag}"):
        engine().commit(made, repository=repository, tag=tag, pause=False, changes=changes)


def import_tar(data: bytes | IO[bytes], kind: str, key: str) -> None:
    """Make an image of a tar of a file system."""
    import docker.errors

    name = name_of(kind, key)
    repository, _, tag = name.partition(":")
    changes = [*(f"LABEL {mark}={value}" for mark, value in labels(kind, key).items()), 'CMD ["/bin/sh"]']
    with patient(), engine_errors(f"make the image {name}"):
        answer = engine().import_image_from_data(data, repository=repository, tag=tag, changes=changes)
        said = [json.loads(line) for line in answer.splitlines() if line.strip()]
        for event in said:
            if error := event.get("error"):  # in an answer whose status is "OK"
                raise docker.errors.DockerException(error)
        if find(name) is None:  # podman takes another name for it
            engine().tag(said[-1]["status"], repository, tag)


def made_here() -> list[dict[str, Any]]:
    """The images that this package made, newest first, each with its `name` and `kind`."""
    with engine_errors("list images"):
        found = engine().images()
    rows = [
        {**image, "name": name, "kind": name.rpartition(":")[0].rpartition(PREFIX)[2]}
        for image in found
        for name in image.get("RepoTags") or ()
        if _is_ours(name)
    ]
    return sorted(rows, key=lambda row: (-row["Created"], row["name"]))


def _is_ours(name: str) -> bool:
    # Loaded images keep the labels that they were saved with, so that the name decides; podman puts a host before it.
    return name.startswith(PREFIX) or name.partition("/")[2].startswith(PREFIX)
