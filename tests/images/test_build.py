"""Images from a Dockerfile."""

import contextlib
import uuid

import docker.errors
import pytest

from gagar_env.engine import engine
from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.images import resolve_image
from gagar_env.tasks.task import Image

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("nothing_left")]


@pytest.fixture
def context(tmp_path):
    folder = tmp_path / "context"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/data").write_text(uuid.uuid4().hex)
    (folder / "secret").write_text("s")
    (folder / ".dockerignore").write_text("# a comment\nsecret\n.dockerignore\n")
    return folder


def run(image, script):
    made = engine().create_container(image, ["/bin/sh", "-c", script], network_disabled=True)["Id"]
    try:
        engine().start(made)
        engine().wait(made)
        return engine().logs(made).decode()
    finally:
        engine().remove_container(made, force=True)


def test_built_once_for_its_content(small_image, context, tidy, look):
    text = f"FROM {small_image}\nENV HERE=there\nCOPY . /in\n"
    told = []
    first = resolve_image(Image(dockerfile=text, context=context), on_progress=told.append)
    tidy.append(first.id)
    assert first.env["HERE"] == "there"
    assert told == ["image: step 1, " + text.splitlines()[0], *told[1:]]
    assert run(first.id, "cat /in/sub/data; echo; ls -A /in").split() == [(context / "sub/data").read_text(), "sub"]
    assert look(first.id)["Config"]["Labels"]["gagar-env.kind"] == "built"
    assert look(first.id)["RepoTags"] == [f"gagar-env/built:{look(first.id)['Config']['Labels']['gagar-env.key']}"]
    told.clear()
    (context / "secret").write_text("another, which is ignored")
    assert resolve_image(Image(dockerfile=text, context=context), on_progress=told.append) == first
    assert told == []
    (context / "sub/data").write_text("changed")
    second = resolve_image(Image(dockerfile=text, context=context))
    tidy.append(second.id)
    assert second.id != first.id


def test_a_failing_step_is_named_and_nothing_is_left(small_image):
    mark = uuid.uuid4().hex
    text = f"FROM {small_image}\nRUN echo {mark}\nRUN echo the reason >&2; exit 7\n"
    before = {image["Id"] for image in engine().images(all=True)}
    with pytest.raises(EnvironmentBuildError) as caught:
        resolve_image(Image(dockerfile=text))
    said = str(caught.value)
    assert said.startswith("image.dockerfile: step 3, RUN echo the reason >&2; exit 7: ")
    assert "7" in said
    assert said.endswith("; it said last: the reason")
    assert "\n" not in said
    ours = []
    for image in {image["Id"] for image in engine().images(all=True)} - before:
        with contextlib.suppress(docker.errors.NotFound):  # another worker's, which it has removed meanwhile
            ours += [image] if mark in str(engine().history(image)) else []
    assert ours == []


@pytest.mark.parametrize("line", ["RUN --mount=type=cache,target=/x true", "RUN <<EOF\ntrue\nEOF"])
def test_syntax_of_buildkit(small_image, line):
    with pytest.raises(EnvironmentBuildError, match="syntax of BuildKit"):
        resolve_image(Image(dockerfile=f"FROM {small_image}\n{line}\n"))


def test_faults_of_the_task(tmp_path, small_image):
    with pytest.raises(TaskError, match=r"image\.context: .*none is no folder"):
        resolve_image(Image(dockerfile=f"FROM {small_image}\n", context=tmp_path / "none"))
    with pytest.raises(EnvironmentBuildError, match=r"step 2, COPY gone /: .*gone"):
        resolve_image(Image(dockerfile=f"FROM {small_image}\nCOPY gone /\n"))
    with pytest.raises(EnvironmentBuildError, match=r"image\.dockerfile: "):
        resolve_image(Image(dockerfile="NONSENSE\n"))
