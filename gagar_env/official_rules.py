"""Which paths of the work tree are the official tests' own, and not an agent's to change: see `official`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gagar_env.flags import is_test_name
from gagar_env.patch import base_state, parents

CONFIG_NAMES = frozenset(
    {
        *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"),
        *("tox.ini", "setup.cfg", "pyproject.toml"),
    }
)
START_UP = frozenset({"sitecustomize", "usercustomize"})
RESERVED = frozenset(
    {
        *("pytest", "_pytest", "pluggy", "iniconfig", "py", "packaging", "exceptiongroup", "tomli"),
        *("json", "hmac", "hashlib", "os", "sys", "importlib", "unittest", "types", "typing"),
    }
)
_IMPORTABLE = (".py", ".pyc", ".so", ".pyd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which paths are not the agent's to change.

    Attributes:
        tree: The base tree.
        paths: Protected files.
        folders: Folders protected with all in them.
        mixed: Folders of which only what pytest collects is protected.
        loose: The same with all folders below them.
        configured: Folders where pytest looks for configuration.
        roots: Folders that Python imports from; empty string = the root.
        guarded: Top-level modules that nobody may introduce, see `official_names`.
    """

    tree: Path
    paths: frozenset[str]
    folders: tuple[str, ...]
    mixed: frozenset[str]
    loose: tuple[str, ...]
    configured: frozenset[str]
    roots: tuple[str, ...]
    guarded: frozenset[str]

    def protect(self, path: str, *, new: bool = True) -> bool:
        """Whether a change of `path` is not taken; `new` when something is to stand there."""
        folder, _, name = path.rpartition("/")
        if any(p in self.paths for p in (path, *parents(path))):
            return True
        if any(is_inside(path, top) for top in self.folders):
            return True
        if name in CONFIG_NAMES and folder in self.configured:
            return True
        if is_test_name(name) and (folder in self.mixed or any(is_inside(path, top) for top in self.loose)):
            return True
        if "__pycache__" in path.split("/") or name.endswith((".pyc", ".pyo")):
            return True
        if any(is_inside(path, root) and self._hooks(path, root) for root in self.roots):
            return True
        return new and self._in_the_way(path)

    def _hooks(self, path: str, root: str) -> bool:
        head, below, _ = (path[len(root) + 1 :] if root else path).partition("/")
        stem = module_name(head, folder=bool(below))
        if head.endswith((".pth", ".egg-info", ".dist-info")) or stem in START_UP:
            return True
        return (stem in RESERVED or stem in self.guarded) and not _has_module(self.tree / root, stem)

    def _in_the_way(self, path: str) -> bool:
        """A file or link where a protected folder or an import root is, or a module in place of a protected one."""
        if any(is_inside(top, path) for top in (*self.folders, *self.paths, *filter(None, self.roots))):
            return True
        parts = path.split("/")
        for depth, part in enumerate(parts):
            stem = "/".join((*parts[:depth], module_name(part, folder=depth < len(parts) - 1)))
            if f"{stem}.py" in self.paths and base_state(self.tree, path) is None:
                return True
        return False


def module_name(name: str, *, folder: bool) -> str:
    """The module that a file (or link) or folder of this name can be imported as; empty when none.

    A link has no ending that says what it leads to.
    """
    if folder or "." not in name:
        return name
    return name.partition(".")[0] if name.endswith(_IMPORTABLE) else ""


def _has_module(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or (folder / f"{name}.py").is_file()


def is_inside(path: str, folder: str) -> bool:
    """Whether a path is a folder or something in it; the empty folder is the root."""
    return not folder or path == folder or path.startswith(folder + "/")
