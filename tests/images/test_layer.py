"""The image that episodes start from: an image with a base tree in it."""

import dataclasses
import os
import threading
import uuid

import pytest

from gagar_env.engine import engine
from gagar_env.errors import TaskError
from gagar_env.images import resolve_image
from gagar_env.images.layer import content_key, forget, with_tree
from gagar_env.sandbox.base import SANDBOX_UID
from gagar_env.tasks.task import Image

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("nothing_left")]


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "tree"
    (root / "pkg/empty").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / ".git/HEAD").write_text(uuid.uuid4().hex)
    (root / "pkg/run.sh").write_text("#!/bin/sh\n")
    (root / "pkg/run.sh").chmod(0o755)
    (root / "pkg/link").symlink_to("run.sh")
    (root / "dangling").symlink_to("/nowhere")
    os.link(root / "pkg/run.sh", root / "hard")
    with open(os.fsencode(root) + b"/odd\xff \xc3\xa9", "w") as file:
        file.write("odd")
    (root / ("long" * 50)).write_text("long")
    os.utime(root / "pkg/run.sh", (1_000_000_000, 1_000_000_000.9))
    return root


@pytest.fixture
def run():
    def run(image, script, user=f"{SANDBOX_UID}:{SANDBOX_UID}", binds=()):
        client = engine()
        config = client.create_host_config(network_mode="none", binds=list(binds))
        made = client.create_container(
            image, ["-c", script], entrypoint=["/bin/sh"], user=user, host_config=config, working_dir="/"
        )["Id"]
        try:
            client.start(made)
            code = client.wait(made)["StatusCode"]
            output = client.logs(made).decode("utf-8", "surrogateescape")
            assert code == 0, output
            return output
        finally:
            client.remove_container(made, force=True)

    return run


LOOK = "find {} -printf '%y %m %U:%G %p %l\\n' | sort"


def test_the_tree_is_there_as_it_is(test_image, tree, tidy, run):
    image = resolve_image(Image(reference=test_image))
    made = with_tree(image, tree)
    tidy.append(made)
    there = run(made, LOOK.format("/testbed"))
    own = f"{SANDBOX_UID}:{SANDBOX_UID}"
    expected = []
    for folder, folders, files in os.walk(tree):
        for path in (*([folder] if folder == str(tree) else ()), *(os.path.join(folder, n) for n in folders + files)):
            info, target = os.lstat(path), os.readlink(path) if os.path.islink(path) else ""
            kind = "l" if target else "d" if os.path.isdir(path) else "f"
            name = "/testbed" + path[len(str(tree)) :]
            expected.append(f"{kind} {info.st_mode & 0o7777:o} {own} {name} {target}")
    shown = [line.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for line in expected]
    assert sorted(there.splitlines()) == sorted(shown)  # the engine's log is text
    assert run(made, "cd /testbed; stat -c %F \"$(printf 'odd\\377 \\303\\251')\"") == "regular file\n"
    assert run(made, "stat -c %Y /testbed/pkg/run.sh; stat -c %h /testbed/hard").split() == ["1000000000", "2"]


def test_the_user_and_its_folders(test_image, tree, tidy, run, look):
    image = resolve_image(Image(reference=test_image, workdir="/a/b/c"))
    made = with_tree(image, tree)
    tidy.append(made)
    said = run(made, "id -un; touch /scratch/x /home/agent/x /a/b/c/x && echo writable; ls -ld /a /a/b")
    assert said.split("\n")[:2] == ["agent", "writable"]
    assert said.count("drwxr-xr-x") == 2
    config = look(made)["Config"]
    assert config["WorkingDir"] == "/a/b/c"
    assert config["Env"] == look(test_image)["Config"]["Env"]
    assert not config["Entrypoint"]
    assert config["Labels"]["gagar-env.kind"] == "task"


def test_what_the_image_holds_there_is_replaced(test_image, tree, tidy, run):
    image = resolve_image(
        Image(
            reference=test_image, commands=("rm -rf /testbed; mkdir -p /testbed/old; touch /testbed/.x /testbed/old/y",)
        )
    )
    tidy.append(image.id)
    made = with_tree(image, tree)
    tidy.append(made)
    assert sorted(run(made, "ls -A /testbed").split("\n")) == sorted(run(made, "cd /testbed; ls -A").split("\n"))
    assert run(made, "test -e /testbed/.x -o -e /testbed/old || echo gone") == "gone\n"
    linked = resolve_image(Image(reference=test_image, commands=("rm -rf /testbed; ln -s /etc /testbed",)))
    tidy.append(linked.id)
    made = with_tree(linked, tree)
    tidy.append(made)
    assert run(made, "test -L /testbed || test ! -e /etc/passwd || test -e /etc/hard || echo right") == "right\n"


def test_the_user_of_the_task(test_image, tree, tidy, run):
    image = dataclasses.replace(resolve_image(Image(reference=test_image)), user="root")
    made = with_tree(image, tree)
    tidy.append(made)
    assert run(made, "stat -c %u:%g /testbed/hard /scratch /home/agent").split() == ["0:0"] * 3
    with pytest.raises(TaskError, match=r"image\.user: .* has no user 'eve'"):
        with_tree(dataclasses.replace(image, user="eve"), tree)


def test_a_volume_in_the_way(small_image, tree, tidy):
    image = resolve_image(Image(dockerfile=f"FROM {small_image}\nVOLUME /testbed/data\n"))
    tidy.append(image.id)
    with pytest.raises(TaskError, match="declares a volume at /testbed/data"):
        with_tree(image, tree)
    tidy.append(with_tree(dataclasses.replace(image, workdir="/elsewhere"), tree))


def test_host_mode_has_mount_points_and_nothing_else(tree, tidy, run):
    made = with_tree(None, tree)
    tidy.append(made)
    binds = [f"{path}:{path}:ro" for path in ("/usr", "/lib", "/lib64", "/bin") if not os.path.islink(path)]
    said = run(made, "id -un; stat -c %U /testbed/hard /scratch; ls -A /root /home", binds=binds)
    assert said.split() == ["agent", "agent", "agent", "/home:", "agent", "/root:"]


def test_made_once(small_image, tree, tidy, look):
    image = resolve_image(Image(reference=small_image))
    found = []
    threads = [threading.Thread(target=lambda: found.append(with_tree(image, tree))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tidy += set(found)
    assert len(found) == 6
    assert len(set(found)) == 1
    engine().remove_image(found[0], force=True)
    assert with_tree(image, tree) == found[0]  # remembered
    forget(found[0])
    again = with_tree(image, tree)
    tidy.append(again)
    assert look(again) is not None


def test_the_key_of_a_tree_counts_all_but_times(tree):
    before = content_key(tree)
    os.utime(tree / "hard", (1, 1))
    assert content_key(tree) == before
    for change in (
        lambda: (tree / ".git/HEAD").write_text("x"),
        lambda: (tree / "hard").chmod(0o600),
        lambda: (tree / "pkg/empty").rmdir(),
        lambda: ((tree / "dangling").unlink(), (tree / "dangling").symlink_to("/else")),
    ):
        change()
        after = content_key(tree)
        assert after != before
        before = after
