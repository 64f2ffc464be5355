"""Fixtures for sandbox tests: a small base tree and one open sandbox of each kind that works here."""

import os
from pathlib import Path

import pytest

from gagar_env.images import resolve_image
from gagar_env.sandbox import IMAGE_KINDS, SandboxSpec, open_sandbox, why_unavailable
from gagar_env.sandbox.base import Limits, sandbox_owner
from gagar_env.tasks.task import Image

KINDS = (
    "process",
    "bwrap",
    pytest.param("rootfs", marks=pytest.mark.docker),
    pytest.param("docker", marks=pytest.mark.docker),
)


def own(tree: Path) -> None:
    for folder, folders, files in os.walk(tree):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), *sandbox_owner(), follow_symlinks=False)


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "base"
    (root / "pkg/deep").mkdir(parents=True)
    (root / "pkg/a.py").write_text("a = 1\n")
    (root / "pkg/deep/b.py").write_text("b = 2\n")
    (root / "pkg/deep/c.py").write_text("c = 3\n")
    (root / "run.sh").write_text("echo run\n")
    (root / "link").symlink_to("pkg/a.py")
    (root / "text.txt").write_bytes(b"one\r\ntwo\r\n")
    own(root)
    return root


@pytest.fixture(params=KINDS)
def kind(request):
    if reason := why_unavailable(request.param):
        pytest.skip(f"{request.param} does not work here: {reason}")
    return request.param


@pytest.fixture
def system(kind, request):
    """What a sandbox of this kind needs beside a tree: an image, or nothing."""
    if kind not in IMAGE_KINDS:
        return {}
    return {"image": resolve_image(Image(reference=request.getfixturevalue("test_image")))}


@pytest.fixture
def limits():
    return Limits(memory_mb=1024, processes=64, disk_mb=64, file_mb=32)


@pytest.fixture
def box(kind, tree, limits, system):
    sandbox = open_sandbox(kind, SandboxSpec(tree=tree, limits=limits, env={"TASK": "yes"}, **system))
    yield sandbox
    sandbox.close()


@pytest.fixture
def sh(box):
    def run(command, timeout_s=20.0, **more):
        return box.run(command, timeout_s=timeout_s, **more)

    return run
