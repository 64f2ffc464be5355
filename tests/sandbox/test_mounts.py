"""What a holder takes out of its table of mounts, and what stays whatever lies on it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gagar_env.sandbox import SandboxSpec, _launch, open_sandbox, why_unavailable

if reason := why_unavailable("bwrap"):
    pytest.skip(f"bwrap does not work here: {reason}", allow_module_level=True)
pytestmark = pytest.mark.bwrap
ROOT = Path(__file__).parents[2]
SCRIPT = r"""
import json, os, sys, types
package = types.ModuleType("gagar_env")
package.__path__ = [sys.argv[1] + "/gagar_env"]
sys.modules["gagar_env"] = package
from gagar_env.sandbox import _kernel as kernel


def table():
    return [(row[4], row[row.index("-") + 1]) for row in kernel.mount_table()]


kernel.own_mounts()
room = sys.argv[2]
kernel.mount("tmpfs", room, "tmpfs", 0)
odd = os.fsdecode(b"caf\xe9 \r\x0b\xc2\xa0\n\\040")
for name in ("gone", "used", "covered", "carries", "tree", odd):
    os.mkdir(f"{room}/{name}")
    if name != "tree":
        kernel.mount("devpts", f"{room}/{name}", "devpts", 0, "newinstance")
kernel.mount("tmpfs", f"{room}/covered", "tmpfs", 0)
open(f"{room}/covered/file", "w").close()
kernel.mount("tmpfs", f"{room}/carries", "tmpfs", 0)
kernel.mount("tmpfs", f"{room}/tree", "tmpfs", 0)
before = table()
kernel.forget_mounts([f"{room}/used/deep/below"])
gone = [[path.removeprefix(room), kind] for path, kind in before if path.startswith(room)]
for path, kind in table():
    if path.startswith(room):
        gone.remove([path.removeprefix(room), kind])
kinds = sorted({kind for _, kind in set(before) - set(table())})
file = os.path.exists(f"{room}/covered/file")
print(json.dumps({"gone": gone, "kinds": kinds, "odd": odd, "file": file}))
"""


def test_what_holds_no_files_goes_unless_it_is_used_or_covered(tmp_path):
    command = [sys.executable, "-I", "-S", "-B", "-c", SCRIPT, str(ROOT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["gone"] == [["/gone", "devpts"], [f"/{said['odd']}", "devpts"]]
    assert said["file"]
    assert not {"tmpfs", "overlay", "ext4", "xfs", "btrfs", "nfs", "proc", "sysfs", "devtmpfs"} & set(said["kinds"])


@pytest.fixture
def mounted(tmp_path):
    """Mounts a file system of this machine on a folder, with one file in it."""
    places = []

    def mount(place):
        place.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "mode=755", "none", place], capture_output=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"nothing can be mounted here: {done.stderr!r}")
        places.append(place)
        (place / "late").write_text("late\n")
        return place

    yield mount
    for place in reversed(places):
        subprocess.run(["umount", "-l", place], check=True)


def said(command, **spec):
    box = open_sandbox("bwrap", SandboxSpec(**spec))
    try:
        return box.run(command, timeout_s=20).output.decode()
    finally:
        box.close()


@pytest.mark.parametrize("through", [".", "link"], ids=["plain", "link"])
def test_what_was_mounted_after_a_holder_was_made_is_there(tree, tmp_path, mounted, through):
    """An old holder would show the empty folder below it, and nobody would be told."""
    (tmp_path / "link").symlink_to(tmp_path)
    assert said("cat run.sh", tree=tree) == "echo run\n"
    place = mounted(tmp_path / "volume")
    assert said("cat late", tree=tmp_path / through / "volume") == "late\n"
    assert said(f"cat {place}/late", tree=tree, expose=(str(place),)) == "late\n"


def test_what_is_mounted_below_an_exposed_folder_is_there(tree, tmp_path, mounted):
    _launch.let_idle_go()
    place = mounted(tmp_path / "volumes/one")
    assert said(f"cat {place}/late", tree=tree, expose=(str(place.parent),)) == "late\n"


def test_an_exposed_link_that_is_pointed_elsewhere(tree, tmp_path):
    """The very same folder under another name, and then another folder under the same one."""
    first, link = tmp_path / "env/v1", tmp_path / "env/current"
    first.mkdir(parents=True)
    (first / "f").write_text("one\n")
    link.symlink_to("v1")
    look = {"tree": tree, "expose": (str(link),)}
    assert said(f"cat {link}/f", **look) == "one\n"
    first.rename(tmp_path / "env/v2")
    link.unlink()
    link.symlink_to("v2")
    assert said(f"cat {link}/f", **look) == "one\n"
    first.mkdir()
    (first / "f").write_text("two\n")
    link.unlink()
    link.symlink_to("v1")
    assert said(f"cat {link}/f", **look) == "two\n"


def test_an_etc_that_somebody_deleted_a_part_of(tree, tmp_path, monkeypatch):
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "cache"))
    assert said("id -un", tree=tree) == "agent\n"
    (part,) = (tmp_path / "cache/etc").glob("*/passwd")
    part.unlink()
    assert said("id -un", tree=tree) == "agent\n"
    shutil.rmtree(tmp_path / "cache")
    assert said("id -un", tree=tree) == "agent\n"
