"""Archives from a URL: a real server on this machine, redirects, wrong sums, files that are too large or break off."""

import hashlib
import io
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gagar_env import downloads
from gagar_env.bases import check_history, prepare_base
from gagar_env.cache import cache_root
from gagar_env.errors import TaskError
from gagar_env.tasks.task import RepoSource

pytestmark = pytest.mark.usefixtures("own_cache")


def sdist() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for name, content in (("p-1/a.py", b"x = 1\n"), ("p-1/PKG-INFO", b"Name: p\n")):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        redirects = {
            "/moved": "/p-1.tar.gz",
            "/to-a-file": "file:///etc/hostname",
            "/round": "/round",
            "/to-ftp": "ftp://127.0.0.1/x",
        }
        if self.path in redirects:
            self.send_response(302)
            self.send_header("Location", redirects[self.path])
            self.end_headers()
            return
        if self.path not in ("/p-1.tar.gz", "/cut"):
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.data)))
        self.end_headers()
        self.wfile.write(self.server.data[: 30 if self.path == "/cut" else None])

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.data, server.asked = sdist(), []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def source(server, path: str, sha256: str | None = None) -> RepoSource:
    return RepoSource(
        kind="archive", url=server.url + path, sha256=sha256 or hashlib.sha256(server.data).hexdigest().upper()
    )


@pytest.mark.parametrize("path", ["/p-1.tar.gz", "/moved"])
def test_an_archive_is_downloaded_once(task_of, contents, server, tmp_path: Path, path: str) -> None:
    task = task_of(source(server, path))
    base = prepare_base(task)
    assert contents(base.tree) == {"a.py": ("file", b"x = 1\n"), "PKG-INFO": ("file", b"Name: p\n")}
    check_history(base.tree)
    count = len(server.asked)
    assert prepare_base(task) == base
    other = task_of(source(server, "/elsewhere"), generated_files={"v.py": ""})  # the same file, by its sum
    assert (prepare_base(other).tree / "v.py").exists()
    assert len(server.asked) == count
    (tmp_path / "p.tar.gz").write_bytes(server.data)
    assert prepare_base(task_of(RepoSource(kind="archive", path=tmp_path / "p.tar.gz"))).key == base.key


def test_a_damaged_download_is_fetched_again(task_of, contents, server) -> None:
    prepare_base(task_of(source(server, "/p-1.tar.gz")))
    (file,) = (cache_root() / "sdists").glob("*/archive")
    file.write_bytes(b"x")
    from gagar_env import cache

    cache._seen.clear()  # as in a new process
    again = task_of(source(server, "/p-1.tar.gz"), generated_files={"v.py": ""})
    assert "a.py" in contents(prepare_base(again).tree)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("path", "sha256", "said"),
    [
        ("/p-1.tar.gz", "0" * 64, r"has the sha256 [0-9a-f]{64}, not 0{64}: it is not the file meant"),
        ("/nothing", None, r"cannot be downloaded: HTTP Error 404"),
        ("/round", None, r"cannot be downloaded: HTTP Error 302"),
        ("/to-a-file", None, r"Redirection to url 'file:///etc/hostname' is not allowed"),
        ("/to-ftp", None, r"it leads to ftp://127.0.0.1/x, which is not followed"),
        ("/cut", None, r"broke off after \d+ bytes|has the sha256"),
        ("/p-1.tar.gz", "abc", r"repo\.sha256: an archive with a url needs the sha256 of the file"),
    ],
)
def test_what_is_not_the_file_is_refused(task_of, server, path: str, sha256: str | None, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        prepare_base(task_of(source(server, path, sha256)))
    assert "\n" not in str(caught.value)
    assert not list((cache_root() / "sdists").glob("*/archive"))


def test_a_file_that_is_too_large(task_of, server, monkeypatch) -> None:
    monkeypatch.setattr(downloads, "MAX_BYTES", 100)
    with pytest.raises(TaskError, match=r"is larger than 0 MiB: download it yourself"):
        prepare_base(task_of(source(server, "/p-1.tar.gz")))


@pytest.mark.parametrize("url", ["file:///etc/hostname", "/etc/hostname", "ftp://x/y", "https://a b/c", "http://[x"])
def test_urls_that_are_none(task_of, url: str) -> None:
    with pytest.raises(TaskError, match=r"repo\.url"):
        prepare_base(task_of(RepoSource(kind="archive", url=url, sha256="0" * 64)))


def test_nobody_answers_and_the_password_is_not_shown(task_of) -> None:
    repo = RepoSource(kind="archive", url="http://me:secret@127.0.0.1:9/x.tar.gz", sha256="0" * 64)
    with pytest.raises(TaskError, match=r"http://127\.0\.0\.1:9/x\.tar\.gz cannot be downloaded") as caught:
        prepare_base(task_of(repo))
    assert "secret" not in str(caught.value)


def test_a_source_has_one_place(task_of, tmp_path: Path) -> None:
    both = RepoSource(kind="archive", url="https://x/y", path=tmp_path, sha256="0" * 64)
    with pytest.raises(TaskError, match="it has a path and a url: give one"):
        prepare_base(task_of(both))
    with pytest.raises(TaskError, match="a source of kind 'tree' has none"):
        prepare_base(task_of(RepoSource(kind="tree", url="https://x/y")))
