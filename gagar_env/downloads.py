"""Archives from a URL: downloaded once, and only what has the checksum that was asked for."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from gagar_env.cache import Progress, build_once
from gagar_env.errors import TaskError
from gagar_env.mirrors import shown

MAX_BYTES = 1 << 30
TIMEOUT_S = 60.0
"""Without a byte."""
_READ = 1 << 18
_SCHEMES = ("https", "http")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


class _OnlyTheWeb(urllib.request.HTTPRedirectHandler):
    """Follows where it is sent over HTTP; never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        scheme = urlsplit(newurl).scheme
        if scheme not in _SCHEMES or (scheme == "http" and urlsplit(req.full_url).scheme == "https"):
            fp.close()
            raise urllib.error.URLError(f"it leads to {shown(newurl)}, which is not followed")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_archive_url(url: str, sha256: str, where: str) -> str:
    """The checksum of an archive with a URL, in small letters.

    Raises:
        TaskError: If it has none, or the URL is none.
    """
    if not _SHA256.fullmatch(sha256):
        raise TaskError(f"{where}: repo.sha256: an archive with a url needs the sha256 of the file, not {sha256!r}")
    scheme = ""
    with contextlib.suppress(ValueError):
        scheme = urlsplit(url).scheme
    if scheme not in _SCHEMES or re.search(r"\s", url):
        raise TaskError(f"{where}: repo.url: {shown(url)!r} is no https URL: a file goes in `path`")
    return sha256.lower()


def downloaded(url: str, sha256: str, where: str, on_progress: Progress | None = None) -> Path:
    """The file of a URL; from the cache if it was there before, whatever the URL was.

    Raises:
        TaskError: If it cannot be had, is larger than 1 GiB, or has another checksum.
        EnvironmentBuildError: If the cache cannot be written.
    """
    wanted = check_archive_url(url, sha256, where)

    def fetch(entry: Path) -> None:
        if on_progress is not None:
            on_progress(f"downloading {shown(url)} ...")
        found = _fetch(url, entry / "archive", where)
        if found != wanted:
            raise TaskError(f"{where}: {shown(url)} has the sha256 {found}, not {wanted}: it is not the file meant")

    return build_once("sdists", wanted, fetch, on_progress=on_progress, sealed=True, note=shown(url)) / "archive"


def _fetch(url: str, path: Path, where: str) -> str:
    opener = urllib.request.build_opener(_OnlyTheWeb)
    request = urllib.request.Request(url, headers={"User-Agent": "gagar-env", "Accept-Encoding": "identity"})
    total = hashlib.sha256()
    size = 0
    try:
        answer = opener.open(request, timeout=TIMEOUT_S)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ValueError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        raise TaskError(f"{where}: {shown(url)} cannot be downloaded: {_reason(error)}") from None
    with answer, path.open("xb") as file:
        while True:
            try:
                block = answer.read(_READ)
            except (OSError, http.client.HTTPException) as error:
                raise TaskError(f"{where}: {shown(url)} broke off after {size} bytes: {_reason(error)}") from None
            if not block:
                break
            size += len(block)
            if size > MAX_BYTES:
                raise TaskError(f"{where}: {shown(url)} is larger than {MAX_BYTES >> 20} MiB: download it yourself")
            total.update(block)
            file.write(block)
    return total.hexdigest()


def _reason(error: BaseException) -> str:
    said = getattr(error, "reason", None) if not isinstance(error, urllib.error.HTTPError) else None
    return " ".join(str(said or error).split())[:200] or type(error).__name__
