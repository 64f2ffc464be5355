"""An image's file system as a folder: layers and whiteouts right, and nothing outside of it touched."""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import uuid
from pathlib import Path

import pytest

from gagar_env.errors import TaskError
from gagar_env.images import resolve_image
from gagar_env.images.rootfolder import RootFolder
from gagar_env.images.unpack import mount_point, unpacked
from gagar_env.sandbox.base import SANDBOX_UID, SandboxImage
from gagar_env.tasks.task import Image

ADDED = {"proc", "dev", "sys", "tmp", "run", "scratch", "home", "etc"}


def tar(*members):
    """A tar of (name, bytes or None for a folder or (kind, target), attributes)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, what, *more in members:
            info = tarfile.TarInfo(name)
            info.mode, info.mtime = 0o644, 1_600_000_000
            if what is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(what, bytes):
                info.size = len(what)
            else:
                kinds = {"link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "pipe": tarfile.FIFOTYPE}
                info.type, info.linkname = kinds.get(what[0], tarfile.CHRTYPE), what[1]
            for attribute in more:
                for key, value in attribute.items():
                    setattr(info, key, value)
            archive.addfile(info, io.BytesIO(what) if isinstance(what, bytes) else None)
    return out.getvalue()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def saved(tmp_path):
    """Write layers as `docker save` does, and take the image of them as a sandbox gets it."""

    def save(*layers, packed=lambda data: data, sums=None, **more):
        config = {
            "config": {"Env": ["MARK=" + uuid.uuid4().hex]},
            "rootfs": {"diff_ids": sums or ["sha256:" + hashlib.sha256(layer).hexdigest() for layer in layers]},
        }
        names = [f"{number}/layer.tar" for number in range(len(layers))]
        manifest = [{"Config": "config.json", "RepoTags": None, "Layers": names}]
        path = tmp_path / f"{uuid.uuid4().hex}.tar"
        path.write_bytes(
            tar(
                ("config.json", json.dumps(config).encode()),
                *((name, packed(layer)) for name, layer in zip(names, layers, strict=True)),
                ("manifest.json", json.dumps(manifest).encode()),
            )
        )
        return resolve_image(Image(archive=path, **more), need_engine=False)

    return save


def content(root):
    """Every file (its bytes) and link (its target) of a folder, but for what is always added."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            key = str(path.relative_to(root))
            if path.is_symlink():
                found[key] = "-> " + os.readlink(path)
            elif path.is_file():
                found[key] = path.read_bytes()
            elif not any(path.iterdir()) and key.split("/")[0] not in ADDED:
                found[key] = None
    return {key: value for key, value in found.items() if key not in ("etc/passwd", "etc/group", "etc/hosts")}


def test_layers_whiteouts_and_opaque_folders(saved):
    image = saved(
        tar(
            ("a", None),
            ("a/kept", b"1"),
            ("a/gone", b"1"),
            ("a/changed", b"1"),
            ("b", None),
            ("b/low", b"1"),
            ("b/deep", None),
            ("b/deep/low", b"1"),
            ("c", None),
            ("c/x", b"1"),
            ("d", b"file"),
            ("e", None),
            ("e/x", b"1"),
            ("f", ("link", "a")),
            ("g", None),
            ("g/low", b"1"),
        ),
        tar(
            ("a/.wh.gone", b""),
            ("a/changed", b"2"),
            ("b/deep/high", b"2"),  # before its folder's mark
            ("b/.wh..wh..opq", b""),
            ("b/high", b"2"),
            (".wh.c", b""),
            ("d", None),
            ("d/x", b"2"),
            ("e", b"2"),
            ("f", None),
            ("f/own", b"2"),
            (".wh.missing", b""),
            ("g/.wh..wh.plnk", b""),
        ),
        tar(("c", None), ("c/y", b"3"), ("g", None), ("g/.wh.low", b""), ("g/low", b"3")),
    )
    assert content(unpacked(image)) == {
        "a/kept": b"1",
        "a/changed": b"2",
        "b/deep/high": b"2",
        "b/high": b"2",
        "c/y": b"3",
        "d/x": b"2",
        "e": b"2",
        "f/own": b"2",
        "g/low": b"3",
    }


def test_modes_times_links_and_owners(saved):
    root = unpacked(
        saved(
            tar(
                ("bin", None),
                ("bin/tool", b"x", {"mode": 0o4755, "uid": 7, "gid": 8}),
                ("bin/same", ("hard", "bin/tool")),
                ("bin/soft", ("link", "/bin/tool")),
                ("closed", None, {"mode": 0o700}),
                ("shared", None, {"mode": 0o1777}),
                ("null", ("device", ""), {"devmajor": 1, "devminor": 3}),
                ("pipe", ("pipe", "")),
            ),
            tar(("bin/again", ("hard", "/bin/soft"))),
        )
    )
    tool = (root / "bin/tool").lstat()
    assert (stat.S_IMODE(tool.st_mode), tool.st_mtime, tool.st_nlink) == (0o755, 1_600_000_000, 2)
    assert (root / "bin/same").samefile(root / "bin/tool")
    assert os.readlink(root / "bin/again") == "/bin/tool"
    assert stat.S_IMODE((root / "shared").stat().st_mode) == 0o1777
    assert not (root / "null").exists()
    assert not (root / "pipe").exists()
    assert stat.S_IMODE(root.stat().st_mode) == 0o755
    if os.geteuid() == 0:
        assert (tool.st_uid, tool.st_gid) == (7, 8)


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_layers(saved, packed):
    assert content(unpacked(saved(tar(("f", b"1" * 100_000)), packed=packed))) == {"f": b"1" * 100_000}


def test_zstd_is_one_line_or_works(saved):
    if sys.version_info >= (3, 14):
        from compression import zstd

        assert content(unpacked(saved(tar(("f", b"1")), packed=zstd.compress))) == {"f": b"1"}
        return
    with pytest.raises(TaskError, match="packed with zstd, which Python reads from") as caught:
        unpacked(saved(tar(("f", b"1")), packed=lambda data: b"\x28\xb5\x2f\xfd" + data))
    assert "\n" not in str(caught.value)


def test_tar_of_a_file_system(tmp_path):
    path = tmp_path / "rootfs.tar.gz"
    path.write_bytes(gzip.compress(tar(("./", None), ("./etc", None), ("./etc/name", b"x"), ("/abs", b"y"))))
    image = resolve_image(Image(archive=path), need_engine=False)
    assert content(unpacked(image)) == {"etc/name": b"x", "abs": b"y"}


# --- hostile archives ---


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "victim").write_text("untouched")
    yield folder
    assert (folder / "victim").read_text() == "untouched"
    assert os.listdir(folder) == ["victim"]


@pytest.mark.parametrize(
    "members",
    [
        [("../outside/victim", b"x")],
        [("a/../../outside/victim", b"x")],
        [("a/..", b"x")],
        [("copy", ("hard", "../outside/victim"))],
        [("../outside/.wh.victim", b"")],
        [(".wh...", b"")],
        [("d", None), ("d/.wh..", b"")],
        [("f", b"x"), ("f/below", b"x")],
        [("loop", ("link", "loop")), ("loop/x", b"x")],
        [("copy", ("hard", "missing"))],
        [("/".join(["d"] * 600), b"x")],
        [("x" * 300, b"x")],
        [("tmp", ("link", "/tmp/below"))],
        [("run", b"x")],
        [("etc", b"x")],
    ],
)
def test_hostile_members_are_refused(saved, outside, members, tmp_path):
    image = saved(tar(("ok", b"1"), *members))
    with pytest.raises(TaskError) as caught:
        unpacked(image)
    assert "\n" not in str(caught.value)
    assert not [p for p in (tmp_path / "cache/rootfs").iterdir() if p.is_dir()]


@pytest.mark.parametrize(
    "target", ["{outside}", "../../../../../../../../../../{outside}", "/proc/self/root/{outside}"]
)
def test_links_lead_nowhere_but_into_the_image(saved, outside, target):
    target = target.format(outside=outside)
    root = unpacked(
        saved(
            tar(
                ("out", ("link", target)), ("out/new", b"x"), ("file", ("link", f"{target}/victim")), ("file", b"mine")
            ),
            tar(("out/.wh.victim", b""), ("out/.wh..wh..opq", b""), ("out/victim", b"y")),
        )
    )
    assert (root / "file").read_bytes() == b"mine"
    assert (root / "file").stat().st_nlink == 1
    assert [p for p in root.rglob("victim") if not p.is_symlink()]  # the image's own idea of that place


def test_hard_link_through_a_link(saved, outside):
    with pytest.raises(TaskError):
        unpacked(saved(tar(("out", ("link", str(outside))), ("copy", ("hard", "out/victim")))))


def test_accounts_are_added_without_following_links(saved, outside):
    root = unpacked(
        saved(
            tar(
                ("etc", ("link", str(outside))),
                ("home", ("link", "/data")),
                ("data", None),
                ("tmp", ("link", "../../../../../../elsewhere/tmp")),
            )
        )
    )
    folder = RootFolder(root)
    assert b"agent:x:60999:60999" in folder.read("/etc/passwd")
    folder.close()
    assert (root / "data/agent").is_dir()
    assert (root / "elsewhere/tmp").is_dir()
    assert not os.path.lexists("/elsewhere")


def test_passwd_that_is_a_link(saved, outside):
    victim = outside / "victim"
    root = unpacked(saved(tar(("etc", None), ("etc/passwd", ("link", str(victim))), ("etc/group", ("link", "/g")))))
    assert not (root / "etc/passwd").is_symlink()
    assert (root / "etc/passwd").read_text().endswith("agent:x:60999:60999:agent:/home/agent:/bin/sh\n")


def test_a_layer_that_is_not_what_the_configuration_says(saved):
    image = saved(tar(("f", b"1")), sums=["sha256:" + "0" * 64])
    with pytest.raises(TaskError, match="not what the configuration says"):
        unpacked(image)


@pytest.mark.parametrize("damage", [lambda d: d[:700], lambda d: gzip.compress(d)[:-40], lambda d: b"no tar" * 200])
def test_damaged_layers(saved, damage):
    with pytest.raises(TaskError, match=r"layer 0/layer\.tar") as caught:
        unpacked(saved(tar(("f", os.urandom(5000))), packed=damage))
    assert "\n" not in str(caught.value)


# --- mount points and users ---


def test_mount_points(saved):
    root = unpacked(saved(tar(("opt", ("link", "usr/opt")), ("usr", None), ("usr/opt", None), ("file", b"x"))))
    assert {name for name in ADDED if (root / name).is_dir()} == ADDED
    assert (root / "home/agent").is_dir()
    assert mount_point(root, "/opt/../opt/app/") == "/usr/opt/app"
    assert (root / "usr/opt/app").is_dir()
    assert mount_point(root, "/../../x") == "/x"
    with pytest.raises(TaskError, match="/file/x cannot be a folder"):
        mount_point(root, "/file/x")


def test_unknown_user(saved):
    with pytest.raises(TaskError, match="no user 'nobody-here'"):
        unpacked(saved(tar(("f", b"1")), user="nobody-here"))


def test_files_of_the_images_user_can_be_read_by_it(saved):
    layer = tar(("root", None, {"mode": 0o700}), ("root/f", b"1", {"mode": 0o600}), ("g", b"1", {"uid": 5}))
    root = unpacked(saved(layer, user="root"))
    owner = SANDBOX_UID if os.geteuid() == 0 else os.geteuid()
    assert (root / "root/f").stat().st_uid == owner
    if os.geteuid() == 0:
        assert (root / "g").stat().st_uid == 5


def test_once_for_each_content(saved):
    image, other = saved(tar(("f", b"1"))), saved(tar(("f", b"2")))
    said = []
    first = unpacked(image, on_progress=said.append)
    assert unpacked(image, on_progress=said.append) == first
    assert len(said) == 1
    assert unpacked(other) != first


def test_for_an_ordinary_user(saved, tmp_path):
    """Folders that forbid entry, and files that forbid reading, do not stop who is not root."""
    if os.geteuid() != 0:
        pytest.skip("all of this file runs as an ordinary user already")
    if shutil.which("setpriv") is None or not os.path.exists("/usr/bin/python3"):
        pytest.skip("needs setpriv (util-linux) and the system's python3")
    source = Path(__file__).parents[2] / "gagar_env"
    home = tmp_path / "home"
    shutil.copytree(source, home / "gagar_env", ignore=shutil.ignore_patterns("tasks", "wrappers", "agents"))
    layer = tar(("d", None, {"mode": 0o500}), ("d/f", b"1", {"mode": 0}), ("e", b"1", {"uid": 0}))
    (home / "rootfs.tar").write_bytes(layer)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    subprocess.run(["chown", "-R", "12345:12345", str(home)], check=True)
    code = """
import sys, types
from pathlib import Path
root = types.ModuleType("gagar_env")  # that user's interpreter has none of the dependencies
root.__path__ = [sys.argv[1] + "/gagar_env"]
sys.modules["gagar_env"] = root
images = types.ModuleType("gagar_env.images")
images.__path__ = [sys.argv[1] + "/gagar_env/images"]
sys.modules["gagar_env.images"] = images
from gagar_env.images.unpack import unpacked
from gagar_env.sandbox.base import SandboxImage
made = unpacked(SandboxImage(id="sha256:1", archive=Path(sys.argv[1], "rootfs.tar")))
print((made / "d/f").read_text(), (made / "etc/passwd").is_file())
"""
    done = subprocess.run(
        [
            "setpriv",
            "--reuid=12345",
            "--regid=12345",
            "--clear-groups",
            "/usr/bin/python3",
            "-S",
            "-c",
            code,
            str(home),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "GAGAR_CACHE": str(home / "cache")},
    )
    assert done.stdout == "1 True\n", done.stderr


# --- from an engine ---


@pytest.mark.docker
def test_an_engines_image(test_image, nothing_left):
    image = resolve_image(Image(reference=test_image))
    root = unpacked(image)
    assert (root / "usr/bin/python3").exists()
    assert not (root / ".dockerenv").exists()
    assert not [p for p in root.rglob("*") if stat.S_ISCHR(p.lstat().st_mode) or stat.S_ISBLK(p.lstat().st_mode)]


@pytest.mark.docker
def test_an_engines_export_and_its_saved_image_give_the_same(tidy, saved, nothing_left, monkeypatch):
    image = saved(
        tar(("d", None), ("d/a", b"1"), ("d/b", b"1"), ("l", ("link", "d")), ("h", ("hard", "d/a"))),
        tar(("d/.wh.a", b""), ("d/c", b"2", {"mode": 0o755}), ("e", None, {"mode": 0o700})),
    )
    loaded = resolve_image(Image(archive=image.archive))
    tidy.append(loaded.id)
    by_engine = unpacked(SandboxImage(id=loaded.id, reference="of the engine"))
    monkeypatch.setenv("GAGAR_CACHE", os.environ["GAGAR_CACHE"] + "-2")  # the same image otherwise
    by_file = unpacked(image)
    assert content(by_file) == {"d/b": b"1", "d/c": b"2", "l": "-> d", "h": b"1", "e": None}
    extra = {"etc/hostname", "etc/resolv.conf", "etc/mtab", "dev/console"}
    assert {k: v for k, v in content(by_engine).items() if k not in extra} == content(by_file)
    for name in ("d/c", "e"):
        assert (by_engine / name).stat().st_mode == (by_file / name).stat().st_mode
