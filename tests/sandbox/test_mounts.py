"""What a holder takes out of its table of mounts, and what stays whatever lies on it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = r"""
import json, os, sys, types
package = types.ModuleType("gagar_env")
package.__path__ = [sys.argv[1] + "/gagar_env"]
sys.modules["gagar_env"] = package
from gagar_env.sandbox import _kernel as kernel


def table():
    return [(row[4], row[row.index("-") + 1]) for row in kernel.mount_table()]


try:
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
    kernel._PLACES_OF_ENGINES = (f"{room}/engine/",)
    for name in ("unused", "volume"):
        os.makedirs(f"{room}/engine/{name}")
        kernel.mount("tmpfs", f"{room}/engine/{name}", "tmpfs", 0)
except PermissionError as error:
    print(json.dumps(str(error)))
    raise SystemExit
before = table()
told = kernel.forget_mounts([f"{room}/used/deep/below", f"{room}/engine/volume"])
gone = [[path.removeprefix(room), kind] for path, kind in before if path.startswith(room)]
for path, kind in table():
    if path.startswith(room):
        gone.remove([path.removeprefix(room), kind])
kinds = sorted({kind for _, kind in set(before) - set(table())})
told = [path.removeprefix(room) for path in told if path.startswith(room)]
file = os.path.exists(f"{room}/covered/file")
print(json.dumps({"gone": gone, "kinds": kinds, "odd": odd, "told": told, "file": file}))
"""


def test_what_holds_no_files_goes_unless_it_is_used_or_covered(tmp_path):
    command = [sys.executable, "-I", "-S", "-B", "-c", SCRIPT, str(ROOT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    if isinstance(said, str):
        assert os.geteuid() != 0, said
        pytest.skip(f"no mount namespace can be had here: {said}")
    assert said["gone"] == [["/gone", "devpts"], [f"/{said['odd']}", "devpts"], ["/engine/unused", "tmpfs"]]
    assert said["told"] == [f"{path}/" for path, _ in said["gone"]]
    assert said["file"]
    assert not {"ext4", "xfs", "btrfs", "nfs", "proc", "sysfs", "devtmpfs"} & set(said["kinds"])
