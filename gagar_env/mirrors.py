"""Repositories that are not on this machine as a clone: a git URL, and a bundle file.

Of a URL there is one bare repository in the cache, to which commits are added as tasks name them: the one commit if the
server gives it, else all of its branches and tags. A bundle is unpacked once.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from gagar_env.cache import Progress, build_once, discard, mark_anew, one_at_a_time
from gagar_env.errors import TaskError
from gagar_env.gitcommand import fetch_git, git, make_git_dir
from gagar_env.repoarchives import archive_key

ONE_COMMIT_S = 900.0
WHOLE_S = 3600.0
_KIND = "mirrors"
_PROTOCOLS = ("https", "ssh", "file", "git")
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")
_SCP = re.compile(r"[A-Za-z0-9_][\w.+-]*@[A-Za-z0-9][\w.-]*:(?!/?:)[^\s]+")
_FULL_ID = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_REF = re.compile(r"refs/[\w][\w./+@-]*")
_NOT_ALONE = (
    *("not our ref", "unadvertised object", "shallow capabilities", "does not support shallow", "not valid"),
    *("remote ref", "Server does not allow request", "dumb http"),
)
"""What git says where a server does not give a single commit, or does not have it."""
_ADVICE = (
    (("could not read Username", "Authentication failed", "403"), "log in is needed: use ssh, or a clone as `path`"),
    (("Permission denied", "Host key verification"), "ssh is not let in: see that `ssh` connects without a question"),
    (
        ("Could not resolve", "Couldn't connect", "Failed to connect", "Connection", "unreachable", "timed out"),
        "offline?",
    ),
    (("not found", "does not appear to be a git repository", "does not exist"), "is the URL right?"),
)


def check_url(url: str, where: str) -> str:
    """The protocols that git may use for a URL.

    Raises:
        TaskError: If it is none that git may use here.
    """
    if _SCP.fullmatch(url):
        return "ssh"
    parts = _parts(url, where)
    if parts.scheme == "http" and parts.hostname in _THIS_MACHINE:
        return "http"
    if parts.scheme not in _PROTOCOLS or re.search(r"\s", url) or not (parts.hostname or parts.scheme == "file"):
        raise TaskError(
            f"{where}: repo.url: {shown(url)!r}: git may use https, ssh, git and file URLs; a folder or bundle goes in"
            " `path`"
        )
    if (parts.hostname or "").startswith("-"):
        raise TaskError(f"{where}: repo.url: {shown(url)!r} is no URL")
    return parts.scheme


def shown(url: str) -> str:
    """A URL without the name and password that it may hold, however odd it is."""
    return re.sub(r"://[^/]*@", "://", url)


def check_commit(commit: str, url: str, where: str) -> str:
    """The commit of a URL: its full id, since branches and tags of a server move.

    Raises:
        TaskError: If it is not.
    """
    if not _FULL_ID.fullmatch(commit):
        raise TaskError(
            f"{where}: repo.commit: {commit!r}: with a url it must be the full id of a commit (git ls-remote"
            f" {shown(url)} shows those of branches and tags)"
        )
    return commit


def mirror_of(url: str, commit: str, where: str, on_progress: Progress | None = None) -> Path:
    """A bare repository that has `commit`, all of it, from `url`.

    Raises:
        TaskError: If the URL is none, cannot be read, or does not have the commit.
        EnvironmentBuildError: If git is not installed or the cache cannot be written.
    """
    protocols = check_url(url, where)
    key = hashlib.sha256(shown(url).encode()).hexdigest()[:32]
    where_from = shown(url)

    def start(entry: Path) -> None:
        _fetch(make_git_dir(entry / "git"), url, commit, protocols, where, on_progress)

    for again in (False, True):
        entry = build_once(_KIND, key, start, on_progress=on_progress, only="git/objects/pack", note=where_from)
        git_dir = entry / "git"
        try:
            with one_at_a_time(_KIND, key, on_progress=on_progress):
                if not _has(git_dir, commit):
                    _fetch(git_dir, url, commit, protocols, where, on_progress)
                    mark_anew(_KIND, key)
        except TaskError:
            if again or _is_readable(git_dir, "--glob=refs/gagar"):
                raise
        else:
            if _is_readable(git_dir, commit):
                return git_dir
        discard(_KIND, key)  # damaged since it was fetched
    raise TaskError(f"{where}: commit {commit} of {where_from} cannot be read: clone it, and give the clone as `path`")


def _fetch(git_dir: Path, url: str, commit: str, protocols: str, where: str, tell: Progress | None) -> None:
    if tell is not None:
        tell(f"fetching commit {commit[:12]} of {shown(url)} ...")
    _tidy(git_dir)
    ours = f"+{commit}:refs/gagar/{commit}"
    said = fetch_git(git_dir, url, "--depth=1", ours, protocols=protocols, timeout_s=ONE_COMMIT_S)
    if said and any(sign in said for sign in _NOT_ALONE):
        if tell is not None:
            tell(f"{shown(url)} does not give one commit alone: fetching all of it ...")
        options = ("--unshallow",) if (git_dir / "shallow").exists() else ()
        all_of_it = ("+refs/heads/*:refs/gagar/heads/*", "+refs/tags/*:refs/gagar/tags/*")
        said = fetch_git(git_dir, url, *options, *all_of_it, protocols=protocols, timeout_s=WHOLE_S)
    if said:
        raise TaskError(f"{where}: {shown(url)} cannot be fetched: {_reason(said, url)}")
    if not _has(git_dir, commit):
        raise TaskError(
            f"{where}: commit {commit} is not in {shown(url)}: it may have left its branch; give a clone that has it as"
            " `path`"
        )


def _tidy(git_dir: Path) -> None:
    """Remove what a fetch left that was killed: its locks would stop every later one."""
    for pattern in ("*.lock", "refs/**/*.lock", "objects/pack/tmp_*"):
        for path in git_dir.glob(pattern):
            path.unlink(missing_ok=True)


def _has(git_dir: Path, commit: str) -> bool:
    with contextlib.suppress(TaskError):
        return git(git_dir, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}") != b""
    return False


def _is_readable(git_dir: Path, commit: str) -> bool:
    """Whether all objects of a commit are there and are what their names say."""
    with contextlib.suppress(TaskError):
        git(git_dir, "rev-list", "--quiet", "--objects", "--verify-objects", "--no-walk", commit)
        return True
    return False


def _reason(said: str, url: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = [line for line in lines if line.startswith(("fatal: ", "error: ", "ssh: "))] or lines
    text = " ".join("; ".join(dict.fromkeys(told)).split()).replace(url, shown(url))
    text = re.sub(r"://[^/\s]*@", "://", text)[:300]
    for signs, advice in _ADVICE:
        if any(sign in said for sign in signs):
            return f"{text} ({advice})"
    return text


def _parts(url: str, where: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - looks whether it is one
    except ValueError:  # whose text may hold the password
        raise TaskError(f"{where}: repo.url: {shown(url)!r} is no URL") from None
    return parts


def bundle_dir(path: Path, where: str, on_progress: Progress | None = None) -> Path:
    """The repository that a bundle file holds, unpacked once; its branches and tags have the names they have there.

    Raises:
        TaskError: If it is no bundle, or leans on commits that it does not hold.
        EnvironmentBuildError: If git is not installed or the cache cannot be written.
    """
    key = archive_key(path, "", where)[:32]

    def unpack(entry: Path) -> None:
        git_dir = make_git_dir(entry / "git")
        try:
            listed = git(git_dir, "bundle", "unbundle", str(path.absolute()))
        except TaskError as error:
            reason = str(error).rpartition(": ")[2]
            if _FULL_ID.fullmatch(reason.split(" ")[0]):
                reason = f"it leans on commit {reason[:12]}, which it does not hold"
            raise TaskError(
                f"{where}: {path.name} is no whole git bundle ({reason}): make it with `git bundle create FILE --all`"
            ) from None
        refs = []
        for line in listed.decode("utf-8", "surrogateescape").splitlines():
            name_of, _, ref = line.partition(" ")
            if ref == "HEAD":
                (git_dir / "HEAD").write_text(f"{name_of}\n", "ascii")
            elif _REF.fullmatch(ref) and ".." not in ref and not ref.endswith(("/", ".lock")):
                refs.append(f"{name_of} {ref}\n")
        (git_dir / "packed-refs").write_text("# pack-refs with:\n" + "".join(sorted(set(refs))), "utf-8")

    entry = build_once(_KIND, f"bundle-{key}", unpack, on_progress=on_progress, sealed=True, note=path.name)
    return entry / "git"
