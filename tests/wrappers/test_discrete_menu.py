"""Menus: where their entries come from, that they fit together, and that they give nothing away."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gagar_env.errors import TaskError
from gagar_env.menu import EntryKind, MenuRules, build_menu
from gagar_env.menu.mutants import mutants
from gagar_env.menu.pieces import solution_pieces, split_patch
from gagar_env.menu.sources import ranked_sources
from gagar_env.patch import make_patch, read_patch
from gagar_env.provision import provision_base
from gagar_env.tasks.registry import load_task, task_ids

LEDGER = "ledger-rounding"


def menu_of(task, **rules):
    return build_menu(task, provision_base(task).tree, MenuRules(**rules))


def apply(tree, patches):
    """Runs `git apply` for each in turn, as the agent does."""
    for patch in patches:
        subprocess.run(["git", "apply", "--whitespace=nowarn"], cwd=tree, input=patch, check=True)


@pytest.mark.parametrize(
    "name", [LEDGER, *(pytest.param(i, marks=pytest.mark.slow) for i in task_ids() if i != LEDGER)]
)
@pytest.mark.parametrize("size", ["hunk", "file"])
def test_pieces_put_together_are_the_solution(name, size, tmp_path):
    task = load_task(name)
    base = provision_base(task).tree
    patches = [task.solution_patch, *(s.patch for s in task.solutions)][: 1 if name == LEDGER else 4]
    for number, (patch, pieces) in enumerate(zip(patches, solution_pieces(task, size), strict=False)):
        tree = tmp_path / str(number)
        shutil.copytree(base, tree, ignore=shutil.ignore_patterns(".git"))
        apply(tree, [piece.patch for piece in reversed(pieces)])  # in any order
        for path, state in read_patch(base, patch).items():
            assert (tree / path).read_bytes() == state.data if state else not (tree / path).exists()
        files = {piece.path for piece in pieces}
        assert len(pieces) == len(files) if size == "file" else len(pieces) >= len(files)


def test_odd_patches_stay_whole():
    patch = (
        b"diff --git a/new.py b/new.py\nnew file mode 100644\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x = 1\n"
        b"diff --git a/gone.py b/gone.py\ndeleted file mode 100644\n--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        b"diff --git a/a.py b/b.py\nsimilarity index 100%\nrename from a.py\nrename to b.py\n"
        b"diff --git a/c.bin b/c.bin\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n"
    )
    pieces = list(split_patch(patch, "hunk"))
    assert [piece.path for piece in pieces] == ["new.py", "gone.py", "b.py", "c.bin"]
    assert b"".join(piece.patch for piece in pieces) == patch
    assert [(piece.added, piece.removed, piece.creates) for piece in pieces] == [
        (1, 0, True),
        (0, 1, False),
        (0, 0, True),
        (0, 0, False),
    ]
    with pytest.raises(ValueError, match="'hunk' or 'file'"):
        list(split_patch(patch, "line"))


def test_a_menu_does_not_say_where_edits_come_from():
    task = load_task(LEDGER)
    menu = menu_of(task)
    others = task.solutions[1:]
    swapped = task.model_copy(
        update={
            "solution_patch": task.solutions[0].patch,
            "solutions": (
                *(s.model_copy(update={"kind": "wrong", "name": "x"}) for s in reversed(others)),
                task.solutions[0].model_copy(update={"patch": task.solution_patch}),
            ),
        }
    )
    assert menu_of(swapped) == menu
    shown = " ".join(entry.label for entry in menu.entries)
    assert not any(word in shown for word in ("clean-", "sloppy", "wrong", "reference", *(s.name for s in others)))


def test_blocks_begin_at_the_same_number_in_every_menu():
    tasks = [load_task(name) for name in (LEDGER, "cron-month-end")]
    menus = [menu_of(task, edits=edits, seed=4) for task in tasks for edits in ("solutions", "mutations")]
    assert {len(menu) for menu in menus} == {64}
    for menu in menus:
        kinds = [entry.kind for entry in menu.entries]
        assert kinds[:2] == [EntryKind.SUBMIT, EntryKind.TEST]
        assert set(kinds[2:7]) <= {EntryKind.VIEW, EntryKind.PAD}
        assert set(kinds[7:12]) <= {EntryKind.CLEAN, EntryKind.PAD}
        assert set(kinds[12:]) <= {EntryKind.EDIT, EntryKind.PAD}
        assert menu.real.sum() == sum(kind is not EntryKind.PAD for kind in kinds)
    assert menus[0] == menu_of(tasks[0], edits="solutions", seed=5)  # all fit: the seed changes nothing
    small = [menu_of(tasks[0], size=24, seed=seed) for seed in (0, 0, 1)]
    assert small[0] == small[1] != small[2]
    assert small[0].left_out == len(menus[0].of_kind(EntryKind.EDIT)) - 12


def test_the_reference_always_fits_whole():
    task = load_task(LEDGER)
    wanted = {piece.patch for piece in solution_pieces(task, "hunk")[0]}
    for seed in range(5):
        menu = menu_of(task, size=24, seed=seed)
        commands = " ".join(menu.entries[number].command for number in menu.of_kind(EntryKind.EDIT))
        assert all(patch.decode() in commands for patch in wanted)


def test_edits_without_solutions(tiny_task):
    menu = menu_of(tiny_task, size=32)
    edits = [menu.entries[number] for number in menu.of_kind(EntryKind.EDIT)]
    assert any("+    return a + b" in edit.command for edit in edits)
    assert {edit.path for edit in edits} == {"calc.py"}
    with pytest.raises(TaskError, match="edits='mutations'"):
        menu_of(tiny_task, edits="solutions")


@pytest.mark.parametrize(
    "text",
    [
        "x = 1 + 2",
        "x = 1\r\nif x >= 2 and not x:\r\n    y = min(x, 3)\r\n",
        "a = b*c\n\n\n\n\n\n\nd = e - 1\nf = any(g)\n",
    ],
)
def test_mutants_apply_and_change_one_line(text, tmp_path):
    (tmp_path / "m.py").write_bytes(text.encode())
    found = [piece for _, piece in mutants("m.py", text)]
    assert found
    for piece in found:
        (state,) = read_patch(tmp_path, piece.patch).values()
        old, new = text.split("\n"), state.data.decode().split("\n")
        assert len(old) == len(new)
        assert sum(a != b for a, b in zip(old, new, strict=True)) == 1
        assert make_patch(tmp_path, {"m.py": state})


@given(st.text(alphabet="abx01 ()+-*/<>=not'\"#\n\r\t:,.", max_size=80))
def test_mutants_of_any_text(text):
    for _, piece in mutants("m.py", text):
        assert (piece.added, piece.removed) == (1, 1)
        piece.patch.decode()


def test_what_the_statement_speaks_of_comes_first(tmp_path):
    for path in ("pkg/zeta.py", "pkg/alpha.py", "tests/test_zeta.py", "pkg/mid.py", "NOTES.md", "odd name.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("def widen(x):\n    return x\n" if "mid" in path else "x = 1\n")
    (tmp_path / "image.bin").write_bytes(b"\0\xff")
    (tmp_path / "link.py").symlink_to("/etc/hostname")
    found = ranked_sources(tmp_path, "pkg/zeta.py breaks when `widen` is called")
    assert [source.path for source in found] == [
        "pkg/zeta.py",
        "pkg/mid.py",
        "pkg/alpha.py",
        "tests/test_zeta.py",
        "NOTES.md",
    ]


@pytest.mark.parametrize("wrong", [{"size": 12}, {"views": -1}, {"edits": "all"}, {"pieces": "line"}, {"files": 0}])
def test_bad_rules(wrong):
    with pytest.raises(ValueError, match=r"must be|needs a size"):
        MenuRules(**wrong)
