"""Files of a package index, by its simple API: what pip would see with the user's own settings.

Nothing is built: a source distribution is looked up, downloaded, compared with the index's checksum and kept in the
cache. `pip download` would run its build backend, which is a stranger's code.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import shutil
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from gagar_env.cache import Progress, build_once
from gagar_env.errors import EnvironmentBuildError, refusal
from gagar_env.pip_setup import indexes, pip_settings

_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_TIMEOUT_S = 60.0
_TRIES = 3
LARGEST_SDIST = 30_000_000
"""Bytes of a source distribution that is still looked at."""
_ENDINGS = (".tar.gz", ".zip", ".tar.bz2", ".tar.xz")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """A file of a project.

    Attributes:
        uploaded: When, as the index says it (ISO 8601); empty where it does not.
    """

    name: str
    url: str
    sha256: str
    uploaded: str = ""
    yanked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sdist:
    """A source distribution in the cache."""

    project: str
    version: str
    path: Path
    sha256: str
    url: str
    """Without credentials."""
    uploaded: str = ""


def normal_name(name: str) -> str:
    """A project's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def fetch_sdist(project: str, version: str, *, on_progress: Progress | None = None) -> Sdist:
    """A source distribution, downloaded once.

    Raises:
        RefusedError: `no_sdist` or `too_large`.
        EnvironmentBuildError: If no index answers, or sends something else than it promised.
    """
    found = [file for file in project_files(project) if _sdist_version(file.name, project) == version]
    if not found:
        raise refusal("no_sdist", f"{project} {version}: the index has no source distribution of that version")
    file = min(found, key=lambda f: next(n for n, end in enumerate(_ENDINGS) if f.name.endswith(end)))
    if not file.sha256:
        raise EnvironmentBuildError(f"the index gives no sha256 for {file.name}: it cannot be checked")

    def build(entry: Path) -> None:
        if on_progress is not None:
            on_progress(f"downloading {file.name} ...")
        _download(file, entry / file.name)

    entry = build_once("sdists", file.sha256[:32], build, on_progress=on_progress, sealed=True, note=file.name)
    return Sdist(
        project=project,
        version=version,
        path=entry / file.name,
        sha256=file.sha256,
        url=_bare(file.url),
        uploaded=file.uploaded,
    )


def _sdist_version(file: str, project: str) -> str:
    """The version in the name of a source distribution; empty where it is another file."""
    ending = next((end for end in _ENDINGS if file.endswith(end)), "")
    stem = file.removesuffix(ending) if ending else ""
    head, dash, version = stem.rpartition("-")
    return version if dash and normal_name(head) == normal_name(project) else ""


@functools.lru_cache(maxsize=256)
def project_files(project: str) -> tuple[IndexFile, ...]:
    """Every file of a project: of the first index that knows it, as pip is set up.

    Raises:
        RefusedError: `no_sdist`, if no index knows it.
        EnvironmentBuildError: If an index cannot be asked.
    """
    if not _NAME.fullmatch(project):
        raise refusal("no_sdist", f"{project!r} is no name of a project")
    places = indexes()
    for index in places:
        url = f"{index.rstrip('/')}/{normal_name(project)}/"
        try:
            content, kind, real = _get(url)
        except FileNotFoundError:
            continue
        try:
            found = tuple(_from_json(content, real) if "json" in kind else _from_html(content, real))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise EnvironmentBuildError(f"the package index at {_bare(url)} sends what is no list of files") from None
        if any(_sdist_version(file.name, project) for file in found):
            return found
    shown = ", ".join(_bare(index) for index in places)
    raise refusal("no_sdist", f"no project {project} with a source distribution in {shown}")


def _from_json(content: bytes, base: str) -> Iterator[IndexFile]:
    for file in json.loads(content)["files"]:
        yield IndexFile(
            name=str(file["filename"]),
            url=urllib.parse.urljoin(base, str(file["url"])),
            sha256=str(file.get("hashes", {}).get("sha256", "")),
            uploaded=str(file.get("upload-time") or ""),
            yanked=bool(file.get("yanked", False)),
        )


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "a" and given.get("href"):
            self.found.append((given["href"] or "", "data-yanked" in given))


def _from_html(content: bytes, base: str) -> Iterator[IndexFile]:
    links = _Links()
    links.feed(content.decode("utf-8", "replace"))
    for href, yanked in links.found:
        url, _, fragment = urllib.parse.urljoin(base, href).partition("#")
        name = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
        sha256 = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        yield IndexFile(name=name, url=url, sha256=sha256, yanked=yanked)


def _download(file: IndexFile, target: Path) -> None:
    with _opened(file.url) as answer, target.open("wb") as out:
        size = int(answer.headers.get("Content-Length") or 0)
        if size > LARGEST_SDIST:
            raise refusal("too_large", f"{file.name} has {size} bytes, the limit is {LARGEST_SDIST}")
        shutil.copyfileobj(_Bounded(answer, file.name), out)
    found = hashlib.sha256(target.read_bytes()).hexdigest()
    if found != file.sha256:
        raise EnvironmentBuildError(f"{file.name} has the sha256 {found}, the index says {file.sha256}")


class _Bounded:
    """Reads no more than is allowed, whatever was announced."""

    def __init__(self, answer: Any, name: str) -> None:
        self._answer, self._name, self._left = answer, name, LARGEST_SDIST

    def read(self, size: int = -1) -> bytes:
        block: bytes = self._answer.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise refusal("too_large", f"{self._name} is larger than {LARGEST_SDIST} bytes")
        return block


def _get(url: str) -> tuple[bytes, str, str]:
    """Content, type and final address.

    Raises:
        FileNotFoundError: If it is not there.
        EnvironmentBuildError: If the index cannot be asked.
    """
    if url.startswith("file:"):
        url += "index.html"
    with _opened(url) as answer:
        return answer.read(), answer.headers.get("Content-Type") or "", answer.geturl()


def _opened(url: str) -> Any:
    settings = pip_settings()
    context = ssl.create_default_context(cafile=settings.get("cert")) if url.startswith("https") else None
    proxy = settings.get("proxy")
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else None),
        *([urllib.request.HTTPSHandler(context=context)] if context else []),
    )
    request = urllib.request.Request(_bare(url), headers={"Accept": _ACCEPT})
    if credentials := _credentials(url):
        plain = urllib.parse.unquote(credentials).encode()
        request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(plain).decode())
    problem, again, tries = "", True, 0
    while again and tries < _TRIES:
        tries += 1
        try:
            return opener.open(request, timeout=_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 410):
                raise FileNotFoundError(_bare(url)) from None
            problem, again = f"it answers {error.code}", error.code >= 500 or error.code == 429
        except OSError as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, FileNotFoundError) or url.startswith("file:"):
                raise FileNotFoundError(_bare(url)) from None
            problem = str(reason)
    raise EnvironmentBuildError(f"the package index at {_bare(url)} cannot be asked: {problem}")


def _credentials(url: str) -> str:
    """Its own, else those of an index on the same host and port: the files of such an index need them too."""
    parts = urllib.parse.urlsplit(url)
    here = (parts.scheme, parts.netloc.rpartition("@")[2])
    for known in map(urllib.parse.urlsplit, (url, *indexes())):
        credentials, _, host = known.netloc.rpartition("@")
        if credentials and (known.scheme, host) == here:
            return credentials
    return ""


def _bare(url: str) -> str:
    """An address without credentials."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
