"""Where the base tree of a row is: on this machine, or below a URL of a git server. Nothing is fetched here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gagar_env.errors import TaskError

_NAME = re.compile(r"(?!\.\.?(/|$))[A-Za-z0-9_.+-]+(/(?!\.\.?(/|$))[A-Za-z0-9_.+-]+)*")
_LONGEST = 200


def find_repo(
    repo: str,
    *,
    commit: str,
    instance: str,
    repo_dir: Path | str | None,
    stand_in: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], str]:
    """The source of a base tree, as the fields of a `RepoSource`, and a note for the task's origin.

    Args:
        repo: `owner/name`.
        commit: The base commit.
        instance: Id of the row.
        repo_dir: A clone or a bundle; or a folder with clones or bundles named `name`, `owner__name` or `owner/name`
            (`.git` or `.bundle` may follow), with trees of the base commit named as the instance, or with the source
            distributions of `stand_in`; or a URL that `owner/name` is put behind, or into in the place of `{repo}`.
        stand_in: `requirement`, `file` and `sha256` of a source distribution whose tree may stand in for the base
            commit.

    Raises:
        TaskError: If `stand_in` is not understood, or `repo` is no name: a row leads to nothing outside of `repo_dir`.
    """
    if not _NAME.fullmatch(repo) or len(repo) > _LONGEST:
        raise TaskError(f"{instance[:_LONGEST]}: repo: {repo[:_LONGEST]!r} is no owner/name of a repository")
    owner, _, name = repo.rpartition("/")
    wanted = {"kind": "git", "path": Path(name or repo), "commit": commit}
    if repo_dir is None:
        return wanted | {"missing": f"no clone of {repo} was given (needed for {instance}): pass its folder"}, ""
    if url := _url(repo_dir, repo):
        return {"kind": "git", "url": url, "commit": commit}, ""
    folder = Path(repo_dir).expanduser().absolute()
    names = tuple(dict.fromkeys((name, f"{owner}__{name}", f"{owner}/{name}") if owner else (name,)))
    clones = [folder, *(folder / f"{n}{end}" for n in names for end in ("", ".git", ".bundle"))]
    for path in clones:
        if _is_repository(path):
            return wanted | {"path": path}, ""
    if _NAME.fullmatch(instance) and len(instance) <= _LONGEST and (folder / instance).is_dir():
        return {"kind": "tree", "path": folder / instance}, ""
    if stand_in is not None:
        file, sha256, requirement = _stand_in(stand_in, instance)
        note = f" (on {requirement}, which stands in for the base commit)"
        if (folder / file).is_file():
            return {"kind": "archive", "path": folder / file, "sha256": sha256}, note
        unpacked = folder / file.removesuffix(".zip").removesuffix(".gz").removesuffix(".tar")
        if unpacked.is_dir():
            return {"kind": "tree", "path": unpacked}, note
    looked = ", ".join(dict.fromkeys((*names, instance)))
    missing = f"no clone of {repo} in {repo_dir} (needed for {instance}; looked for {looked})"
    return wanted | {"path": folder, "missing": missing}, ""


def _url(given: Path | str, repo: str) -> str:
    """The URL of a repository below `given`; empty where that is a folder. A path has lost a slash of its own."""
    found = re.fullmatch(r"(https?|ssh|git|file):/+(.+)", str(given))
    if found is None:
        return ""
    start = f"{found[1]}://{'/' if found[1] == 'file' else ''}{found[2]}"
    return start.replace("{repo}", repo) if "{repo}" in start else f"{start.rstrip('/')}/{repo}"


def _is_repository(path: Path) -> bool:
    if path.is_file():
        return path.suffix == ".bundle"
    return (path / ".git").exists() or all((path / n).exists() for n in ("HEAD", "objects", "refs"))


def _stand_in(given: Mapping[str, Any], instance: str) -> tuple[str, str, str]:
    try:
        file, sha256 = str(given["file"]), str(given["sha256"])
    except (KeyError, TypeError):
        raise TaskError(f"{instance}: environment.sdist_stand_in: needs `file` and `sha256`") from None
    if "/" in file or file in ("", ".", ".."):
        raise TaskError(f"{instance}: environment.sdist_stand_in.file: must be a bare file name")
    return file, sha256, str(given.get("requirement", file))
