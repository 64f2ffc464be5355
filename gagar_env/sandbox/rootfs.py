"""The `rootfs` sandbox: an image's file system in Linux namespaces, with no engine in the loop.

The image is unpacked once. Each sandbox then is what `bwrap` makes of this machine's own system: the same namespaces,
filter and limits, with the image as a read-only root. What differs from a container of the same image:

- the root is read-only for everybody; writable are the work tree, home, /tmp, /run, /dev/shm and the scratch folder;
- one user is known inside: the one that commands run as. Files of all others show as those of `nobody`, and "root" is
  a name without powers: it cannot change owners, nor become somebody else;
- no capabilities, no /sys, a small /dev; entry point, volumes, ports and health checks of the image are ignored;
- what the image has in its work tree is hidden by the task's.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from gagar_env.errors import SandboxUnavailableError
from gagar_env.images.accounts import HOME, resolve_user
from gagar_env.images.rootfolder import RootFolder
from gagar_env.images.unpack import mount_point, unpacked
from gagar_env.sandbox._launch import Nest
from gagar_env.sandbox.base import SandboxImage, SandboxSpec
from gagar_env.sandbox.bwrap import BwrapSandbox

_ROOMS = {"/tmp": "tmp", "/run": "run", "/scratch": "scratch", HOME: "home"}


class RootfsSandbox(BwrapSandbox):
    """See the module's text."""

    kind = "rootfs"
    home = HOME

    def __init__(self, spec: SandboxSpec, nest: Nest | None = None) -> None:
        if spec.image is None:
            raise SandboxUnavailableError("the rootfs sandbox runs images, and none is given: use bwrap")
        if spec.image.capabilities:
            wanted = ", ".join(spec.image.capabilities)
            raise SandboxUnavailableError(f"the rootfs sandbox gives no capabilities ({wanted}): use docker")
        self._image: SandboxImage = spec.image
        self.workdir = posixpath.normpath(self._image.workdir)
        super().__init__(spec, nest)

    def _plan_system(self) -> list[str]:
        self._root = unpacked(self._image)
        root = RootFolder(self._root)
        try:
            account = resolve_user(self._image.user, root.read("etc/passwd"), root.read("etc/group"))
            self.shell = "bash" if root.is_program("bin/bash") else "sh"
        finally:
            root.close()
        self.uid, self.gid = account.uid, account.gid
        return self._bind(str(self._root), "/")

    def _plan_exposed(self, spec: SandboxSpec) -> list[str]:
        """Folders of the host are not for images."""
        return []

    def _plan_writable(self, spec: SandboxSpec) -> list[str]:
        """Outer folders first: a work tree may be below /tmp, or be the home's parent."""
        wanted = {path: f"room{number}" for number, path in enumerate(spec.rooms)}
        wanted |= {**_ROOMS, self.workdir: "tree"}
        places = {mount_point(self._root, path): room for path, room in wanted.items()}
        return [part for path in sorted(places) for part in ("--bind", f"{{room}}/{places[path]}", path)]

    def _image_environment(self) -> Mapping[str, str]:
        return self._image.env

    def _start_environment(self) -> dict[str, str]:
        return {}  # variables of an image are no business of a program of this machine

    def _shell_command(self, script: str) -> list[str]:
        env = [part for name, value in self._environment().items() for part in ("--setenv", name, value)]
        flags = ("--noprofile", "--norc") if self.shell == "bash" else ()
        return ["--clearenv", *env, "--", f"/bin/{self.shell}", *flags, "-c", script]
