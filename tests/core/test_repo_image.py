"""Base trees from the work folder of an image: read out of it, of which nothing runs."""

import contextlib
import io
import os
import tarfile
import uuid
from pathlib import Path

import pytest

from gagar_env.bases import check_history, prepare_base
from gagar_env.cache import cache_root
from gagar_env.engine import engine
from gagar_env.errors import TaskError
from gagar_env.provision import provision_base
from gagar_env.tasks.task import Image, RepoSource, Task

pytestmark = pytest.mark.usefixtures("own_cache")


def image_tar(path: Path, more: dict[str, bytes | str | None] | None = None) -> Path:
    """A tar of a file system: bytes are files, texts are links, None is a folder."""
    entries: dict[str, bytes | str | None] = {
        "etc": None,
        "etc/passwd": b"root:x:0:0::/:/bin/sh\n",
        "etc/secret": b"of the image",
        "work": "testbed",
        "testbed": None,
        "testbed/.git": None,
        "testbed/.git/config": b"[core]\n\tfsmonitor = touch /marker\n",
        "testbed/.git/refs": b"the fix",
        "testbed/.gitignore": b"build/\n",
        "testbed/a.py": b"x = 1\n",
        "testbed/pkg": None,
        "testbed/pkg/link": "../a.py",
        "testbed/build": None,
        "testbed/build/_version.py": b"v = 1\n",
        "testbed/__pycache__": None,
        "testbed/__pycache__/a.pyc": b"x",
        "testbed/hidden": None,
        "testbed/hidden/test_a.py": b"the hidden tests",
        "testbed/.venv": None,
        "testbed/.venv/pyvenv.cfg": b"home = /usr/bin\n",
        "testbed/.venv/python": "/usr/bin/python3",
    }
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in {**entries, **(more or {})}.items():
            info = tarfile.TarInfo(name)
            info.mode = 0o755 if data is None or name.endswith(".sh") else 0o600
            if data is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(data, str):
                info.type, info.linkname = tarfile.SYMTYPE, data
            else:
                info.size = len(data)
            archive.addfile(info, io.BytesIO(data) if isinstance(data, bytes) else None)
    return path


@pytest.fixture(params=["archive", pytest.param("engine", marks=pytest.mark.docker)])
def image_of(request, tmp_path: Path):
    """Makes an image: a saved one, which no engine is needed for, or one that only the engine has."""
    names = []

    def image_of(more=None, **fields: object) -> Image:
        path = image_tar(tmp_path / f"{uuid.uuid4().hex}.tar", more)
        if request.param == "archive":
            return Image(archive=path, **fields)
        names.append(f"gagar-test-made:{uuid.uuid4().hex}")
        repository, _, tag = names[-1].partition(":")
        engine().import_image_from_data(path.read_bytes(), repository=repository, tag=tag)
        return Image(reference=names[-1], **fields)

    yield image_of
    for name in names:
        import docker.errors

        with contextlib.suppress(docker.errors.NotFound):
            engine().remove_image(name, force=True)


def task_with(task_of, image: Image | None, **repo: object) -> Task:
    return task_of(RepoSource(kind="image", **repo)).model_copy(update={"image": image})


EXPECTED = {
    ".gitignore": ("file", b"build/\n"),
    "a.py": ("file", b"x = 1\n"),
    "pkg/link": ("link", b"../a.py"),
    "build/_version.py": ("file", b"v = 1\n"),
    ".venv/pyvenv.cfg": ("file", b"home = /usr/bin\n"),
    ".venv/python": ("link", b"/usr/bin/python3"),
}
HIDDEN = ("/testbed/hidden", "/elsewhere")


def test_leak_1_the_work_folder_without_its_history(task_of, contents, git_in, image_of) -> None:
    base = prepare_base(task_with(task_of, image_of(hidden=HIDDEN)))
    assert contents(base.tree) == EXPECTED  # leak_3: nor what is hidden
    check_history(base.tree)
    assert git_in(base.tree, "status", "--porcelain") == ""
    assert git_in(base.tree, "ls-files").split() == [".gitignore", "a.py", "build/_version.py", "pkg/link"]
    for path in (p for p in base.tree.rglob("*") if p.is_file() and not p.is_symlink()):
        assert not any(word in path.read_bytes() for word in (b"the fix", b"the hidden tests", b"fsmonitor"))


def test_another_folder_a_link_and_a_patch(task_of, contents, image_of) -> None:
    image = image_of({"opt": None, "opt/b.sh": b"#!/bin/sh\n"}, hidden=HIDDEN)
    by_link = prepare_base(task_with(task_of, image, path="/work"))
    assert contents(by_link.tree).keys() >= {"a.py", "pkg/link"}
    assert contents(prepare_base(task_with(task_of, image, path="/opt/")).tree) == {"b.sh": ("program", b"#!/bin/sh\n")}
    patch = b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
    broken = prepare_base(task_with(task_of, image, patch=patch))
    assert (broken.tree / "a.py").read_text() == "x = 2\n"
    assert prepare_base(task_with(task_of, image)).key != broken.key


def test_two_images_give_two_bases(task_of, image_of) -> None:
    """Their sources are equal: what differs is the image."""
    one = task_with(task_of, image_of(hidden=HIDDEN))
    two = task_with(task_of, image_of({"testbed/a.py": b"x = 7\n"}, hidden=HIDDEN))
    assert one.repo == two.repo
    assert (provision_base(one).tree / "a.py").read_text() == "x = 1\n"
    assert (provision_base(two).tree / "a.py").read_text() == "x = 7\n"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/nothing", "has no folder /nothing: set repo.path"),
        ("/etc/passwd", "has no folder /etc/passwd: set repo.path"),
        ("relative", "name a folder of the image, such as /testbed"),
        ("/", "name a folder of the image, such as /testbed"),
    ],
)
def test_folders_that_are_none(task_of, image_of, path: str, said: str) -> None:
    with pytest.raises(TaskError, match=said) as caught:
        prepare_base(task_with(task_of, image_of(), path=path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("target", ["/etc/secret", "../etc/secret", "/testbed/a.py"])
def test_hack_11_links_out_of_the_folder_are_refused(task_of, image_of, target: str) -> None:
    image = image_of({"testbed/out": target})
    with pytest.raises(TaskError, match=r"the link 'out' leads out of the repository"):
        prepare_base(task_with(task_of, image))


def test_hack_11_a_link_to_the_host_in_the_place_of_the_folder(task_of, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "secret").write_text("of this machine")
    image = Image(archive=image_tar(tmp_path / "i.tar", {"trap": str(tmp_path / "host")}))
    with pytest.raises(TaskError, match="has no folder /trap"):
        prepare_base(task_with(task_of, image, path="/trap"))


def test_a_task_without_an_image(task_of) -> None:
    with pytest.raises(TaskError, match="its kind is `image` and the task has none"):
        prepare_base(task_with(task_of, None))


def test_a_damaged_archive_leaves_nothing(task_of, tmp_path: Path) -> None:
    path = image_tar(tmp_path / "i.tar", {"testbed/big": os.urandom(100_000)})
    os.truncate(path, 60_000)
    with pytest.raises(TaskError, match="image"):
        prepare_base(task_with(task_of, Image(archive=path)))
    assert not list((cache_root() / "bases").glob("*/tree"))
