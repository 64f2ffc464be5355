"""Images by name, from a registry of these tests."""

import pytest

from gagar_env.errors import EnvironmentBuildError, TaskError
from gagar_env.images import resolve_image
from gagar_env.images.pull import EVERY_S, PullProgress
from gagar_env.tasks.task import Image

pytestmark = pytest.mark.docker


def test_pulled_once_with_its_digest(registry, saved, tidy):
    image = saved()
    digest = registry.add("org/one", image, "v1")
    name = f"{registry.host}/org/one:v1"
    tidy.append(name)
    told = []
    found = resolve_image(Image(reference=name, workdir="/w"), on_progress=told.append)
    assert (found.id, found.reference, found.workdir) == (image.id, name, "/w")
    assert found.digest == f"{registry.host}/org/one@{digest}"
    assert (found.platform, found.env["MARK"]) == ("linux/amd64", image.mark)
    assert told[-1] == f"image {name}: pulled"
    asked = len(registry.pulls)
    told.clear()
    assert resolve_image(Image(reference=name, workdir="/w"), on_progress=told.append) == found
    assert (len(registry.pulls), told) == (asked, [])


def test_a_digest_is_honoured(registry, saved, tidy):
    old, new = saved(), saved()
    digest = registry.add("org/two", old, "v1")
    registry.add("org/two", new, "v1")
    name = f"{registry.host}/org/two:v1@{digest}"
    tidy += [old.id, new.id]
    found = resolve_image(Image(reference=name))
    assert (found.id, found.digest) == (old.id, f"{registry.host}/org/two@{digest}")
    assert resolve_image(Image(reference=f"{registry.host}/org/two:v1")).id == new.id


def test_no_such_image(registry):
    with pytest.raises(TaskError, match=r"^image 127.0.0.1:\d+/org/none:x: no such image, or it needs `docker login` "):
        resolve_image(Image(reference=f"{registry.host}/org/none:x"))
    with pytest.raises(TaskError, match="'Not A Name': that is no name of an image"):
        resolve_image(Image(reference="Not A Name"))
    with pytest.raises(TaskError, match="an id cannot be pulled"):
        resolve_image(Image(reference="sha256:" + "0" * 64))


def test_no_permission(registry):
    registry.refuse = 401
    with pytest.raises(EnvironmentBuildError, match="its registry does not let us in: docker login"):
        resolve_image(Image(reference=f"{registry.host}/org/three"))


def test_no_registry(registry):
    registry.server_close()  # its port is closed from here on
    with pytest.raises(EnvironmentBuildError, match="its registry does not answer: look at the network") as caught:
        resolve_image(Image(reference=f"{registry.host}/org/four"))
    assert "\n" not in str(caught.value)


def test_wrong_platform(registry, saved, tidy):
    image = saved(arch="s390x")
    registry.add("org/far", image)
    name = f"{registry.host}/org/far"
    tidy += [image.id]
    with pytest.raises(TaskError, match=r"linux/s390x|there is none for linux/amd64") as caught:
        resolve_image(Image(reference=name))
    assert "\n" not in str(caught.value)
    assert resolve_image(Image(reference=name, platform="linux/s390x")).platform == "linux/s390x"
    with pytest.raises(TaskError, match=r"it is for linux/s390x, not linux/amd64: set image\.platform"):
        resolve_image(Image(reference=name))


def test_progress_is_throttled():
    now, told = [0.0], []
    lines = PullProgress("x", told.append, clock=lambda: now[0])
    for step in range(100):
        detail = {"current": step, "total": 50_000_000}
        lines.event({"status": "Downloading", "id": "a", "progressDetail": detail})
        lines.event(
            {"status": "Downloading", "id": "b", "progressDetail": {"current": 25_000_000, "total": 50_000_000}}
        )
        now[0] += EVERY_S / 8
    assert len(told) == 13
    now[0] += EVERY_S
    lines.event({"status": "Pull complete", "id": "a"})
    assert told[1] == "image x: 25% of 100 MB"
    assert told[-1] == "image x: 75% of 100 MB"
