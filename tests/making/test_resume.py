"""What a set of made tasks goes on from: its journal, other settings, another process."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.progress import Progress

from gagar_env.cli.making import _show, print_summary
from gagar_env.errors import TaskError
from gagar_env.making import journal as journal_module
from gagar_env.making.candidate import Made
from gagar_env.making.environment import repository_environment
from gagar_env.making.journal import Entry, Journal, alone
from gagar_env.making.make import JOURNAL, Summary, make
from gagar_env.making.recipe import Settings, read_recipe
from gagar_env.making.split import FileDiff
from gagar_env.package_index import pip_settings

pytestmark = pytest.mark.slow

HELD = """\
import sys
from pathlib import Path
from gagar_env.making.journal import alone
with alone(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_do_not_make_one_set(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).touch()
    (tmp_path / ".half.tmp").mkdir()
    command = [sys.executable, "-c", HELD, str(tmp_path / JOURNAL)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(TaskError, match="another process makes tasks there"):
            make([], tmp_path, sandbox="process")
        assert (tmp_path / ".half.tmp").is_dir()  # it may be the other one's
    assert make([], tmp_path, sandbox="process").tasks == ()
    assert not (tmp_path / ".half.tmp").exists()


def test_a_line_that_could_not_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch) -> None:
    journal = Journal(tmp_path / "j")
    journal.add(Entry(source="a"))
    full = SimpleNamespace(fsync=lambda number: (_ for _ in ()).throw(OSError(28, "no room")))
    with monkeypatch.context() as patched:
        patched.setattr(journal_module, "os", full)
        with pytest.raises(OSError, match="no room"):
            journal.add(Entry(source="b"))
    journal.add(Entry(source="c"))
    assert [entry.source for entry in journal.entries] == ["a", "c"]
    assert Journal(tmp_path / "j").entries == journal.entries


def test_what_was_too_slow_is_tried_again_when_there_is_more_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    for source, reason in (("slow", "too_slow"), ("broken", "error"), ("bad", "no_fail_to_pass")):
        journal.add(Entry(source=source, result=Made(id=source, reason=reason), longest_s=10.0))
        journal.add(Entry(source=source, longest_s=10.0))
    journal.add(Entry(source="whole", reason="too_slow", longest_s=10.0))
    again = Journal(tmp_path / "j")
    assert again.entries == journal.entries
    assert set(again.finished(10.0)) == {"slow", "bad", "whole"}
    assert set(again.finished(20.0)) == {"bad"}


def test_alone_may_be_entered_again_in_turn(tmp_path: Path) -> None:
    for _ in range(2):
        with alone(tmp_path / "j"), pytest.raises(TaskError), alone(tmp_path / "j"):
            pass


def test_a_recipe_with_another_limit_goes_on(tmp_path: Path) -> None:
    ids = []
    for limit in (1, 5):
        (tmp_path / "r.toml").write_text(f'[[history]]\nrepo = "."\nlimit = {limit}\n')
        ids += [source.id for source in read_recipe(tmp_path / "r.toml", Settings())]
    assert len(set(ids)) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [('[[history]]\nrepo = "."\nlimit = 0\n', "limit: must be at least 1"), ("a = " + "[" * 3000, "not valid TOML")],
)
def test_a_recipe_that_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(TaskError, match=says):
        read_recipe(tmp_path / "r.toml", Settings())
    (tmp_path / "r.toml").write_text('[[history]]\nrepo = "~nobody-here/x"\n')
    assert len(read_recipe(tmp_path / "r.toml", Settings())) == 1


@pytest.mark.parametrize("said", ["test_route[/]", "x [/a] y", "[red]test[x]"])
def test_what_looks_like_markup_is_shown_as_it_is(capsys, said: str) -> None:
    progress = Progress(disable=True)
    _show(Made(id="a", reason="check", detail=said), progress, as_json=False, bar=progress.add_task(""))
    print_summary(Summary(explained={"s": said}, libraries={said: 1}), Path(f"out{said}"))
    printed = "".join(capsys.readouterr().out.split())
    assert printed.count("".join(said.split())) == 4


def test_leak_1_nothing_of_the_folder_where_it_is_started_is_run(tmp_path: Path, monkeypatch) -> None:
    """`python -m pip` imports from there, and it may well be the repository that tasks are made from."""
    ran = tmp_path / "ran"
    (tmp_path / "repo").mkdir()
    for name in ("pip", "json", "subprocess"):
        (tmp_path / "repo" / f"{name}.py").write_text(f"open({str(ran)!r}, 'w').close()\nraise SystemExit(3)\n")
    (tmp_path / "repo/code.py").write_text("x = 1\n")
    (tmp_path / "repo/setup.cfg").write_text("[metadata]\nname = ../../up\n")
    monkeypatch.chdir(tmp_path / "repo")
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    pip_settings.cache_clear()
    try:
        assert pip_settings()["no-index"] == "1"
        with pytest.raises(TaskError, match="pip finds no wheels"):
            repository_environment(tmp_path / "repo")
    finally:
        pip_settings.cache_clear()
    assert not ran.exists()


@pytest.mark.parametrize("depth", [400, 900, 2900])
def test_an_expression_that_is_nested_too_deep_ends_nothing(depth: int) -> None:
    pytest.importorskip("libcst")
    from gagar_env.changes import FileState
    from gagar_env.making.mutations import find_sites

    source = ("def f(a):\n    return " + " + ".join(["a"] * depth) + "\n").encode()
    assert isinstance(find_sites("x.py", source), list)
    new = FileState(source + b"\n\ndef g():\n    return 1\n", "100644")
    assert FileDiff("x.py", FileState(source, "100644"), new).says_something
