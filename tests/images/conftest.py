"""A registry and saved images for tests of images; what they leave in the engine is removed."""

import contextlib
import gzip
import hashlib
import io
import json
import tarfile
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from gagar_env.engine import engine
from gagar_env.images.made import find

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@pytest.fixture
def tidy(engine_works):
    """Ids or names of images to remove in the end, newest first."""
    made = []
    yield made
    for image in reversed(made):
        import docker.errors

        with contextlib.suppress(docker.errors.NotFound):
            engine().remove_image(image, force=True)


@pytest.fixture
def nothing_left(engine_works):
    """No container of this process is new after the test; one of before may end meanwhile, as the engine gets to it."""
    from gagar_env.sandbox.docker.owners import RUN, run_id

    def ours():
        return {entry["Id"] for entry in engine().containers(all=True, filters={"label": f"{RUN}={run_id()}"})}

    before = ours()
    yield
    assert ours() <= before


def tar(entries):
    """A tar of (name, bytes | link target | None for a folder)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if data is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
            else:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return out.getvalue()


class Saved:
    """An image of two layers that nobody has seen before, in the forms that it can be saved in."""

    def __init__(self, *, arch="amd64", workdir="/work"):
        self.mark = uuid.uuid4().hex
        self.layers = [
            tar([("etc", None), ("etc/low", b"low"), ("work", None), ("work/old", b"old\n")]),
            tar([("etc/mark", self.mark.encode()), ("work/.wh.old", b"")]),
        ]
        diffs = ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in self.layers]
        self.config = json.dumps(
            {
                "architecture": arch,
                "os": "linux",
                "config": {"Env": ["PATH=/bin", "MARK=" + self.mark], "WorkingDir": workdir, "Cmd": ["/bin/sh"]},
                "rootfs": {"type": "layers", "diff_ids": diffs},
                "history": [{"created_by": "test"}] * len(diffs),
            }
        ).encode()
        self.id = "sha256:" + hashlib.sha256(self.config).hexdigest()

    def docker(self, *, tags=(), linked=False):
        """As `docker save` writes it; older engines save like layers once, and link to them."""
        names = [f"{n}/layer.tar" for n in range(len(self.layers))]
        members = [(name, data) for name, data in zip(names, self.layers, strict=True)]
        if linked:
            members = [("shared/layer.tar", self.layers[0]), ("0/layer.tar", "../shared/layer.tar"), members[1]]
        name = self.id[7:] + ".json"
        manifest = [{"Config": name, "RepoTags": list(tags) or None, "Layers": names}]
        return tar([*members, (name, self.config), ("manifest.json", json.dumps(manifest).encode())])

    def oci(self, *, platforms=1):
        blobs, layers = {}, []

        def blob(data, **more):
            digest = hashlib.sha256(data).hexdigest()
            blobs[f"blobs/sha256/{digest}"] = data
            return {"digest": f"sha256:{digest}", "size": len(data), **more}

        layers = [blob(gzip.compress(data, mtime=0)) for data in self.layers]
        manifest = blob(json.dumps({"config": blob(self.config), "layers": layers}).encode())
        entries = [{**manifest, "platform": {"os": "linux", "architecture": json.loads(self.config)["architecture"]}}]
        if platforms > 1:
            other = Saved(arch="s390x")
            far = json.dumps({"config": blob(other.config), "layers": layers}).encode()
            entries.append({**blob(far), "platform": {"os": "linux", "architecture": "s390x"}})
        about = blob(b"{}", platform={"os": "unknown", "architecture": "unknown"})
        inner = blob(json.dumps({"manifests": [*entries, about]}).encode())
        index = {"schemaVersion": 2, "manifests": [inner]}
        return tar(
            [
                *blobs.items(),
                ("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'),
                ("index.json", json.dumps(index).encode()),
            ]
        )


@pytest.fixture
def saved():
    """The class: each use of it is an image of its own."""
    return Saved


@pytest.fixture
def make_tar():
    return tar


class Registry(ThreadingHTTPServer):
    """Serves images as a registry does; engines trust one on this machine without encryption."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.blobs, self.manifests, self.refuse, self.pulls = {}, {}, 0, []
        self.host = f"127.0.0.1:{self.server_port}"

    def add(self, name, image, tag="latest"):
        def blob(data, kind):
            digest = "sha256:" + hashlib.sha256(data).hexdigest()
            self.blobs[digest] = data
            return {"mediaType": kind, "size": len(data), "digest": digest}

        layer = "application/vnd.docker.image.rootfs.diff.tar.gzip"
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": blob(image.config, "application/vnd.docker.container.image.v1+json"),
                "layers": [blob(gzip.compress(data, mtime=0), layer) for data in image.layers],
            }
        ).encode()
        digest = "sha256:" + hashlib.sha256(manifest).hexdigest()
        self.manifests[name, tag] = self.manifests[name, digest] = manifest
        return digest


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        parts = self.path.removeprefix("/v2/").rstrip("/").split("/")
        if self.server.refuse:
            self.answer(self.server.refuse, error="UNAUTHORIZED")
        elif parts == ["v2"] or parts == [""]:
            self.answer(200, b"{}")
        elif parts[-2] == "manifests":
            self.server.pulls.append(parts[-1])
            data = self.server.manifests.get(("/".join(parts[:-2]), parts[-1]))
            self.answer(200, data, MANIFEST) if data else self.answer(404, error="MANIFEST_UNKNOWN")
        else:
            data = self.server.blobs.get(parts[-1])
            self.answer(200, data, "application/octet-stream") if data else self.answer(404, error="BLOB_UNKNOWN")

    def answer(self, status, data=b"", kind="application/json", error=""):
        if error:
            data = json.dumps({"errors": [{"code": error, "message": error.lower().replace("_", " ")}]}).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Docker-Content-Digest", "sha256:" + hashlib.sha256(data).hexdigest())
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def registry():
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def look():
    """What the engine knows of an image."""
    return find
