"""The `process` sandbox: a copy of the tree in a temporary folder, commands as ordinary processes.

For trusted code only. It keeps episodes apart by accident, not by force:

- no isolation: commands run as you, see the whole machine and its network, and can change what you can change;
- enforced: time limit, output cap, size of one file and address space of one process;
- not enforced: total memory, number of processes, disk.

It copies the tree, so a large repository makes `reset` slow; the `bwrap` sandbox does not.
"""

from __future__ import annotations

import shutil

from gagar_env.errors import SandboxUnavailableError
from gagar_env.sandbox._held import HeldSandbox
from gagar_env.sandbox.base import SandboxSpec


class ProcessSandbox(HeldSandbox):
    """See the module's text. Not safe for code that you do not trust."""

    kind = "process"

    def __init__(self, spec: SandboxSpec) -> None:
        if spec.rooms:
            raise SandboxUnavailableError(
                f"the process sandbox has no file system of its own, and this task needs {spec.rooms[0]}: use bwrap, or"
                " rootfs or docker with an image"
            )
        bash = shutil.which("bash")
        if bash is None:
            raise SandboxUnavailableError("the process sandbox needs bash: install it")
        self._bash = bash
        super().__init__(spec, isolate=False)

    def _open_room(self) -> None:
        room = self._holder.call("where")
        self.workdir, self.scratch = f"{room}/tree", f"{room}/scratch"
        self.home, self.temporary = f"{room}/home", f"{room}/tmp"

    def _argv(self, script: str) -> list[str]:
        self._open_room()
        return [self._bash, "--noprofile", "--norc", "-c", script]
