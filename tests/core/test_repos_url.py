"""Base trees from git URLs; every server here is real and on this machine."""

import os
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gagar_env import cache, mirrors
from gagar_env.bases import check_history, prepare_base
from gagar_env.cache import cache_root
from gagar_env.errors import TaskError
from gagar_env.tasks.task import RepoSource

pytestmark = pytest.mark.usefixtures("own_cache")


class SmartHTTP(BaseHTTPRequestHandler):
    """`git http-backend` as CGI."""

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": self.server.folder,
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": "" if self.server.old else self.headers.get("Git-Protocol", ""),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        done = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        self.server.asked.append(self.path)


class DumbHTTP(SimpleHTTPRequestHandler):
    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments, directory=arguments[2].folder)

    def log_message(self, *_: object) -> None:
        self.server.asked.append(self.path)


@pytest.fixture
def serve(tmp_path: Path, history, git_in):
    """Starts a server of one kind for a bare clone; its URL, and the list of what it was asked."""
    servers = []

    def serve(kind: str) -> tuple[str, list[str]]:
        bare = tmp_path / "served" / "bare.git"
        if not bare.exists():
            git_in(tmp_path, "clone", "-q", "--bare", str(history[0]), str(bare))
            git_in(bare, "update-server-info")
        server = ThreadingHTTPServer(("127.0.0.1", 0), DumbHTTP if kind == "dumb" else SmartHTTP)
        server.folder, server.old, server.asked = str(bare.parent), kind == "old", []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_address[1]}/bare.git", server.asked

    yield serve
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


def packs(folder: Path) -> int:
    return sum(len(list(place.glob("*.pack"))) for place in folder.rglob("pack"))


def holds(folder: Path, commit: str) -> bool:
    command = ["git", "--git-dir", str(folder), "cat-file", "-e", f"{commit}^{{commit}}"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.mark.parametrize("kind", ["smart", "old", "dumb", "file"])
def test_leak_1_a_url_gives_the_tree_of_one_commit(task_of, contents, history, serve, kind: str, base_files) -> None:
    folder, commit, fix = history
    url, asked = (folder.as_uri(), []) if kind == "file" else serve(kind)
    task = task_of(RepoSource(kind="git", url=url, commit=commit))
    said: list[str] = []
    base = prepare_base(task, on_progress=said.append)
    assert contents(base.tree) == base_files
    check_history(base.tree)
    assert ("does not give one commit alone" in " ".join(said)) == (kind in ("dumb", "old"))
    (mirror,) = (cache_root() / "mirrors").glob("*/git")
    assert holds(mirror, fix) == (kind in ("dumb", "old"))
    for path in (p for p in (base.tree / ".git").rglob("*") if p.is_file()):
        assert b"bare.git" not in path.read_bytes()
    count = len(asked)
    assert prepare_base(task) == base  # neither the server nor the mirror is needed again
    assert len(asked) == count
    assert prepare_base(task_of(RepoSource(kind="git", path=folder, commit=commit))).key == base.key


def test_a_second_commit_is_added_to_the_mirror(task_of, history, serve, git_in) -> None:
    url, _ = serve("smart")
    early = git_in(history[0], "rev-parse", "HEAD~2")
    for commit in (*history[1:], early):
        prepare_base(task_of(RepoSource(kind="git", url=url, commit=commit)))
    (mirror,) = (cache_root() / "mirrors").glob("*/git")
    assert packs(mirror) == 3
    assert (mirror / "config").read_text().count("url") == 0


def test_many_ask_for_commits_of_one_mirror(task_of, history, serve, git_in) -> None:
    url, _ = serve("smart")
    commits = [*history[1:], git_in(history[0], "rev-parse", "HEAD~2")]
    wanted = [
        task_of(RepoSource(kind="git", url=url, commit=commit), generated_files={f"v{n}.py": ""})
        for commit in commits
        for n in range(3)
    ]
    with ThreadPoolExecutor(len(wanted)) as pool:
        trees = [base.tree for base in pool.map(prepare_base, wanted)]
    found = [(tree / "a.py").read_text() for tree in trees]
    assert found == ["x = 1\n"] * 3 + ["x = 'the fix'\n"] * 3 + ["x = 1\n"] * 3
    assert len(list((cache_root() / "mirrors").glob("*/git"))) == 1


def test_what_a_killed_fetch_left_is_not_in_the_way(task_of, history, serve) -> None:
    url, _ = serve("smart")
    prepare_base(task_of(RepoSource(kind="git", url=url, commit=history[1])))
    (mirror,) = (cache_root() / "mirrors").glob("*/git")
    left = [mirror / "shallow.lock", mirror / "packed-refs.lock", mirror / "refs" / "gagar" / f"{history[2]}.lock"]
    left += [mirror / "objects" / "pack" / "tmp_pack_x1"]
    for path in left:
        path.write_bytes(b"half")
    cache._seen.clear()  # as in a new process
    tree = prepare_base(task_of(RepoSource(kind="git", url=url, commit=history[2]))).tree
    assert (tree / "a.py").read_text() == "x = 'the fix'\n"
    assert not any(path.exists() for path in left)


def test_a_damaged_mirror_is_fetched_anew(task_of, contents, history, serve, base_files) -> None:
    url, asked = serve("smart")
    prepare_base(task_of(RepoSource(kind="git", url=url, commit=history[1])))
    (pack,) = (cache_root() / "mirrors").glob("*/git/objects/pack/*.pack")
    times, data = pack.stat(), bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(data)
    os.utime(pack, ns=(times.st_atime_ns, times.st_mtime_ns))  # as a disk does it
    pack.chmod(0o444)
    asked.clear()
    again = task_of(RepoSource(kind="git", url=url, commit=history[1]), generated_files={"new.py": ""})
    assert contents(prepare_base(again).tree) == base_files | {"new.py": ("file", b"")}
    assert asked


def test_a_commit_that_the_server_does_not_have(task_of, history, serve) -> None:
    url, _ = serve("smart")
    with pytest.raises(TaskError, match=r"commit f{40} is not in http://127\S+: it may have left its branch") as caught:
        prepare_base(task_of(RepoSource(kind="git", url=url, commit="f" * 40)))
    assert "\n" not in str(caught.value)
    assert not list((cache_root() / "mirrors").glob("*/git"))


@pytest.mark.parametrize(
    ("url", "commit", "said"),
    [
        ("ext::sh -c 'touch marker'", "a" * 40, "git may use https, ssh, git and file URLs"),
        ("ext::touch%20marker", "a" * 40, "git may use https, ssh, git and file URLs"),
        ("/some/folder", "a" * 40, "a folder or bundle goes in `path`"),
        ("http://example.org/x", "a" * 40, "git may use https"),
        ("--upload-pack=touch marker", "a" * 40, "git may use https"),
        ("ssh://-oProxyCommand=touch/x", "a" * 40, "is no URL"),
        ("https://host:port/x", "a" * 40, "is no URL"),
        ("https://example.org/x.git", "main", "must be the full id of a commit"),
        ("https://example.org/x.git", "", "must be the full id of a commit"),
        ("https://user:secret@127.0.0.1:9/x.git", "a" * 40, r"https://127.0.0.1:9/x.git cannot be fetched: .*offline"),
    ],
)
def test_urls_and_commits_that_are_refused(task_of, tmp_path: Path, monkeypatch, url, commit, said) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TaskError, match=said) as caught:
        prepare_base(task_of(RepoSource(kind="git", url=url, commit=commit)))
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "marker").exists()


@given(
    st.one_of(
        st.text(max_size=40),
        st.builds(
            "{}://{}:hunter2@{}/{}".format,
            st.sampled_from(["https", "ssh", "git", "http", "ext", "file"]),
            st.text("ab@:%-", max_size=4),
            st.text("ab.:-[]", max_size=6),
            st.text("ab/ \n", max_size=5),
        ),
    )
)
def test_any_text_is_a_url_or_one_line_without_its_password(url: str) -> None:
    said, protocol = "", ""
    try:
        protocol = mirrors.check_url(url, "here")
    except TaskError as error:
        said = str(error)
    assert "\n" not in said
    assert "hunter2" not in said
    assert "hunter2" not in mirrors.shown(url)
    assert bool(said) != bool(protocol)
    assert protocol in ("", "ssh") or url.lower().startswith(f"{protocol}:")


def test_a_server_that_does_not_answer_is_ended(task_of, monkeypatch) -> None:
    """Nobody waits for ever, and no helper of git is left."""
    monkeypatch.setattr(mirrors, "ONE_COMMIT_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        with pytest.raises(TaskError, match=r"cannot be fetched: it did not end within 1 s$"):
            prepare_base(task_of(RepoSource(kind="git", url=url, commit="a" * 40)))
        with silent.accept()[0] as connection:
            connection.settimeout(30)
            while connection.recv(1 << 16):  # the other end closes when its process is gone
                pass


def test_a_source_that_names_no_place(task_of) -> None:
    for kind in ("git", "tree", "archive"):
        with pytest.raises(TaskError, match=r"it names no place: give repo\.path"):
            prepare_base(task_of(RepoSource(kind=kind, commit="a" * 40)))


def test_a_server_that_wants_a_password_is_one_line(task_of, tmp_path: Path) -> None:
    class Locked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Locked)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}/x.git"
        with pytest.raises(TaskError, match=r"log in is needed: use ssh, or a clone as `path`") as caught:
            prepare_base(task_of(RepoSource(kind="git", url=url, commit="a" * 40)))
        assert "\n" not in str(caught.value)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
