"""What saved images say of themselves."""

import gzip
import json

import pytest

from gagar_env.errors import TaskError
from gagar_env.images.archive import read_archive, read_manifest


def write(tmp_path, data, name="image.tar"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("linked", [False, True])
def test_docker_save(tmp_path, saved, linked):
    image = saved()
    config, layers = read_manifest(write(tmp_path, image.docker(linked=linked)))
    assert config["config"]["WorkingDir"] == "/work"
    assert layers == ("shared/layer.tar" if linked else "0/layer.tar", "1/layer.tar")
    assert read_archive(tmp_path / "image.tar").id == image.id


def test_oci_layout_also_compressed(tmp_path, saved):
    image = saved()
    plain = read_archive(write(tmp_path, image.oci()))
    packed = read_archive(write(tmp_path, gzip.compress(image.oci()), "image.tgz"))
    assert plain == packed
    assert plain.id == image.id
    assert len(plain.layers) == 2
    assert all(name.startswith("blobs/sha256/") for name in plain.layers)


def test_oci_layout_of_several_platforms(tmp_path, saved):
    image = saved()
    path = write(tmp_path, image.oci(platforms=2))
    assert read_archive(path, "linux/amd64").id == image.id
    assert read_archive(path, "linux/s390x").config["architecture"] == "s390x"
    with pytest.raises(TaskError, match="holds 2 images: save the one that is meant"):
        read_archive(path)


def test_a_bare_file_system(tmp_path, make_tar):
    path = write(tmp_path, make_tar([("bin", None), ("bin/sh", b"x"), ("manifest.json", b'{"an": "app"}')]))
    assert read_manifest(path) == ({}, ("",))


def test_faults_in_one_line(tmp_path, saved, make_tar):
    entry = {"Config": "c.json", "Layers": ["gone/layer.tar"]}
    lacking = make_tar([("c.json", b"{}"), ("manifest.json", json.dumps([entry]).encode())])
    two = make_tar([("c.json", b"{}"), ("manifest.json", json.dumps([entry, entry]).encode())])
    loop = make_tar([("c.json", "d.json"), ("d.json", "c.json"), ("manifest.json", json.dumps([entry]).encode())])
    empty = make_tar([("index.json", b'{"manifests": []}')])
    for data, said in (
        (b"no tar at all", "cannot be read as a tar"),
        (saved().docker()[:3000], "image.archive"),
        (gzip.compress(saved().docker())[:300], "cannot be read as a tar"),
        (lacking, "lacks gone/layer.tar"),
        (two, "holds 2 images"),
        (loop, "is a link without an end"),
        (empty, "holds 0 images"),
    ):
        with pytest.raises(TaskError, match=said) as caught:
            read_archive(write(tmp_path, data))
        assert "\n" not in str(caught.value)
    with pytest.raises(TaskError, match="does not exist"):
        read_archive(tmp_path / "none.tar")
    with pytest.raises(TaskError, match="is no file"):
        read_archive(tmp_path)
