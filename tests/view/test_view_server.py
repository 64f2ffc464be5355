"""The server: this machine only, reading only, for its own page only."""

import gzip
import http.client
import json
import re
import signal
import socket
import subprocess
import sys

import pytest
from shown_runs import serving

from gagar_env.errors import GagarError
from gagar_env.view import Site, make_server, open_runs, pages


@pytest.fixture(scope="module")
def port(shown_run):
    with serving(shown_run) as url:
        yield int(url.rpartition(":")[2].rstrip("/"))


def ask(port, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers={"Host": f"127.0.0.1:{port}", **headers})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_the_page_and_its_parts(port):
    page, body = ask(port, "/")
    assert page.status == 200
    for target in re.findall(rb'(?:src|href)="(/[^"]+)"', body):
        assert ask(port, target.decode())[0].status == 200
    for name in (*pages.MODULES, *pages.STYLES):
        part, text = ask(port, f"/static/{name}")
        assert (part.status, text) == (200, pages.asset(name))


def test_every_answer_carries_the_rules(port):
    for path in ("/", "/api/runs", "/static/main.js", "/nowhere"):
        answer, _ = ask(port, path)
        policy = answer.getheader("Content-Security-Policy")
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert answer.getheader("X-Content-Type-Options") == "nosniff"
        assert answer.getheader("Cross-Origin-Resource-Policy") == "same-origin"
        assert answer.getheader("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "",
        "0.0.0.0",
        "localhost.:1",
        "[::1",
    ],
)
def test_names_of_others_are_refused(port, host):
    answer, body = ask(port, "/api/runs", Host=host)
    assert answer.status == 403
    assert b"runs" not in body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9999", "127.0.0.1:1", "[::1]:8420"])
def test_own_names_at_any_port_as_behind_a_tunnel(port, host):
    assert ask(port, "/api/runs", Host=host)[0].status == 200


def test_other_pages_are_refused(port):
    assert ask(port, "/api/runs", **{"Sec-Fetch-Site": "cross-site"})[0].status == 403
    assert ask(port, "/api/runs", **{"Sec-Fetch-Site": "same-site"})[0].status == 403
    assert ask(port, "/api/runs", **{"Sec-Fetch-Site": "same-origin"})[0].status == 200


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_it_only_reads(port, method):
    answer, _ = ask(port, "/api/runs", method)
    assert (answer.status, answer.getheader("Allow")) == (405, "GET")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../pages.py",
        "/static/%2e%2e/pages.py",
        "/static/page.html",
        "//etc/passwd",
        "/api/run/0/../../../etc/passwd",
        "/api/",
        "/static/",
        "/run.json",
    ],
)
def test_nothing_else_can_be_reached(port, path):
    assert ask(port, path)[0].status == 404


def test_answers_are_packed_for_those_who_can_read_it(port):
    plain, body = ask(port, "/api/run/0/group/0")
    packed, small = ask(port, "/api/run/0/group/0", **{"Accept-Encoding": "gzip"})
    assert plain.getheader("Content-Encoding") is None
    assert packed.getheader("Content-Encoding") == "gzip"
    assert json.loads(gzip.decompress(small)) == json.loads(body)


def test_nonsense_does_not_end_it(port):
    for sent in (b"\r\n\r\n", b"GET\r\n\r\n", b"\xff" * 100 + b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: " + b"x" * 70_000):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(4096):
                pass
    assert ask(port, "/api/runs")[0].status == 200


def test_what_cannot_be_shown_costs_itself_alone(shown_run, caplog):
    site = Site(open_runs(shown_run))
    with serving(shown_run, site) as url:
        own = int(url.rpartition(":")[2].rstrip("/"))
        site.runs[0].folder.settings["bad"] = {1: object, "\ud800": float("nan")}
        assert ask(own, "/api/run/0")[0].status == 200
        site.runs = ()
        assert ask(own, "/api/run/0")[0].status == 404
        site.runs = (None,)
        assert ask(own, "/api/run/0")[0].status == 500
        assert ask(own, "/api/nothing")[0].status == 404
    assert "run/0 cannot be shown" in caplog.text


def test_a_taken_port_is_told(shown_run, port):
    with pytest.raises(GagarError, match=f"--port {port} is taken: choose another"):
        make_server(Site(open_runs(shown_run)), port)


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted(shown_run):
    command = [sys.executable, "-m", "gagar_env", "view", str(shown_run), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            line = running.stdout.readline()
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", line)[1])
            assert json.loads(ask(port, "/api/run/0")[1])["groups"] == 5
        finally:
            running.send_signal(signal.SIGINT)
        assert running.wait(60) == 0
        assert running.stderr.read() == ""


@pytest.mark.slow
def test_wrong_input_is_one_line(tmp_path, shown_run):
    for arguments, said in (
        (["none"], "none: there is no such folder"),
        (["."], "no run is in there"),
        ([str(shown_run), "--static", "."], "--static . is a folder"),
        ([str(shown_run), "--static", "no/such/out.html"], "cannot be written"),
    ):
        command = [sys.executable, "-m", "gagar_env", "view", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 1
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
