"""Which engine is taken, and what is said where there is none."""

import hashlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gagar_env import engine_address
from gagar_env.engine import address, engine, shares_files, why_no_engine
from gagar_env.errors import SandboxUnavailableError

ROOT = Path(__file__).parents[2]
PLACES = ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "XDG_RUNTIME_DIR")


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept, as an engine keeps them

    def do_GET(self):
        status, body = self.server.says.get(self.path.rpartition("/")[2], (404, {"message": "no such page"}))
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if isinstance(body, dict) else "text/plain")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_HEAD = do_GET

    def address_string(self):
        return "someone"

    def log_message(self, *arguments):
        pass


class OnSocket(ThreadingHTTPServer):
    address_family = socket.AF_UNIX
    request_queue_size = 64

    def server_bind(self):
        self.socket.bind(self.server_address)


@pytest.fixture
def serve(tmp_path):
    """Start a server that answers like an engine: at a path, or at a port when there is none."""
    running = []

    def serve(path="", *, api="1.43", says=None, tls=None):
        server = OnSocket(str(path), Answers) if path else ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        version = {"ApiVersion": api, "Version": "1", "Os": "linux", "Arch": "amd64"}
        server.says = {"version": (200, version), "_ping": (200, b"OK"), "info": (200, {}), **(says or {})}
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        running.append((server, thread))
        return f"unix://{path}" if path else f"tcp://127.0.0.1:{server.server_address[1]}"

    yield serve
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """No settings of this machine's user."""
    for name in PLACES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "config"))
    yield
    monkeypatch.undo()
    why_no_engine()  # the client of this test is closed


def context(tmp_path, name, host, **more):
    key = hashlib.sha256(name.encode()).hexdigest()
    meta = tmp_path / "config/contexts/meta" / key
    meta.mkdir(parents=True)
    endpoint = {"Host": host, "SkipTLSVerify": False, **more}
    (meta / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    return tmp_path / "config/contexts/tls" / key / "docker"


def test_doc_2_docker_host(serve, monkeypatch, tmp_path):
    for host in (serve(tmp_path / "engine.sock"), serve()):
        monkeypatch.setenv("DOCKER_HOST", host)
        assert why_no_engine() == ""
        assert engine().api_version == "1.43"
        assert (address().url, address().named_by) == (host, "DOCKER_HOST")
    assert shares_files() is False


def test_doc_2_contexts(serve, monkeypatch, tmp_path):
    host = serve(tmp_path / "engine.sock")
    context(tmp_path, "near", host)
    monkeypatch.setenv("DOCKER_CONTEXT", "near")
    assert why_no_engine() == ""
    assert address().url == host
    monkeypatch.delenv("DOCKER_CONTEXT")
    (tmp_path / "config/config.json").write_text('{"currentContext": "near"}')
    monkeypatch.setenv("DOCKER_TLS", "")  # settings are compared: what is on disk is read once
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "config") + "/")
    assert why_no_engine() == ""
    assert address().url == host
    assert "currentContext" in address().named_by
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    assert why_no_engine() == (
        "container engine: DOCKER_CONTEXT names the context 'far', which is not known here (known: default, near):"
        " docker context ls"
    )
    monkeypatch.setenv("DOCKER_CONTEXT", "default")
    assert engine_address.find_address().named_by != "DOCKER_CONTEXT"


def test_doc_2_podmans_socket_where_there_is_no_other(serve, monkeypatch, tmp_path):
    monkeypatch.setattr(engine_address, "USUAL_SOCKET", str(tmp_path / "none.sock"))
    monkeypatch.setattr(engine_address, "PODMAN_SOCKET", str(tmp_path / "root.sock"))
    assert engine_address.find_address().url == f"unix://{tmp_path}/none.sock"
    root = serve(tmp_path / "root.sock")
    assert engine_address.find_address().url == root
    (tmp_path / "podman").mkdir()
    own = serve(tmp_path / "podman/podman.sock")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert why_no_engine() == ""
    assert (address().url, address().named_by) == (own, "podman's")


def test_doc_2_no_daemon(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    where = f"{tmp_path}/none.sock (DOCKER_HOST)"
    advice = "is dockerd running? Start it, or set DOCKER_HOST"
    assert why_no_engine() == f"no container engine: {where} is not there: {advice}"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(f"{tmp_path}/none.sock")
    assert why_no_engine() == f"no container engine: {where} does not answer: {advice}"
    with pytest.raises(SandboxUnavailableError):
        engine()
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
    assert why_no_engine() == f"no container engine: tcp://127.0.0.1:{port} (DOCKER_HOST) does not answer: {advice}"


def ask(code="from gagar_env.engine import why_no_engine; print(why_no_engine())", **more):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False, timeout=60, **more
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_doc_2_no_permission(serve, tmp_path):
    path = tmp_path / "engine.sock"
    host = serve(path)
    path.chmod(0o600)
    code = (
        "import os; from gagar_env.engine import why_no_engine; import docker; os.setgid(65534); os.setuid(65534);"
        f"os.environ['DOCKER_HOST'] = {host!r}; print(why_no_engine())"
    )
    for folder in [tmp_path, *tmp_path.parents]:
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    assert ask(code, cwd=ROOT).startswith(f"no permission for the container engine's socket {path} (DOCKER_HOST): add")


def test_doc_2_engine_too_old(serve, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", serve(tmp_path / "engine.sock", api="1.39"))
    assert why_no_engine().endswith("speaks version 1.39 of its API, and 1.40 is needed: Docker 19.03 or newer")


def test_doc_2_not_an_engine(serve, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", serve(tmp_path / "a.sock", says={"version": (200, b"<html>\nhello")}))
    assert why_no_engine().startswith(f"no container engine answers at {tmp_path}/a.sock (DOCKER_HOST): ")
    wrong = (400, b"Client sent an HTTP request to an HTTPS server.\n")
    monkeypatch.setenv("DOCKER_HOST", serve(says={"version": wrong}))
    assert why_no_engine().endswith("(DOCKER_HOST) wants TLS: set DOCKER_TLS_VERIFY=1, and DOCKER_CERT_PATH")
    for host in ("nonsense", "/var/run/docker.sock", "ssh://", "tcp://no.such.host.invalid:1"):
        monkeypatch.setenv("DOCKER_HOST", host)
        assert host in why_no_engine()
        assert "\n" not in why_no_engine()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate of an engine at this machine, which signed itself."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += [
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-subj",
        "/CN=engine",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (folder / "ca.pem").write_bytes((folder / "cert.pem").read_bytes())
    return folder


def test_doc_2_tls(serve, monkeypatch, certificates, tmp_path):
    wrapper = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wrapper.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    host = serve(tls=wrapper)
    monkeypatch.setenv("DOCKER_HOST", host)
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(certificates))
    assert why_no_engine() == ""
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    assert why_no_engine() == (
        "container engine: DOCKER_TLS_VERIFY with DOCKER_CERT_PATH wants an encrypted connection, and"
        f" {tmp_path} lacks ca.pem, cert.pem, key.pem: put them there, or set DOCKER_CERT_PATH to their folder"
    )
    monkeypatch.delenv("DOCKER_HOST")
    folder = context(tmp_path, "safe", host)
    folder.mkdir(parents=True)
    monkeypatch.setenv("DOCKER_CONTEXT", "safe")
    assert "context safe wants an encrypted connection" in why_no_engine()
    (folder / "ca.pem").write_bytes((certificates / "ca.pem").read_bytes())
    assert why_no_engine() == ""


def test_doc_2_no_library_and_an_old_one(tmp_path):
    line = (
        "import sys; sys.modules['docker'] = None; from gagar_env.engine import why_no_engine; print(why_no_engine())"
    )
    assert ask(line, cwd=ROOT) == "containers need the docker library: pip install 'docker>=7.1'"
    package = tmp_path / "docker"
    package.mkdir()
    (package / "__init__.py").write_text("__version__ = '7.0.0'\n")
    (package / "errors.py").touch()
    said = ask(cwd=ROOT, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert said.startswith("the docker library is 7.0.0, and those before 7.1 break with requests 2.32: ")


def test_doc_2_local_sandboxes_work_without_the_library(tmp_path):
    (tmp_path / "tree").mkdir()
    code = (
        "import sys; sys.modules['docker'] = None; from pathlib import Path;"
        "from gagar_env.sandbox import open_sandbox, SandboxSpec;"
        f"s = open_sandbox('process', SandboxSpec(tree=Path({str(tmp_path / 'tree')!r})));"
        "print(s.run('echo works', timeout_s=20).output.decode()); s.close()"
    )
    assert ask(code, cwd=ROOT) == "works"


@pytest.fixture
def fds():
    return lambda: len(os.listdir("/proc/self/fd"))


def test_clients_end_with_their_threads(serve, monkeypatch, tmp_path, fds):
    monkeypatch.setenv("DOCKER_HOST", serve(tmp_path / "engine.sock"))
    engine().ping()
    before, found = fds(), []
    for _ in range(3):
        threads = [threading.Thread(target=lambda: found.append(engine().ping())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [True] * 12
    deadline = time.monotonic() + 20  # the server's ends are in this process too
    while fds() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_forked_child_has_clients_of_its_own(serve, tmp_path):
    code = f"""
import os, threading
os.environ["DOCKER_HOST"] = {serve(tmp_path / "engine.sock")!r}
from gagar_env.engine import engine
ready, done = threading.Barrier(3), threading.Event()
def sockets():
    paths = [f"/proc/self/fd/{{n}}" for n in os.listdir("/proc/self/fd")]
    return sum("socket:" in os.readlink(path) for path in paths if os.path.lexists(path))
def work():
    engine().ping(); ready.wait(); done.wait()
threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
[t.start() for t in threads]
engine().ping(); ready.wait()
assert sockets() >= 3, sockets()
mine = engine()
pid = os.fork()
if pid == 0:
    left = sockets()
    other = engine() is not mine and engine().ping()
    os._exit(0 if left == 0 and other else 10 + left)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
engine().ping(); done.set()
[t.join() for t in threads]
print(code, engine() is mine)
"""
    assert ask(code, cwd=ROOT) == "0 True"


@pytest.mark.docker
def test_this_machines_engine_shares_its_files(engine_works, monkeypatch):
    monkeypatch.undo()
    if address().socket:
        assert shares_files() is True
