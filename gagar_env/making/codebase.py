"""A repository that tasks are made from, as files on this machine: read, packed, never run."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path

from gagar_env.bases import prepare_base
from gagar_env.cache import Progress, build_once
from gagar_env.errors import TaskError
from gagar_env.gitcommand import find_git_dir
from gagar_env.making.declared import read_declared
from gagar_env.making.environment import repository_environment
from gagar_env.package_index import fetch_sdist
from gagar_env.tasks.task import Environment, RepoSource, Task, Tests

_RELEASE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([A-Za-z0-9][A-Za-z0-9.!+_-]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Codebase:
    """One state of a repository.

    Attributes:
        name: Of the project, fit to begin the id of a task.
        origin: What was asked for, for the record; no path of this machine.
        source: An archive of its files, which can be taken elsewhere.
        tree: Its files. Only to be read.
        environment: What its tests run in.
    """

    name: str
    origin: str
    source: RepoSource
    tree: Path
    environment: Environment


def open_codebase(
    repo: str | Path,
    *,
    commit: str = "",
    environment: Environment | None = None,
    on_progress: Progress | None = None,
) -> Codebase:
    """Read a repository.

    Args:
        repo: A folder, a git repository or a bundle, an archive, or `NAME==VERSION` of a package index.
        commit: Of a git repository; by default what it has as HEAD.
        environment: What its tests run in, where that is known; by default it is found from its files.
        on_progress: Told what takes time.

    Raises:
        TaskError: If it is none of these, or no environment can be found for it.
        EnvironmentBuildError: If this machine cannot provide it.
    """
    version = ""
    if (release := _RELEASE.fullmatch(str(repo))) and not Path(repo).exists():
        name, version = release.groups()
        sdist = fetch_sdist(name, version, on_progress=on_progress)
        source, origin = RepoSource(kind="archive", path=sdist.path, sha256=sdist.sha256), str(repo)
    else:
        path = Path(repo).expanduser().absolute()
        source, name = _local(path, commit), path.name
        origin = f"{name} {source.commit}".strip()
    tree = tree_of(source, name, on_progress=on_progress)
    declared = read_declared(tree)
    name = plain_name(declared.name or name)
    if environment is None:
        environment = repository_environment(tree, name=declared.name or name, version=version, on_progress=on_progress)
    if source.kind != "archive":
        source = pack(tree, on_progress=on_progress)
    return Codebase(name=name, origin=origin, source=source, tree=tree, environment=environment)


def tree_of(source: RepoSource, name: str, *, on_progress: Progress | None = None) -> Path:
    """The files of a source in the cache, as an agent would find them."""
    probe = Task(id=plain_name(name), problem_statement="-", repo=source, tests=Tests())
    return prepare_base(probe, on_progress=on_progress).tree


def pack(tree: Path, *, on_progress: Progress | None = None) -> RepoSource:
    """Files as an archive in the cache: the same files give the same bytes."""
    digest = hashlib.sha256()
    members = []
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name != ".git"]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *links):
            path = Path(folder, name)
            members.append((path.relative_to(tree).as_posix(), path))
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(members):
            info = tarfile.TarInfo(f"base/{name}")
            if path.is_symlink():
                info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
                archive.addfile(info)
                continue
            data = path.read_bytes()
            info.size = len(data)
            info.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            archive.addfile(info, io.BytesIO(data))
    data = gzip.compress(plain.getvalue(), 6, mtime=0)
    digest.update(data)

    def build(entry: Path) -> None:
        (entry / "base.tar.gz").write_bytes(data)

    key = digest.hexdigest()
    entry = build_once("packed", key[:32], build, on_progress=on_progress, sealed=True, note="files of a made task")
    return RepoSource(kind="archive", path=entry / "base.tar.gz", sha256=key)


def plain_name(name: str) -> str:
    """A name with which the id of a task can begin."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "repository"


def _local(path: Path, commit: str) -> RepoSource:
    if path.is_file() and path.suffix != ".bundle":
        return RepoSource(kind="archive", path=path)
    if path.is_file() or find_git_dir(path) is not None:
        return RepoSource(kind="git", path=path, commit=commit or "HEAD")
    if commit:
        raise TaskError(f"{path} is no git repository: it has no commit {commit}")
    if not path.is_dir():
        raise TaskError(f"{path} is not there: name a folder, a git repository, an archive, or NAME==VERSION")
    return RepoSource(kind="tree", path=path)
