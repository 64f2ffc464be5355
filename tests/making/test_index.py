import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gagar_env import package_index as index
from gagar_env import pip_setup
from gagar_env.errors import EnvironmentBuildError
from gagar_env.making import RefusedError
from gagar_env.package_index import fetch_sdist, project_files
from gagar_env.pip_setup import pip_settings

DATA = b"not really an archive"
GOOD = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, tmp_path):
    """A package index on this machine's network, as pip's setting; pages by path, and who asked how."""
    pages: dict[str, tuple[str, bytes]] = {}
    asked: list[tuple[str, str]] = []
    trouble = {"times": 0}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers.get("Authorization", "")))
            kind, body = pages.get(self.path, ("", b""))
            if trouble["times"]:
                trouble["times"] -= 1
                self.send_error(503)
                return
            if not kind:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *given: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    host = f"127.0.0.1:{server.server_address[1]}"
    for name, value in (
        *(("PIP_CONFIG_FILE", "/dev/null"), ("PIP_INDEX_URL", f"http://me:se%40cret@{host}/simple")),
        *(("PIP_EXTRA_INDEX_URL", f"http://{host}/more"), ("no_proxy", "127.0.0.1")),
        ("GAGAR_CACHE", str(tmp_path / "cache")),
    ):
        monkeypatch.setenv(name, value)
    pip_settings.cache_clear()
    project_files.cache_clear()
    yield pages, asked, trouble
    server.shutdown()
    server.server_close()
    thread.join()
    pip_settings.cache_clear()
    project_files.cache_clear()


def listed(*files: tuple[str, str, str]) -> tuple[str, bytes]:
    rows = [
        {"filename": n, "url": u, "hashes": {"sha256": h}, "upload-time": "2024-01-02T03:04:05Z"} for n, u, h in files
    ]
    return "application/vnd.pypi.simple.v1+json", json.dumps({"files": rows}).encode()


def test_json_with_credentials(web) -> None:
    pages, asked, _ = web
    pages["/simple/some-thing/"] = listed(("some_thing-1.0.tar.gz", "../../files/a.tar.gz", GOOD))
    pages["/files/a.tar.gz"] = ("application/gzip", DATA)
    sdist = fetch_sdist("Some.Thing", "1.0")
    assert sdist.path.read_bytes() == DATA
    assert sdist.path.name == "some_thing-1.0.tar.gz"
    assert sdist.uploaded.startswith("2024-01-02")
    assert "cret" not in sdist.url
    right = "Basic " + base64.b64encode(b"me:se@cret").decode()
    assert asked == [("/simple/some-thing/", right), ("/files/a.tar.gz", right)]
    fetch_sdist("Some.Thing", "1.0")
    assert [path for path, _ in asked].count("/files/a.tar.gz") == 1


def test_html_of_a_second_index(web) -> None:
    pages, _, trouble = web
    link = f'<a data-yanked="" href="/files/some_thing-2.zip#sha256={GOOD}">x</a>'
    link += '<a href="some_thing-2-py3-none-any.whl">y</a>'
    pages["/more/some-thing/"] = ("text/html", link.encode())
    pages["/files/some_thing-2.zip"] = ("application/zip", DATA)
    trouble["times"] = 1  # the index is busy once
    assert fetch_sdist("some-thing", "2").path.read_bytes() == DATA
    assert project_files("some-thing")[0].yanked


def test_another_file_than_the_index_promised(web) -> None:
    pages, _, _ = web
    pages["/simple/p/"] = listed(("p-1.tar.gz", "/f", "0" * 64), ("p-2.tar.gz", "/f", ""))
    pages["/f"] = ("x/y", DATA)
    with pytest.raises(EnvironmentBuildError, match=f"has the sha256 {GOOD}, the index says 000"):
        fetch_sdist("p", "1")
    with pytest.raises(EnvironmentBuildError, match="gives no sha256"):
        fetch_sdist("p", "2")


def test_what_is_not_there_or_too_large(web, monkeypatch: pytest.MonkeyPatch) -> None:
    pages, _, trouble = web
    pages["/simple/p/"] = listed(("p-1.tar.gz", "/f", GOOD), ("p-2-py3-none-any.whl", "/f", GOOD))
    pages["/f"] = ("x/y", DATA)
    for version, said in (("2", "no source distribution of that version"), ("3", "of that version")):
        with pytest.raises(RefusedError, match=said) as caught:
            fetch_sdist("p", version)
        assert caught.value.reason == "no_sdist"
    with pytest.raises(RefusedError, match="no project nowhere") as caught:
        fetch_sdist("nowhere", "1")
    assert "cret" not in str(caught.value)
    with pytest.raises(RefusedError, match="is no name"):
        fetch_sdist("../../p", "1")
    monkeypatch.setattr(index, "LARGEST_SDIST", 3)
    with pytest.raises(RefusedError, match="the limit is 3"):
        fetch_sdist("p", "1")
    trouble["times"] = 9
    project_files.cache_clear()
    with pytest.raises(EnvironmentBuildError, match="answers 503") as broken:
        fetch_sdist("p", "1")
    assert "cret" not in str(broken.value)


def test_index_of_pip_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://one.invalid/simple https://two.invalid/simple")
    pip_settings.cache_clear()
    try:
        first, *more = pip_setup.indexes()
    finally:
        pip_settings.cache_clear()
    assert first.startswith("https://")
    assert more == ["https://one.invalid/simple", "https://two.invalid/simple"]
