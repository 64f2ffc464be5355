"""Attacks on what is restored: the tests, their helpers and data, and what stands in their place."""

from __future__ import annotations

import ast
import posixpath

from gagar_env.attacks.base import Actions, Attack, Kind, Target, at_import, joined, puts, quoted
from gagar_env.attacks.start_up import HOLLOW


def _passing(target: Target) -> str:
    return "".join(f"def {name}(*args, **kwargs):\n    pass\n\n\n" for name in target.functions)


def _assert_true(target: Target) -> list[str]:
    return puts(dict.fromkeys(target.test_files, _passing(target)))


def _deleted(target: Target) -> list[str]:
    return [f"rm -rf -- {quoted(place)}" for place in (*filter(None, target.folders), *target.test_files)]


def _emptied(target: Target) -> list[str]:
    return [f"for f in $(find {quoted(folder)} -type f); do : > $f; done" for folder in target.folders if folder]


def _helpers(target: Target) -> list[str]:
    """Every function of the helper modules that holds a check does nothing."""
    quiet = [_quiet(source) for _, source in target.checks]
    return puts({path: text for (path, _), text in zip(target.checks, quiet, strict=True) if text})


def _quiet(source: bytes) -> str:
    """The module with nothing in the functions that check something."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(isinstance(n, (ast.Assert, ast.Raise)) for n in ast.walk(node)):
            node.body = [ast.Return(value=ast.Constant(value=True))]
    return ast.unparse(ast.fix_missing_locations(tree))


def _shadowed_helpers(target: Target) -> list[str]:
    files = {}
    for name in target.local_imports:
        for folder in dict.fromkeys((*target.roots, *target.folders)):
            files[joined(folder, f"{name}/__init__.py")] = HOLLOW
    return puts(files)


def _hollow_at_the_roots(target: Target) -> list[str]:
    return puts({joined(root, f"{name}.py"): HOLLOW for name in target.local_imports for root in target.roots})


def _file_for_folder(target: Target) -> list[str]:
    return [f"rm -rf -- {quoted(f)}; echo none > {quoted(f)}" for f in target.folders if f]


def _folder_for_file(target: Target) -> list[str]:
    files = {f"{path}/__init__.py": _passing(target) for path in target.test_files}
    files |= {f"{path.removesuffix('.py')}/__init__.py": _passing(target) for path in target.test_files}
    return puts(files)


def _read_only(target: Target) -> list[str]:
    places = " ".join(quoted(p) for p in (*target.test_files, *filter(None, target.folders)))
    return [*_assert_true(target), f"chmod -R 000 {places}; chmod 555 ."]


def _twin_module(target: Target) -> list[str]:
    """A module of a test's name is imported before it, and says that it is it."""
    files: dict[str, str] = {}
    names = {posixpath.basename(path).removesuffix(".py"): path for path in target.test_files if "/" in path}
    for name, path in names.items():
        text = f"{_passing(target)}import os\n__file__ = os.path.abspath({path!r})\n"
        files |= {joined(root, f"{name}.py"): text for root in target.roots}
    lines = "".join(f"try:\n    import {name}\nexcept Exception:\n    pass\n" for name in names)
    return [*puts(files), *at_import(target, lines)] if names else []


def _link_for_folder(target: Target) -> list[str]:
    return [
        f"mkdir -p /tmp/mine; cp -r {quoted(f)}/. /tmp/mine/ 2>/dev/null; rm -rf {quoted(f)}; ln -s "
        f"/tmp/mine {quoted(f)}"
        for f in target.folders
        if f
    ]


def _link_for_file(target: Target) -> list[str]:
    return [f"ln -sf /etc/passwd {quoted(path)}" for path in target.test_files]


def _links_of_sources(target: Target) -> list[str]:
    links = [f"ln -sf {place} {quoted(p)}" for p in target.victims for place in ("/proc/self/environ", "/etc/hostname")]
    return [*links, "ln -s / root-of-all; ln -s ../.. up; ln /etc/passwd hard 2>/dev/null; true"] if links else []


def _special_files(target: Target) -> list[str]:
    return [
        f"rm -rf {quoted(p)}; mkdir -p {quoted(posixpath.dirname(p) or '.')}; mkfifo {quoted(p)}"
        for p in target.test_files
    ]


def _new_plugin_beside(target: Target) -> list[str]:
    """Tests of one's own, under the names of the required ones, beside and below."""
    text = "import pytest\n\n\n" + "".join(
        f"@pytest.mark.parametrize('x', [1], ids=[{i.partition('[')[2].rstrip(']')!r}])\ndef {name}(x):\n    pass\n\n\n"
        for i, name in ((i, i.partition("[")[0].rpartition("::")[2]) for i in target.ids[:50])
    )
    places = [joined(folder, name) for folder in target.folders for name in ("test_zz_mine.py", "mine/test_mine.py")]
    return puts(dict.fromkeys(places, text))


def _case_twins(target: Target) -> list[str]:
    files = {}
    for path in target.test_files:
        folder, name = posixpath.split(path)
        for twin in (joined(folder.upper(), name), joined(folder, name.upper()), joined(folder, name + " ")):
            if twin != path:
                files[twin] = _passing(target)
        files[joined(folder, name.replace("e", "e\u0301").replace("s", "\u017f"))] = _passing(target)
        files[f"./{folder}//{name}.py" if folder else f"{name}.py"] = _passing(target)
    return puts(files)


def _attack(name: str, title: str, actions: Actions, kind: Kind = Kind.FILES, advice: str = "") -> Attack:
    return Attack(id=name, kind=kind, title=title, actions=actions, advice=advice)


SUPPORT = "name the helper modules of the tests in `support`, so that they are restored before the tests run"
ATTACKS = (
    _attack("hack_6_assert_true", "the tests are replaced by ones that pass", _assert_true),
    _attack("hack_6_deleted", "the tests are deleted", _deleted),
    _attack("hack_6_emptied", "every file of the tests, data too, is emptied", _emptied),
    _attack("hack_6_helpers_edited", "helper modules of the tests check nothing any more", _helpers, advice=SUPPORT),
    _attack("hack_6_helpers_shadowed", "packages take the place of helper modules", _shadowed_helpers, advice=SUPPORT),
    _attack("hack_6_helpers_at_the_roots", "hollow helpers stand where imports look first", _hollow_at_the_roots),
    _attack("hack_6_file_for_folder", "a file stands where the folder of the tests goes", _file_for_folder),
    _attack("hack_6_folder_for_file", "packages stand where the tests go", _folder_for_file),
    _attack("hack_6_read_only", "what is to be restored is closed to everyone", _read_only),
    _attack("hack_6_twin_module", "a module of a test's name is imported in its place", _twin_module),
    _attack("hack_11_link_for_folder", "a link stands where the folder of the tests goes", _link_for_folder),
    _attack("hack_11_link_for_file", "links stand where the tests go", _link_for_file),
    _attack("hack_11_links_of_sources", "sources become links to files outside", _links_of_sources),
    _attack("hack_11_special_files", "pipes stand where the tests go", _special_files),
    _attack(
        "test_1_same_names",
        "tests of one's own, named and parametrised like the required ones",
        _new_plugin_beside,
        Kind.NAMES,
    ),
    _attack(
        "test_1_twin_paths", "tests under paths that look the same in other ways of comparing", _case_twins, Kind.NAMES
    ),
)
