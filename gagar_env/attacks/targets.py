"""From a task to what an attack is aimed at."""

from __future__ import annotations

import posixpath
from pathlib import Path

from gagar_env.attacks.base import Target
from gagar_env.changes import FileState
from gagar_env.flags import is_test_name, is_test_path
from gagar_env.leaks import lines_of, secret_lines
from gagar_env.official_names import imports_of
from gagar_env.patch import base_state, read_patch
from gagar_env.tasks.task import Task

_MOST_VICTIMS = 5


def target_of(task: Task, tree: Path, *, port: int = 0, mark: str = "gagar") -> Target:
    """What is known of a task, for attacks on it.

    Args:
        task: The task. Its reference solution names the files that it is about, unless `concerns` does.
        tree: Its base tree.
        port: Of a server on this machine.
        mark: A word of this run.
    """
    fix = read_patch(tree, task.solution_patch)
    ids = tuple(dict.fromkeys((*task.tests.fail_to_pass, *task.tests.pass_to_pass, *filter(None, task.tests.expected))))
    files = [i.partition("::")[0] for i in ids if "::" in i]
    roots = tuple(dict.fromkeys(("", *(_plain(path) for path in task.environment.pythonpath))))
    official = _official(task, tree)
    if not task.tests.by_reporter:
        files += [path for path in official if is_test_name(posixpath.basename(path))]
    test_files = tuple(dict.fromkeys(f for f in (*files, *task.tests.files) if f.endswith(".py")))
    sources = [state.data for path, state in official.items() if state is not None and path.endswith(".py")]
    imported = sorted({name for source in sources for name in imports_of(source)})
    beside = {posixpath.dirname(path) for path in test_files}
    local: list[str] = []
    checks: list[tuple[str, bytes]] = []
    for name in imported:
        for root in (*roots, *beside):
            path = f"{root}/{name}.py" if root else f"{name}.py"
            if (state := base_state(tree, path)) is not None and path not in fix:
                local.append(name)
                if path not in official and (b"assert" in state.data or b"raise" in state.data):
                    checks.append((path, state.data))
    inside = {p.name.partition(".")[0] for root in roots if (tree / root).is_dir() for p in (tree / root).iterdir()}
    return Target(
        victims=_victims(task, tree, tuple(fix)),
        ids=ids,
        test_files=test_files,
        test_imports=tuple(name for name in imported if name not in inside and name not in local),
        local_imports=tuple(dict.fromkeys(name for name in local if not is_test_name(f"{name}.py"))),
        checks=tuple(checks),
        roots=roots,
        fix=fix,
        needles=_needles(task, tree),
        reward_folder=task.tests.reward_folder,
        port=port,
        mark=mark,
    )


def _victims(task: Task, tree: Path, touched: tuple[str, ...]) -> tuple[str, ...]:
    named = [path for path in (*task.concerns, *touched) if path.endswith(".py") and not is_test_path(path)]
    there = [path for path in dict.fromkeys(named) if (tree / path).is_file()]
    return tuple(there[:_MOST_VICTIMS])


def _official(task: Task, tree: Path) -> dict[str, FileState | None]:
    found = dict(read_patch(tree, task.tests.patch))
    if (folder := task.tests.folder) is not None and not task.tests.place:
        for file in folder.rglob("*.py"):
            name = file.relative_to(folder).as_posix()
            found[name] = base_state(folder, name)
    for path in task.tests.files:
        found.setdefault(path, base_state(tree, path))
    return found


def _needles(task: Task, tree: Path) -> tuple[str, ...]:
    """The longest line of each secret: as good as all of it, and quick to search for.

    One that the base tree has anyway is taken only where it has all of the secret.
    """
    known = frozenset().union(*(lines for _, lines in lines_of(tree)))
    chosen = []
    for _, lines in secret_lines(task, tree):
        plain = [line for line in lines if line.isascii() and b"'" not in line and b"\\" not in line]
        if plain := [line for line in plain if line not in known] or plain:
            chosen.append(max(sorted(plain), key=len).decode())
    return tuple(dict.fromkeys(chosen))


def _plain(folder: str) -> str:
    plain = posixpath.normpath(folder)
    return "" if plain == "." else plain
