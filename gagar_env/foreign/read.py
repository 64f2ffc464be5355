"""Finds the files of trajectories in folders, and reads one of any known kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gagar_env.foreign.atif import is_atif, read_atif
from gagar_env.foreign.mini import is_mini, read_mini
from gagar_env.foreign.sweagent import is_swe_agent, read_swe_agent
from gagar_env.foreign.trajectory import Trajectory, TrajectoryError, mapping, patch_of

_ENDINGS = (".traj.json", ".traj", ".json")
_KNOWN = "known are .traj.json of mini-swe-agent, .traj of SWE-agent, and ATIF v1 JSON"


def find_trajectories(sources: Iterable[Path]) -> Iterator[Path]:
    """The files in `sources`, folders searched to any depth, in the order of their paths; each once.

    A file that is named is taken as it is. In a folder, a `.json` file that is no ATIF is none of ours.

    Raises:
        TrajectoryError: If a source is not there.
    """
    seen: set[Path] = set()  # resolved: a file counts once, however it is spelled
    for source in sources:
        if source.is_file():
            found = [source]
        elif source.is_dir():
            found = sorted(path for path in source.rglob("*") if _may_be(path))
        else:
            raise TrajectoryError(f"{source}: there is no such file or folder")
        for path in found:
            if (real := path.resolve()) not in seen:
                seen.add(real)
                yield path


def _may_be(path: Path) -> bool:
    if not path.name.endswith(_ENDINGS) or path.is_symlink() or not path.is_file():
        return False
    if path.name.endswith((".traj.json", ".traj")):
        return True
    try:
        return b'"ATIF-v1' in path.read_bytes()
    except OSError:
        return False


def read_trajectory(path: Path) -> Trajectory:
    """The trajectory in a file. A patch that it lacks may lie beside it: same name, `.patch`, `.diff` or `.pred`.

    Raises:
        TrajectoryError: One line that names the file: it cannot be read, is of no known kind, or holds no work.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise TrajectoryError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise TrajectoryError(f"{path}: is no JSON") from None
    try:
        found = _read(mapping(data))
    except TrajectoryError as error:
        raise TrajectoryError(f"{path}: {error}") from None
    except (TypeError, ValueError) as error:  # what no rule foresaw
        raise TrajectoryError(f"{path}: is damaged: {' '.join(str(error).split())[:200]}") from None
    stem = _stem(path)
    patch = found.patch
    if patch is None or not patch.strip():
        beside = _beside(path, stem)
        patch = beside if beside is not None else patch
    if patch is None:
        raise TrajectoryError(f"{path}: there is no patch in it, and no {stem}.patch beside it")
    return replace(found, patch=patch, names=tuple(dict.fromkeys((*found.names, *_places(path, stem)))))


def _read(data: Mapping[str, Any]) -> Trajectory:
    if is_mini(data):
        return read_mini(data)
    if is_atif(data):
        return read_atif(data)
    if is_swe_agent(data):
        return read_swe_agent(data)
    raise TrajectoryError(f"is no trajectory of a known kind; {_KNOWN}")


def _stem(path: Path) -> str:
    return path.name.removesuffix(next((end for end in _ENDINGS if path.name.endswith(end)), ""))


def _places(path: Path, stem: str) -> Iterator[str]:
    """Names of a task that harnesses put into paths: `ID/ID.traj`, and `result.json` above `agent/` with Harbor."""
    yield stem
    above = path.absolute().parent
    if above.name == "agent":
        try:
            named = mapping(json.loads((above.parent / "result.json").read_bytes())).get("task_name")
        except (OSError, ValueError, RecursionError):
            named = None
        if isinstance(named, str) and named:
            yield named
            yield named.rpartition("/")[2]
        above = above.parent
    yield above.name


def _beside(path: Path, stem: str) -> bytes | None:
    for ending in (".patch", ".diff", ".pred"):
        try:
            data = path.with_name(stem + ending).read_bytes()
        except OSError:
            continue
        if ending != ".pred":
            return data
        try:
            found = patch_of(mapping(json.loads(data)).get("model_patch"))
        except (ValueError, RecursionError):
            continue
        if found is not None:
            return found
    return None
