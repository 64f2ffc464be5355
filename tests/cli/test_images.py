"""`gagar images`, run as a user runs it."""

import contextlib
import json
import uuid

import pytest

from gagar_env.cli import images
from gagar_env.engine import engine
from gagar_env.images import resolve_image
from gagar_env.images.layer import with_tree
from gagar_env.images.made import find, made_here
from gagar_env.tasks.task import Image


@pytest.fixture
def task_file(tmp_path, tiny_task):
    def write(*images):
        path = tmp_path / "tasks.jsonl"
        tasks = [tiny_task.model_copy(update={"id": f"t{n}", "image": image}) for n, image in enumerate(images)]
        path.write_text("".join(task.model_dump_json() + "\n" for task in tasks))
        return path

    return write


@pytest.mark.docker
def test_pull_and_list(gagar, task_file, small_image):
    mark = uuid.uuid4().hex
    commands = Image(reference=small_image, commands=(f"touch /{mark}",))
    path = task_file(Image(reference=small_image), None, commands, Image(reference=small_image))
    rows = json.loads(gagar("images", "pull", "--task-file", path, "--json").stdout)
    try:
        assert [(row["tasks"], row["image"], row["error"]) for row in rows] == [
            (["t0", "t3"], small_image, ""),
            (["t2"], small_image, ""),
        ]
        assert all(row["size"] > 0 and row["id"].startswith("sha256:") for row in rows)
        assert rows[0]["id"] != rows[1]["id"]
        assert small_image in gagar("images", "pull", "--task-file", path, "t2").stdout
        listed = json.loads(gagar("images", "list", "--json").stdout)
        (mine,) = [row for row in listed if row["id"] == rows[1]["id"]]
        assert mine["kind"] == "commands"
        assert mine["name"].startswith("gagar-env/commands:")
        assert mine["name"][-20:] in gagar("images", "list").stdout.replace("\n", "")
    finally:
        with contextlib.suppress(IndexError):
            engine().remove_image(rows[1]["id"], force=True)


@pytest.mark.docker
def test_one_that_fails_does_not_stop_the_others(gagar, task_file, small_image):
    path = task_file(Image(reference="sha256:" + "0" * 64), Image(reference=small_image))
    done = gagar("images", "pull", "--task-file", path, expect=1)
    assert small_image in done.stdout
    assert done.stderr.startswith("gagar: image sha256:000")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_tasks_without_an_image(gagar, one_line, task_file):
    said = one_line(gagar("images", "pull", "ledger-rounding", expect=1))
    assert said == "gagar: ledger-rounding has no image: it runs on this machine's own system"
    assert "1 task: none has an image" in one_line(gagar("images", "pull", "--task-file", task_file(None), expect=1))


def test_doc_2_no_engine_is_one_line(gagar, one_line, tmp_path):
    said = one_line(gagar("images", "list", expect=1, DOCKER_HOST=f"unix://{tmp_path}/none.sock"))
    assert "is dockerd running?" in said


@pytest.mark.docker
def test_prune_removes_what_was_made_here_and_is_not_in_use(small_image, tmp_path, monkeypatch, capsys):
    """On two images of its own: other tests have theirs in the same engine."""
    trees = [tmp_path / name for name in ("used", "unused")]
    for tree in trees:
        tree.mkdir()
        (tree / uuid.uuid4().hex).write_text("")
    image = resolve_image(Image(reference=small_image))
    used, unused = (with_tree(image, tree) for tree in trees)
    monkeypatch.setattr(images, "made_here", lambda: [row for row in made_here() if row["Id"] in (used, unused)])
    user = engine().create_container(used, ["true"])["Id"]
    try:
        images.prune(as_json=True)
        names = json.loads(capsys.readouterr().out)
        assert len(names) == 1
        assert [find(used) is None, find(unused) is None] == [False, True]
    finally:
        engine().remove_container(user)
        engine().remove_image(used, force=True)
