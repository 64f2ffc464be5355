import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gagar_env.check import check_task
from gagar_env.checked import checked_in
from gagar_env.errors import TaskError
from gagar_env.making import refusal
from gagar_env.making.candidate import Made
from gagar_env.making.feed import Feed, Source
from gagar_env.making.journal import Entry, Journal
from gagar_env.making.make import make
from gagar_env.making.portable import Sources
from gagar_env.tasks.file import load_task_file
from gagar_env.tasks.task import RepoSource

KILLED = """\
import sys
from pathlib import Path

from gagar_env.changes import FileState
from gagar_env.making import Candidate
from gagar_env.making.feed import Source
from gagar_env.making.make import make
from gagar_env.patch import make_patch
from gagar_env.tasks.task import Environment, RepoSource

root, python, sandbox = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
tree = root / "repo"
fix = make_patch(tree, {"calc.py": FileState((tree / "calc.py").read_bytes().replace(b"a - b", b"a + b"), "100644")})
tests = make_patch(tree, {"test_calc.py": FileState((root / "test_calc.py").read_bytes(), "100644")})


def propose():
    for number in range(4):
        yield Candidate(
            id=f"calc-{number}", statement="add subtracts", repo=RepoSource(kind="tree", path=tree),
            environment=Environment(python=python, pythonpath=(".",)), solution_patch=fix, test_patch=tests,
            test_files=("test_calc.py",), extra={"library": "calc"},
        )


summary = make([Source(id="calc", propose=propose)], root / "out", jobs=2, runs=1, sandbox=sandbox)
print(len(summary.tasks), len(summary.new))
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_and_the_set_works_elsewhere(tmp_path: Path, lean_python: str, best_kind: str) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/calc.py").write_text("def add(a, b):\n    return a - b\n")
    (tmp_path / "test_calc.py").write_text("from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n")
    script = tmp_path / "run.py"
    script.write_text(KILLED)
    out = tmp_path / "out"
    command = [sys.executable, str(script), str(tmp_path), lean_python, best_kind]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    while not (out / "journal.jsonl").is_file() or not (out / "journal.jsonl").read_bytes().count(b"\n"):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    first = (out / "journal.jsonl").read_bytes()
    done = {json.loads(line)["result"]["id"] for line in first.splitlines()}
    with (out / "journal.jsonl").open("ab") as file:
        file.write(b'{"source": "calc", "ma')  # as if it had been killed while it wrote
    (out / ".calc-9.x.tmp").mkdir()
    second = subprocess.run(command, capture_output=True, text=True, check=True)
    assert second.stdout.split() == ["4", str(4 - len(done))]
    assert (out / "journal.jsonl").read_bytes().startswith(first)
    ids = [json.loads(line).get("result", {}).get("id") for line in (out / "journal.jsonl").read_bytes().splitlines()]
    assert sorted(filter(None, ids)) == [f"calc-{n}" for n in range(4)]
    assert sorted(p.name for p in out.iterdir()) == [*(f"calc-{n}" for n in range(4)), "journal.jsonl", "sources"]
    assert len(list((out / "sources").iterdir())) == 1  # four tasks share one tree

    moved = tmp_path / "elsewhere"
    out.rename(moved)
    (tmp_path / "repo").rename(tmp_path / "gone")
    task = load_task_file(moved)[0]
    assert task.repo.path.resolve().is_relative_to(moved.resolve())
    assert best_kind in checked_in(task)
    assert check_task(task, sandbox=best_kind).problems == ()


def sources_of(*candidates, end: Exception | None = None) -> list[Source]:
    def propose():
        yield from candidates
        if end is not None:
            raise end

    return [Source(id="one", propose=propose)]


@pytest.mark.slow
def test_a_file_a_limit_and_what_is_refused(candidate_of, tmp_path: Path, best_kind: str) -> None:
    good, bad = candidate_of("good", extra={"library": "calc"}), candidate_of("bad", fixed={"calc.py": "x = 1\n"})
    results = []
    out = tmp_path / "tasks.jsonl"
    summary = make(
        [*sources_of(bad, good, good), Source(id="none", propose=lambda: refuse())],
        out, runs=1, sandbox=best_kind, on_result=results.append,
    )  # fmt: skip
    assert [(made.id, made.reason) for made in results] == [("bad", "reference_not_collected"), ("good", "")]
    assert (summary.tasks, summary.new, summary.refused) == (("good",), ("good",), {"reference_not_collected": 1})
    assert (summary.sources, summary.explained) == ({"no_tests": 1}, {"none": "there are none"})
    assert (summary.libraries, summary.tried) == ({"calc": 1}, 2)
    assert [task.id for task in load_task_file(out)] == ["good"]
    assert load_task_file(out)[0].repo.path.is_relative_to(tmp_path)

    later = make(sources_of(candidate_of("third")), out, runs=1, sandbox=best_kind, limit=1)
    assert (later.tasks, later.new) == (("good",), ())  # the limit is that of the set
    more = make(sources_of(candidate_of("other")), out, runs=1, sandbox=best_kind)
    assert (more.tasks, more.new) == (("good",), ())  # this source had no more


def refuse():
    raise refusal("no_tests", "there are none")


def test_what_is_no_place_for_a_set(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TaskError, match=r"is not empty and has no journal.jsonl"):
        make([], tmp_path, sandbox="process")
    with pytest.raises(TaskError, match="is a file"):
        make([], tmp_path / "notes.txt", sandbox="process")
    out = tmp_path / "out"
    assert make([], out, sandbox="process").tasks == ()
    with pytest.raises(TaskError, match="holds a set already"):
        make([], out, sandbox="process", resume=False)
    (out / "journal.jsonl").write_text('{"other": 1}\n')
    with pytest.raises(TaskError, match="line 1 is none of ours"):
        make([], out, sandbox="process")
    with pytest.raises(ValueError, match="at least 1"):
        make([], out, jobs=0)


def test_a_source_that_breaks_ends_alone_and_is_tried_again(candidate_of, tmp_path: Path) -> None:
    ends: list[tuple[str, str, str]] = []
    one, two = candidate_of("one"), candidate_of("two")

    def broken():
        yield one
        raise RuntimeError("a maker's\nfault")

    feed = Feed([Source(id="a", propose=broken), Source(id="b", propose=lambda: [two])], lambda *end: ends.append(end))
    assert [(source, candidate.id) for source, candidate in feed] == [("a", "one"), ("b", "two")]
    assert ends == [("a", "error", "RuntimeError: a maker's fault"), ("b", "", "")]
    journal = Journal(tmp_path / "j")
    for source, reason, detail in ends:
        journal.add(Entry(source=source, reason=reason, detail=detail))
    assert set(Journal(tmp_path / "j").finished()) == {"b"}
    journal.add(Entry(source="b", made=False, result=Made(id="x", reason="error", flaky=("t",))))
    again = Journal(tmp_path / "j")
    assert again.finished() == {}  # a candidate of it is to be tried again
    assert again.entries == journal.entries


def test_the_same_tree_gives_the_same_archive(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        tree = tmp_path / name
        (tree / "sub").mkdir(parents=True)
        (tree / "run.sh").write_text("x")
        (tree / "run.sh").chmod(0o700)
        (tree / "sub/link").symlink_to("../run.sh")
        repo = RepoSource(kind="tree", path=tree, patch=b"bug")
        made.append(Sources(tmp_path / "sources").localised(repo, name="Some Lib"))
    assert made[0] == made[1]
    assert (made[0].kind, made[0].patch) == ("archive", b"bug")
    assert made[0].path.name.endswith("-some-lib.tar.gz")
    there = RepoSource(kind="archive", url="https://x.invalid/a.tar.gz", sha256="0" * 64)
    assert Sources(tmp_path / "sources").localised(there, name="x") == there
