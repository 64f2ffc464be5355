"""Packages without a wheel: their build is a stranger's code, and runs in a sandbox."""

import functools
import hashlib
import http.server
import io
import subprocess
import tarfile
import threading

import pytest

from gagar_env.environments import prepare_environment
from gagar_env.errors import EnvironmentBuildError
from gagar_env.tasks.task import Environment

pytestmark = [pytest.mark.bwrap, pytest.mark.network, pytest.mark.slow]

SETUP = """
import os, socket
from setuptools import setup
seen = [os.path.exists({here!r}), os.geteuid()]
for place in ({canary!r}, os.path.expanduser("~/canary")):
    try:
        open(place, "w").write("was here")
    except OSError:
        pass
try:
    socket.create_connection(("127.0.0.1", {port}), timeout=2)
    seen.append("network")
except OSError:
    pass
open("gagar_probe.py", "w").write("seen = %r" % (seen,))
setup(name="gagar-probe", version="1.0", py_modules=["gagar_probe"])
"""


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A second package index, and what publishes there."""
    root = tmp_path / "index"
    root.mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(root))
    handler.func.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "cache"))
    from gagar_env import package_index, pip_setup

    pip_setup.pip_settings.cache_clear()

    def publish(name, version, files):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        folder = root / name
        folder.mkdir()
        file = f"{name}-{version}.tar.gz"
        (folder / file).write_bytes(data.getvalue())
        digest = hashlib.sha256(data.getvalue()).hexdigest()
        (folder / "index.html").write_text(f'<a href="{file}#sha256={digest}">{file}</a>')

    publish.port = server.server_port
    yield publish
    server.shutdown()
    thread.join()
    server.server_close()
    pip_setup.pip_settings.cache_clear()
    package_index.project_files.cache_clear()


def test_a_build_sees_neither_this_machine_nor_the_network(index, tmp_path):
    canary = tmp_path / "canary"
    index("gagar-probe", "1.0", {"setup.py": SETUP.format(canary=str(canary), here=__file__, port=index.port)})
    built = prepare_environment(Environment(requirements=("gagar-probe==1.0",)))
    assert not canary.exists()
    said = subprocess.run(
        [built.python, "-I", "-c", "import gagar_probe; print(gagar_probe.seen)"], capture_output=True, text=True
    )
    assert said.stdout.strip().startswith("[False, ")
    assert "network" not in said.stdout


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"setup.py": "raise SystemExit('error: it will not do')"}, "cannot be built"),
        (
            {"pyproject.toml": '[build-system]\nrequires = ["evil @ file:///tmp/evil"]\n'},
            "its build requires 'evil @ file:///tmp/evil', which is no project of the index",
        ),
    ],
)
def test_what_cannot_be_built_says_so_in_one_line(index, files, why):
    index("gagar-probe", "1.0", files)
    with pytest.raises(EnvironmentBuildError, match=r"gagar-probe 1\.0") as caught:
        prepare_environment(Environment(requirements=("gagar-probe==1.0",)))
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
