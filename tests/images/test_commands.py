"""Set-up commands on top of an image."""

import subprocess
import sys
import threading
import uuid

import pytest

from gagar_env.engine import engine
from gagar_env.errors import EnvironmentBuildError
from gagar_env.images import resolve_image
from gagar_env.images.made import key_of, name_of
from gagar_env.tasks.task import Image

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("nothing_left")]


def test_run_once_as_root(small_image, tidy, look):
    mark = uuid.uuid4().hex
    told = []
    task = Image(reference=small_image, commands=(f"cd /; echo {mark} > mark", 'echo "$HOME" > /home-of'))
    found = resolve_image(task, on_progress=told.append)
    tidy.append(found.id)
    assert told == [f"image {small_image}: running its set-up commands"]
    assert found.id != resolve_image(Image(reference=small_image)).id
    config, base = look(found.id)["Config"], look(small_image)["Config"]
    assert config["Labels"]["gagar-env.kind"] == "commands"
    assert (config["Env"], config["WorkingDir"] or "/") == (base["Env"], base["WorkingDir"] or "/")
    told.clear()
    assert resolve_image(task, on_progress=told.append) == found
    assert told == []
    engine().remove_image(found.id, force=True)
    again = resolve_image(task)  # somebody removed it
    tidy.append(again.id)
    assert look(again.id) is not None


def test_a_failing_command_says_which_and_leaves_nothing(small_image, look):
    bad = f"echo {uuid.uuid4().hex}; echo why >&2; false; echo not reached"
    with pytest.raises(EnvironmentBuildError) as caught:
        resolve_image(Image(reference=small_image, commands=("true", bad)))
    assert str(caught.value).startswith(f"image {small_image}: set-up command 2 ({bad[:20]}")
    assert str(caught.value).endswith(" ended with exit code 1: why")
    key = key_of(look(small_image)["Id"], ["true", bad])
    assert look(name_of("commands", key)) is None
    with pytest.raises(EnvironmentBuildError, match=r"ended with exit code 9, and it printed nothing$"):
        resolve_image(Image(reference=small_image, commands=("exit 9",)))


def test_two_processes_run_them_once(small_image, tidy):
    command = f"echo {uuid.uuid4().hex} > /mark"
    code = (
        "import sys; from gagar_env.images import resolve_image; from gagar_env.tasks.task import Image;"
        "print(resolve_image(Image(reference=sys.argv[1], commands=(sys.argv[2],)), on_progress=print).id)"
    )
    both = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", code, small_image, command], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    found = []
    threads = [threading.Thread(target=lambda p=p: found.append(p.communicate()[0].decode())) for p in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = {text.split()[-1] for text in found}
    tidy += ids
    assert len(ids) == 1
    assert sum("running its set-up commands" in text for text in found) == 1
