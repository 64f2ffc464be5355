"""Looks for the reference patch and the hidden tests in a base tree, or an image, where an agent would find them.

What counts are lines that a secret adds: a file that holds most of them holds the secret. None of them are lines that
the repository has at the same place anyway (an older version of a test file, moved code), and lines that are common in
it (an import). A fix that repeats code of its own repository gives nothing away either.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gagar_env.errors import SandboxError
from gagar_env.provision import Provision
from gagar_env.repeated_code import repeats_own_code
from gagar_env.sandbox import open_sandbox
from gagar_env.sandbox.base import SandboxSpec
from gagar_env.tasks.task import Task

SHORTEST_LINE = 25
"""Bytes; shorter lines are alike by chance."""
COMMON_LINE = 4
"""A line that so many files have says nothing."""
_LARGEST_FILE = 4 * 1024 * 1024
_LOOK_S = 60.0
_REFERENCE = "the reference patch"
_TEST_PATCH = "the test patch"


def leaked_secrets(task: Task, tree: Path) -> list[str]:
    """One line for each file of `tree` that holds a secret of `task`."""
    secrets = dict(secret_lines(task, tree))
    wanted = frozenset().union(*secrets.values())
    if not wanted:
        return []
    found = {path: lines & wanted for path, lines in lines_of(tree)}
    files = Counter(line for lines in found.values() for line in lines)
    common = {line for line, count in files.items() if count >= COMMON_LINE}
    patches = {_REFERENCE: task.solution_patch, _TEST_PATCH: task.tests.patch}
    return [
        f"the base tree gives away {name}: it is in {path}"
        for name, lines in secrets.items()
        for path in sorted(found)
        if 2 * len((lines & found[path]) - common) > len(lines - common)
        and not (name in patches and repeats_own_code(patches[name], tree, path, shortest=SHORTEST_LINE))
    ]


def left_in_image(ready: Provision, kind: str) -> list[str]:
    """One line for each path of the task's image that should be hidden and is not, or that is not there to be hidden.

    Args:
        ready: The task, prepared for that kind of sandbox.
        kind: Of sandbox, one that runs images.

    Raises:
        SandboxError: If no sandbox can be opened.
    """
    image = ready.task.image
    if image is None or ready.official_image is None:
        return []
    found = _there(ready.spec, kind, image.hidden)
    missing = set(image.hidden) - _there(replace(ready.spec, image=ready.official_image), kind, image.hidden)
    return [
        *(f"the agent's image still has {path}, which image.hidden names" for path in sorted(found)),
        *(f"the image has no {path}, which image.hidden names" for path in sorted(missing)),
    ]


def _there(spec: SandboxSpec, kind: str, paths: Sequence[str]) -> set[str]:
    """Those paths that a sandbox has: as a file, a folder, or a link that leads nowhere."""
    script = "\n".join(
        f"if [ -e {place} ] || [ -L {place} ]; then printf '%s\\n' {number}; fi"
        for number, place in enumerate(map(shlex.quote, paths))
    )
    sandbox = open_sandbox(kind, spec)
    try:
        done = sandbox.run(script, timeout_s=_LOOK_S, cwd="/")
    finally:
        sandbox.close()
    if done.exit_code:
        raise SandboxError(f"looking for hidden paths in the image ended with exit code {done.exit_code}")
    return {paths[int(number)] for number in done.output.split()}


def secret_lines(task: Task, tree: Path) -> Iterator[tuple[str, frozenset[bytes]]]:
    """What is secret of a task, by name, and the lines that tell."""
    yield _REFERENCE, _added(task.solution_patch)
    yield _TEST_PATCH, _added(task.tests.patch)
    folder = task.tests.folder
    beside = bool(task.tests.place)  # it does not mirror the tree then
    for path in sorted(folder.rglob("*")) if folder is not None else ():
        if folder is not None and path.is_file():
            name = path.relative_to(folder).as_posix()
            public = tree / name
            known = public.read_bytes() if public.is_file() and not beside else b""
            yield f"the hidden test file {name}", _long(path.read_bytes()) - _long(known)


def _added(patch: bytes) -> frozenset[bytes]:
    """Lines that a patch adds, without those that it also removes or shows as they were."""
    sides: dict[bytes, set[bytes]] = {b"+": set(), b"-": set(), b" ": set()}
    for line in patch.split(b"\n"):
        if line[:1] in sides and not line.startswith((b"+++ ", b"--- ")):
            sides[line[:1]].add(line[1:])
    return _long(b"\n".join(sides[b"+"])) - _long(b"\n".join(sides[b"-"] | sides[b" "]))


def _long(text: bytes) -> frozenset[bytes]:
    return frozenset(line for raw in text.split(b"\n") if len(line := raw.strip(b" \t\r+#")) >= SHORTEST_LINE)


def lines_of(tree: Path) -> Iterator[tuple[str, frozenset[bytes]]]:
    """Path and long lines of each file of a tree."""
    for folder, folders, files in os.walk(tree):
        if folder == str(tree) and ".git" in folders:
            folders.remove(".git")  # its one commit has the same files
        for name in files:
            path = Path(folder, name)
            if not path.is_symlink() and path.stat().st_size <= _LARGEST_FILE:
                yield path.relative_to(tree).as_posix(), _long(path.read_bytes())
