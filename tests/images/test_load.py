"""Saved images in the engine, and without one."""

import contextlib
import os

import pytest

from gagar_env.engine import engine
from gagar_env.errors import TaskError
from gagar_env.images import resolve_image
from gagar_env.images.load import file_sum
from gagar_env.tasks.task import Image

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("form", ["docker", "oci"])
def test_loaded_once_and_nobody_else_loses_a_name(tmp_path, saved, tidy, look, form):
    image, other = saved(), saved()
    taken = f"gagar-test-name:{image.mark[:12]}"
    first = tmp_path / "first.tar"
    first.write_bytes(other.docker())
    mine = resolve_image(Image(archive=first))
    tidy += [mine.id, taken]
    engine().tag(mine.id, *taken.split(":"))
    path = tmp_path / "image.tar"
    path.write_bytes(image.docker(tags=[taken]) if form == "docker" else image.oci())
    told = []
    found = resolve_image(Image(archive=path), on_progress=told.append)
    tidy.append(found.id)
    assert (found.id, found.archive, found.env["MARK"]) == (image.id, path, image.mark)
    assert [name.split(":")[0] for name in look(found.id)["RepoTags"]] == ["gagar-env/loaded"]
    assert look(taken)["Id"] == mine.id
    assert len(told) == 1
    copy = tmp_path / "copy.tar"
    copy.write_bytes(path.read_bytes())
    assert resolve_image(Image(archive=copy), on_progress=told.append).id == found.id
    assert len(told) == 1


def test_a_bare_file_system_is_imported(tmp_path, make_tar, tidy, look):
    path = tmp_path / "root.tar"
    path.write_bytes(make_tar([("bin", None), ("bin/mark", os.urandom(16))]))
    found = resolve_image(Image(archive=path))
    tidy.append(found.id)
    marks = look(found.id)["Config"]["Labels"]
    assert marks["gagar-env.kind"] == "loaded"
    assert resolve_image(Image(archive=path)).id == found.id


def test_without_an_engine(tmp_path, saved, make_tar, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    image = saved()
    path = tmp_path / "image.tar"
    path.write_bytes(image.oci(platforms=2))
    found = resolve_image(Image(archive=path))
    assert (found.id, found.platform, found.env["MARK"]) == (image.id, "linux/amd64", image.mark)
    assert found.archive == path
    bare = tmp_path / "bare.tar"
    bare.write_bytes(make_tar([("bin", None)]))
    assert resolve_image(Image(archive=bare)).id == "sha256:" + file_sum(bare)


def test_not_loaded_for_who_needs_no_engine(tmp_path, saved, look):
    image = saved()
    path = tmp_path / "image.tar"
    path.write_bytes(image.docker())
    assert resolve_image(Image(archive=path), need_engine=False).id == image.id
    assert look(image.id) is None


def test_wrong_platform(tmp_path, saved):
    path = tmp_path / "image.tar"
    path.write_bytes(saved(arch="s390x").docker())
    with pytest.raises(TaskError, match="it is for linux/s390x, not linux/amd64"):
        resolve_image(Image(archive=path), need_engine=False)


def test_a_sum_is_worked_out_again_for_a_changed_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    before = file_sum(path)
    path.write_bytes(b"three")
    assert file_sum(path) != before
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
