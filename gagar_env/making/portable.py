"""Base trees of made tasks: each once, beside the tasks, so that the whole folder can be taken to another machine."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import tarfile
import tempfile
import threading
from pathlib import Path

from gagar_env.package_index import normal_name
from gagar_env.repoarchives import archive_key
from gagar_env.repofiles import export_git, export_tree
from gagar_env.tasks.task import RepoSource


class Sources:
    """The folder of archives that made tasks share. Safe between threads.

    Args:
        folder: Made when the first archive comes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[RepoSource, RepoSource] = {}

    def localised(self, repo: RepoSource, *, name: str) -> RepoSource:
        """The same tree as an archive in the folder; what is downloaded, or is in an image, stays as it is.

        Args:
            repo: Where the tree comes from.
            name: Begins the name of an archive that has to be made.

        Raises:
            TaskError: If the source cannot be read.
        """
        if repo.url or repo.kind == "image" or repo.missing:
            return repo
        plain = repo.model_copy(update={"patch": b""})
        with self._lock:
            if plain not in self._known:
                self._known[plain] = self._put(plain, name)
            return self._known[plain].model_copy(update={"patch": repo.patch})

    def _put(self, repo: RepoSource, name: str) -> RepoSource:
        self._folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".", suffix=".tmp", dir=self._folder) as folder:
            if repo.kind == "archive":
                made, file = Path(folder, "copy"), repo.path.name
                shutil.copyfile(repo.path, made)
            else:
                made, tree = Path(folder, "made"), Path(folder, "tree")
                tree.mkdir()
                if repo.kind == "git":
                    export_git(repo.path, repo.commit, tree, name)
                else:
                    export_tree(repo.path, tree, name)
                made.write_bytes(_packed(tree))
                file = f"{re.sub('[^A-Za-z0-9._-]+', '-', normal_name(name)).strip('-.')}.tar.gz"
            sha256 = archive_key(made, repo.sha256, name)
            target = self._folder / f"{sha256[:12]}-{file}"
            made.chmod(0o644)
            made.replace(target)
        return RepoSource(kind="archive", path=target, sha256=sha256)


def _packed(tree: Path) -> bytes:
    """A tree as an archive: the same tree gives the same bytes."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for folder, folders, files in os.walk(tree):
            folders.sort()
            links = [f for f in folders if os.path.islink(os.path.join(folder, f))]
            for name in sorted((*files, *links)):
                path = Path(folder, name)
                info = archive.gettarinfo(path, f"tree/{path.relative_to(tree).as_posix()}")
                info.uid = info.gid = 0
                info.uname = info.gname = ""
                info.mtime = 0
                info.mode = 0o755 if info.mode & 0o100 else 0o644
                if info.isreg():
                    info.type, info.linkname = tarfile.REGTYPE, ""
                    with path.open("rb") as file:
                        info.size = path.stat().st_size
                        archive.addfile(info, file)
                else:
                    archive.addfile(info)
    return gzip.compress(raw.getvalue(), mtime=0)
