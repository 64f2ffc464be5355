"""The search for leaks: code that a fix repeats is none; copies, notes, patch files and comments are."""

import subprocess
from pathlib import Path

import pytest

from gagar_env.leaks import leaked_secrets
from gagar_env.tasks.task import RepoSource, Task, Tests

FIRST = """\
def solve_one(system):
    if len(system.unknown_values) > len(system.all_equations):
        raise NotImplementedError("only finite solution sets are supported")
    return system.by_elimination_of_the_first()


def solve_many(systems_to_be_solved):
    every_known_solution = []
    return sorted(every_known_solution, key=repr)
"""
FIXED = FIRST.replace(
    "    every_known_solution = []\n",
    "    every_known_solution = []\n"
    "    if len(system.unknown_values) > len(system.all_equations):\n"
    '        raise NotImplementedError("only finite solution sets are supported")\n',
)
BESIDE = """\
def check_beside(system):
    if len(system.unknown_values) > len(system.all_equations):
        raise NotImplementedError("only finite solution sets are supported")
    return "nothing of what surrounds the fix"
"""


def diff(folder: Path, before: str, after: str, name: str = "solver.py") -> bytes:
    folder.mkdir()
    for side, text in (("a", before), ("b", after)):
        (folder / side).mkdir()
        (folder / side / name).write_text(text)
    command = ["git", "diff", "--no-index", "--no-prefix", "--src-prefix=", "--dst-prefix=", "a", "b"]
    return subprocess.run(command, cwd=folder, capture_output=True).stdout


def leaks(tmp_path: Path, files: dict[str, str], before: str, after: str = FIXED) -> list[str]:
    tree = tmp_path / "tree"
    for name, text in {"solver.py": before, **files}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    task = Task(
        id="solver-1",
        problem_statement="Infinite sets are not refused.",
        repo=RepoSource(kind="tree", path=tree),
        tests=Tests(files=("test_solver.py",), fail_to_pass=("test_solver.py::test_one",), folder=tmp_path / "none"),
        solution_patch=diff(tmp_path / "diff", before, after),
    )
    return leaked_secrets(task, tree)


WITHOUT = FIRST[FIRST.index("def solve_many") :]
"""The solver where the lines of the fix stand nowhere else."""
WITHOUT_FIXED = FIXED[FIXED.index("def solve_many") :]


def test_a_fix_that_repeats_lines_of_its_own_file_is_no_leak(tmp_path: Path) -> None:
    assert leaks(tmp_path, {}, FIRST) == []


def test_a_fix_that_repeats_lines_of_another_module_is_no_leak(tmp_path: Path) -> None:
    assert leaks(tmp_path, {"beside.py": BESIDE}, WITHOUT, WITHOUT_FIXED) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("build/lib/solver.py", WITHOUT_FIXED),
        ("NOTES.txt", BESIDE),
        ("later.py", "".join(f"# {line}\n" for line in BESIDE.splitlines())),
        ("fix.patch", "".join(f"+{line}\n" for line in BESIDE.splitlines())),
    ],
    ids=["a copy of the fixed file", "a note", "comments", "a patch file"],
)
def test_leak_3_a_fix_that_was_left_in_the_tree(tmp_path: Path, name: str, text: str) -> None:
    found = leaks(tmp_path, {name: text}, WITHOUT, WITHOUT_FIXED)
    assert found == [f"the base tree gives away the reference patch: it is in {name}"]


def test_leak_3_the_fix_in_comments_of_the_file_that_it_changes(tmp_path: Path) -> None:
    before = WITHOUT + "".join(f"# {line}\n" for line in BESIDE.splitlines())
    after = WITHOUT_FIXED + "".join(f"# {line}\n" for line in BESIDE.splitlines())
    assert leaks(tmp_path, {}, before, after) == ["the base tree gives away the reference patch: it is in solver.py"]


def test_leak_3_a_copy_of_a_file_that_the_fix_adds(tmp_path: Path) -> None:
    assert leaks(tmp_path, {"copy.py": BESIDE}, "", BESIDE) == [
        "the base tree gives away the reference patch: it is in copy.py"
    ]


LONGER = """\
def strip_quotes_of_the_header(header_of_the_file):
    cleaned_names_of_columns = []
    for single_name_of_column in header_of_the_file:
        without_the_left_quote = single_name_of_column.lstrip("'")
        without_both_the_quotes = without_the_left_quote.rstrip("'")
        cleaned_names_of_columns.append(without_both_the_quotes)
    return [name for name in cleaned_names_of_columns if name]


"""
CUT = "".join(LONGER.splitlines(keepends=True)[:4])
"""A part of it that a repository may well have: four lines of seven."""


@pytest.mark.parametrize("name", ["beside.py", "solver.py"])
@pytest.mark.parametrize(("text", "found"), [(LONGER, 1), (CUT, 0)], ids=["all of it", "half of it"])
def test_leak_3_a_longer_function_that_stands_there_whole(tmp_path: Path, name: str, text: str, found: int) -> None:
    before = WITHOUT + (text if name == "solver.py" else "")
    beside = {name: text} if name != "solver.py" else {}
    after = LONGER.replace("def ", "async def ", 1) + before if name == "solver.py" else LONGER + before
    assert len(leaks(tmp_path, beside, before, after)) == found
