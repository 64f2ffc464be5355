"""Set-up commands on top of an image: run once, with network, and kept as an image."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from typing import IO

from gagar_env.cache import Progress
from gagar_env.engine import engine, engine_errors
from gagar_env.errors import EnvironmentBuildError
from gagar_env.images.made import LONG_S, Facts, commit, container, key_of, make_once, patient
from gagar_env.images.pull import EVERY_S

_RUN_EACH = """exec 2>&1
n=0
for command; do
    n=$((n + 1))
    /bin/sh -ec "$command" </dev/null || { code=$?; echo; echo "gagar-env: $n"; exit $code; }
done
"""
"""Each in a shell of its own, as the lines of a Dockerfile; says which one failed."""
_FAILED = re.compile(r"\n?gagar-env: (\d+)\n\Z")


def prepared_image(base: Facts, shown: str, commands: Sequence[str], on_progress: Progress | None) -> Facts:
    """The image after `commands`, which run as root in `base`'s own working folder.

    Raises:
        EnvironmentBuildError: If one fails; says which, its exit code and what it said last.
        SandboxError: If the engine fails.
    """
    key = key_of(base["Id"], list(commands))

    def make(name: str) -> None:
        workdir = (base.get("Config") or {}).get("WorkingDir") or "/"
        run = ["/bin/sh", "-c", _RUN_EACH, "sh", *commands]
        with container(str(base["Id"]), run, network=True, workdir=workdir) as made:
            if code := _run(made, shown, on_progress):
                with engine_errors("read what a command printed"):
                    output = engine().logs(made, tail=20).decode("utf-8", "replace").replace("\r", "")
                raise EnvironmentBuildError(_explain(shown, commands, code, output))
            commit(made, "commands", key, like=base)

    return make_once("commands", key, make, on_progress=on_progress)


def _run(made: str, shown: str, tell: Progress | None) -> int:
    client = engine()
    with patient(), engine_errors(f"run the set-up commands of {shown}"):
        client.start(made)
        if tell is not None:
            told = time.monotonic()
            tell(f"image {shown}: running its set-up commands")
            with _output(made) as pieces:
                for piece in pieces:
                    lines = piece.decode("utf-8", "replace").split("\n")
                    if time.monotonic() >= told + EVERY_S and (line := " ".join(lines).strip()):
                        told = time.monotonic()
                        tell(f"image {shown}: set-up: {line[-200:]}")
        return int(client.wait(made, timeout=LONG_S)["StatusCode"])


@contextlib.contextmanager
def _output(made: str) -> Iterator[Iterator[bytes]]:
    """What a running container prints, piece by piece, until it ends. The library's own way leaves its socket open."""
    client = engine()
    answer = client.get(
        client._url("/containers/{0}/logs", made),
        params={"stdout": 1, "stderr": 1, "follow": 1},
        headers={"Accept-Encoding": "identity"},
        stream=True,
        timeout=client.timeout,
    )
    with contextlib.closing(answer):
        client._raise_for_status(answer)
        yield _pieces(answer.raw)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while len(head := stream.read(8)) == 8:
        yield stream.read(int.from_bytes(head[4:], "big"))


def _explain(shown: str, commands: Sequence[str], code: int, output: str) -> str:
    which = ""
    if (failed := _FAILED.search(output)) is not None:
        output = output[: failed.start()]
        command = " ".join(commands[int(failed[1]) - 1].split())
        which = f" {failed[1]} ({command[:100]})"
    lines = [line for line in output.splitlines() if line.strip()]
    last = f": {lines[-1].strip()[:300]}" if lines else ", and it printed nothing"
    return f"image {shown}: set-up command{which} ended with exit code {code}{last}"
