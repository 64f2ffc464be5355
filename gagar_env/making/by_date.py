"""Exact pins of what there was at a date: pip resolves, the index says when each release was made."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gagar_env.cache import Progress
from gagar_env.errors import EnvironmentBuildError
from gagar_env.interpreters import Interpreter
from gagar_env.making.by_source import Sources, pip_for
from gagar_env.making.candidate import RefusedError, refusal
from gagar_env.package_index import IndexFile, normal_name, project_files

_EXACT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*={2,3}\s*([^\s;,*]+)\s*(;.*)?")
_RELEASE = re.compile(r"\d+(\.\d+)*(\.post\d+)?")
_ROUNDS = 12
"""Each may find a package that was not there before; it is then held to what there was."""
_TIMEOUT_S = 300.0


class _NoWheelsError(Exception):
    """What pip said, and which projects it named."""

    def __init__(self, said: str) -> None:
        lines = [line for line in said.splitlines() if line.startswith("ERROR")]
        super().__init__((lines or ["it says nothing"])[0][:300])
        self.named = {normal_name(word) for word in re.findall(r"[A-Za-z0-9][A-Za-z0-9._-]*", said)}


def resolve_by_date(
    wanted: Sequence[str], python: Interpreter, before: datetime, *, on_progress: Progress | None = None
) -> tuple[str, ...]:
    """Exact pins of `wanted` and of all that it requires.

    An exact pin in `wanted` is taken whenever it was made. All else is from before `before`. What has a source alone is
    built in a sandbox, to learn what it requires.

    Args:
        wanted: Requirements, exact or open.
        python: The interpreter that they are for.
        before: The date.
        on_progress: Told what takes time.

    Returns:
        Pins, sorted.

    Raises:
        RefusedError: `unresolved`: there are no wheels that fit; `undated`: the index does not say when a release was
            made.
    """
    exact = {normal_name(pin[1]): pin[2] for line in wanted if (pin := _EXACT.fullmatch(line.strip()))}
    given = exact.keys()
    opened = {normal_name(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]) for line in wanted} - given
    caps = {name: _cap(name, before) for name in sorted(opened)}
    refused: set[str] = set()
    sources = Sources(python, on_progress)
    for _ in range(_ROUNDS):
        try:
            found = _pip(wanted, [*caps.values(), *sorted(refused)], python, sources.folders)
        except _NoWheelsError as error:
            newest = {name: cap.partition("<=")[2] for name, cap in caps.items()} | exact
            if not sources.build({name: version for name, version in newest.items() if name in error.named}):
                raise refusal("unresolved", f"pip finds no wheels that fit: {error}") from None
            continue
        late = [name for name, version in found.items() if name not in given and not _was_there(name, version, before)]
        if not late:
            return tuple(sorted(f"{name}=={version}" for name, version in found.items()))
        for name in late:
            if name in caps:
                refused.add(f"{name}!={found[name]}")
            caps.setdefault(name, _cap(name, before))
    raise refusal("unresolved", f"no versions from before {before.date()} were found in {_ROUNDS} rounds")


def _cap(name: str, before: datetime) -> str:
    """The newest release that there was, as an upper bound."""
    there = {_version(file, name) for file in _files(name) if not file.yanked and _made(file, name) < before}
    releases = [version for version in there if _RELEASE.fullmatch(version)]
    if not releases:
        raise refusal("unresolved", f"{name} had no release before {before.date()}")
    newest = max(releases, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
    return f"{name}<={newest}"


def _was_there(name: str, version: str, before: datetime) -> bool:
    dates = [_made(file, name) for file in _files(name) if _version(file, name) == version]
    if not dates:
        raise refusal("undated", f"the package index does not list the files of {name} {version}")
    return min(dates) < before


def _files(name: str) -> tuple[IndexFile, ...]:
    try:
        return project_files(name)
    except RefusedError as error:
        raise refusal("undated", f"{name}: {error}") from None


def _made(file: IndexFile, name: str) -> datetime:
    try:
        found = datetime.fromisoformat(re.sub(r"\.\d+", "", file.uploaded).replace("Z", "+00:00"))
    except ValueError:
        raise refusal(
            "undated",
            f"the package index does not say when {file.name} was made, so that {name} cannot be pinned by date",
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _version(file: IndexFile, name: str) -> str:
    """The version in the name of a wheel or a source distribution; empty where it is another file."""
    if file.name.endswith(".whl"):
        parts = file.name.split("-")
        return parts[1] if len(parts) >= 5 else ""
    stem = re.sub(r"\.(tar\.(gz|bz2|xz)|zip)$", "", file.name)
    head, dash, version = stem.rpartition("-")
    return version if dash and stem != file.name and normal_name(head) == name else ""


def _pip(wanted: Sequence[str], caps: Sequence[str], python: Interpreter, links: Sequence[Path]) -> dict[str, str]:
    """What pip would install: project -> version. Wheels in the folders `links` are taken too."""
    with tempfile.TemporaryDirectory(prefix="gagar-pins-") as made:
        folder = Path(made)
        (folder / "wanted.txt").write_text("".join(f"{line}\n" for line in wanted), "utf-8")
        (folder / "caps.txt").write_text("".join(f"{line}\n" for line in caps), "utf-8")
        command = [*pip_for(python), "install", "--dry-run", "--quiet", "--ignore-installed", "--only-binary", ":all:"]
        command += [part for link in links for part in ("--find-links", str(link))]
        command += ["--report", str(folder / "report.json"), "-r", str(folder / "wanted.txt")]
        command += ["-c", str(folder / "caps.txt")]
        environment = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise EnvironmentBuildError(f"pip resolved nothing within {_TIMEOUT_S:g} s") from None
        if done.returncode:
            raise _NoWheelsError(done.stderr)
        report: dict[str, Any] = json.loads((folder / "report.json").read_text("utf-8"))
    items = [item["metadata"] for item in report["install"]]
    return {normal_name(item["name"]): item["version"] for item in items}
