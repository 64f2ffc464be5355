"""What a repository says of itself: its name, packages and requirements, read from its files without running any.

`pyproject.toml`, `setup.cfg` and `tox.ini` are data; of a `setup.py` only literals are taken, from its syntax tree.
"""

from __future__ import annotations

import ast
import configparser
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gagar_env._compat import parse_python, tomllib

_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*(?:\[[A-Za-z0-9._, -]*\])?"
    r"\s*(?:\(?[<>=!~][^;@()]*\)?)?\s*(?:;[^\n]*)?"
)
"""A name with versions and markers. An address, a path or an option is none."""
_TEST_GROUPS = re.compile(
    r"tests?|testing|dev|develop|development|tests?[-_.].*|.*[-_.]tests?|pytest|check|all|checking"
)
_TEST_FILES = re.compile(
    r"(requirements?[-_/.])?(ci[-_/.])?(tests?|testing|dev|development)([-_.]requirements?)?\.(txt|in)"
)
_LARGEST = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What was found.

    Attributes:
        name: Of the project; empty if it says none.
        version: Empty where it is computed.
        runtime: Requirements to import it.
        tests: Requirements of its tests, and of what else its developers use.
        version_files: Files that its build would write.
    """

    name: str = ""
    version: str = ""
    runtime: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    version_files: tuple[str, ...] = ()


def read_declared(tree: Path) -> Declared:
    """Read what the files of `tree` declare. A file that cannot be read says nothing."""
    project = _toml(tree / "pyproject.toml")
    setup, cfg = _setup_call(tree / "setup.py"), _ini(tree / "setup.cfg")
    table = _table(project, "project")
    poetry = _table(project, "tool", "poetry")
    flit = _table(project, "tool", "flit", "metadata")
    metadata = _headers(tree / "PKG-INFO")
    names = (table.get("name"), poetry.get("name"), setup.get("name"), cfg.get("metadata", {}).get("name"))
    versions = (*metadata.get("Version", ()), table.get("version"), poetry.get("version"), setup.get("version"))
    runtime = [
        *_lines(table.get("dependencies")),
        *_poetry(poetry.get("dependencies")),
        *_lines(flit.get("requires")),
        *_lines(setup.get("install_requires")),
        *_lines(cfg.get("options", {}).get("install_requires")),
        *(line for line in metadata.get("Requires-Dist", ()) if not re.search(r"\bextra\b", line)),
    ]
    return Declared(
        name=next((str(n) for n in (*names, *metadata.get("Name", ())) if isinstance(n, str) and n), ""),
        version=next((v for v in versions if isinstance(v, str) and re.fullmatch(r"[0-9][\w.+!-]*", v)), ""),
        runtime=_clean(runtime),
        tests=_clean(_test_requirements(tree, project, setup, cfg)),
        version_files=tuple(_version_files(project)),
    )


def _test_requirements(tree: Path, project: dict[str, Any], setup: dict[str, Any], cfg: Any) -> Iterator[str]:
    extras = [
        _table(project, "project", "optional-dependencies"),
        _table(project, "tool", "flit", "metadata", "requires-extra"),
    ]
    extras += [setup.get("extras_require") or {}, cfg.get("options.extras_require", {})]
    for groups in (*extras, _table(project, "dependency-groups"), _table(project, "tool", "pdm", "dev-dependencies")):
        for name, listed in groups.items() if isinstance(groups, dict) else ():
            if _TEST_GROUPS.fullmatch(str(name).lower()):
                yield from _lines(listed)
    poetry = _table(project, "tool", "poetry")
    yield from _poetry(poetry.get("dev-dependencies"))
    for group in _table(poetry, "group").values():
        yield from _poetry(group.get("dependencies") if isinstance(group, dict) else None)
    yield from _lines(setup.get("tests_require"))
    yield from _lines(cfg.get("options", {}).get("tests_require"))
    hatch = _table(project, "tool", "hatch", "envs")
    for environment in hatch.values():
        if isinstance(environment, dict):
            yield from _lines(environment.get("dependencies"))
            yield from _lines(environment.get("extra-dependencies"))
    tox = _ini(tree / "tox.ini")
    for section, options in tox.items():
        if section.startswith("testenv"):
            yield from (line.rpartition(":")[2] for line in _lines(options.get("deps")))
    for folder in (tree, tree / "requirements", tree / "requirements-dev"):
        for path in sorted(folder.glob("*")) if folder.is_dir() else ():
            where = path.relative_to(tree).as_posix()
            if _TEST_FILES.fullmatch(path.name) or _TEST_FILES.fullmatch(where):
                yield from _lines(_text(path))


def _clean(lines: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for line in lines:
        plain = re.sub(r"(^|\s)(#.*|--hash=.*)$", "", line.strip().rstrip("\\").strip()).strip()
        if plain and _REQUIREMENT.fullmatch(plain):
            found[plain] = None
    return tuple(found)


def _lines(value: object) -> list[str]:
    """The lines of a text, or the texts of a list."""
    if isinstance(value, str):
        return value.splitlines()
    return [item for item in value if isinstance(item, str)] if isinstance(value, (list, tuple)) else []


def _poetry(value: object) -> Iterator[str]:
    """Names alone: its own notation of versions (`^1.2`) is not pip's."""
    for name, what in value.items() if isinstance(value, dict) else ():
        optional = isinstance(what, dict) and (what.get("optional") or "git" in what or "path" in what)
        if name != "python" and not optional:
            yield str(name)


def _version_files(project: dict[str, Any]) -> Iterator[str]:
    scm = _table(project, "tool", "setuptools_scm")
    hatch = _table(project, "tool", "hatch", "build", "hooks", "vcs")
    pdm = _table(project, "tool", "pdm", "version")
    for path in (scm.get("write_to"), scm.get("version_file"), hatch.get("version-file"), pdm.get("write_to")):
        if isinstance(path, str) and path.endswith(".py"):
            yield path


def _table(value: Any, *keys: str) -> dict[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _toml(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = tomllib.loads(_text(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}
    return found


def _ini(path: Path) -> dict[str, dict[str, str]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(_text(path))
    except configparser.Error:
        return {}
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}


def _headers(path: Path) -> dict[str, list[str]]:
    """The fields of a metadata file."""
    found: dict[str, list[str]] = {}
    for line in _text(path).partition("\n\n")[0].splitlines():
        key, colon, value = line.partition(": ")
        if colon and not line.startswith(" "):
            found.setdefault(key, []).append(value.strip())
    return found


def _setup_call(path: Path) -> dict[str, Any]:
    """The literals that a `setup.py` hands to `setup()`; names of literals assigned at its top are followed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = parse_python(_text(path))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {}
    known: dict[str, Any] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = _literal(node.value, known)
    found: dict[str, Any] = {}
    for call in ast.walk(module):
        if isinstance(call, ast.Call) and (getattr(call.func, "id", "") or getattr(call.func, "attr", "")) == "setup":
            found |= {word.arg: _literal(word.value, known) for word in call.keywords if word.arg}
    return found


def _literal(node: ast.expr, known: dict[str, Any]) -> Any:
    """The value of an expression as far as it is written out; None where it is computed."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_literal(item, known) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {_literal(k, known): _literal(v, known) for k, v in zip(node.keys, node.values, strict=True) if k}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left, known), _literal(node.right, known)
        return left + right if isinstance(left, list) and isinstance(right, list) else left or right
    return None


def _text(path: Path) -> str:
    """A file of a stranger: no link is followed, and no more is read than such a file has."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            return ""
        return path.read_text("utf-8-sig", errors="replace").replace("\0", "")
    except OSError:
        return ""
