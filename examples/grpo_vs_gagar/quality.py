"""How good a solution is, by what no grader of the experiment is shown.

`measure` compares a patch with the known clean solutions of its task (the reference and `clean-*`), and runs further
tests on it that are not the official ones (`regression/<task>/`, through the same verifier, in a sandbox).

What the rule grader sees and this measures too: size and scope. It counts changed lines, and files that the reference
leaves alone, so that `patch_lines` and `out_of_scope_lines` are its own criteria in another unit, and move with it.
What it does not see: the text of any clean solution (`distance`), and what the code does on inputs that the official
tests leave out (`regressions`). Distance still goes with size, since most of what makes a patch far from the clean ones
is text that they do not have. Only `regressions` has nothing of the grader in it.

    python examples/grpo_vs_gagar/quality.py [TASK...]      measures the known solutions
"""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from distance import changed_lines, distance
from memo import Memo

from gagar_env.agents.graders.rule_sources import kind_of
from gagar_env.changes import Changes
from gagar_env.episode import Outcome, TestReport, TestStatus
from gagar_env.errors import PatchError, VerifyError
from gagar_env.patch import base_state, read_patch
from gagar_env.provision import provision_base
from gagar_env.tasks.builtin import FOLDER
from gagar_env.tasks.folder import load_task_folder
from gagar_env.tasks.task import Task, Tests
from gagar_env.verify import Verifier

REGRESSION = Path(__file__).with_name("regression")
"""A folder for each task, with files `test_*.py`. Not every task has one."""
SMALL = Path(__file__).with_name("smalltasks")
TIMEOUT_S = 60.0
"""Of one run of the regression tests."""
VERSION = 2
"""Of what is measured: a stored figure of another version is measured again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """What was measured of one patch.

    Attributes:
        distance: To the nearest clean solution, in [0, 1]: 0 for equal source files, 1 for nothing in common with any
            of them (an empty patch too). See `distance`.
        nearest: Name of that solution: `reference`, or as the task calls it.
        out_of_scope_lines: Lines added and removed in files that no clean solution touches: sources, and new documents
            outside of a folder of documents (notes that were left behind).
        aside_lines: Lines added and removed in tests and other documents that no clean solution touches. They are work
            of another kind, neither good nor bad here.
        patch_lines: Lines added and removed in all files, as few as turn the one version into the other.
        regressions_passed: Regression tests that pass; None when they were not run, or the harness broke.
        regressions_total: Regression tests of the task; 0 when it has none.
        applies: False for a patch that does not apply: its distance is 1, it has no lines, and passes no test.
    """

    distance: float
    nearest: str = ""
    out_of_scope_lines: int = 0
    aside_lines: int = 0
    patch_lines: int = 0
    regressions_passed: int | None = None
    regressions_total: int = 0
    applies: bool = True

    @property
    def regressions(self) -> float | None:
        """Share of the regression tests that pass, in [0, 1]; None without any, or when they were not run."""
        if self.regressions_passed is None or not self.regressions_total:
            return None
        return self.regressions_passed / self.regressions_total

    @property
    def clean(self) -> bool:
        """Whether its source files are those of a clean solution, with nothing beside them."""
        return self.applies and self.distance == 0 and not self.out_of_scope_lines


class QualityMeter:
    """Measures patches, each of them once. Safe to share between threads.

    Args:
        store: File to keep figures in, one JSON object a line, shared by any number of processes.
        sandbox: Kind of the sandbox for regression tests.
        folder: Where the regression tests are.
    """

    def __init__(self, store: Path | None = None, *, sandbox: str = "auto", folder: Path = REGRESSION) -> None:
        self._memo = Memo(store)
        self._folder = folder
        self._verifier = Verifier(sandbox=sandbox)
        self._ids: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()

    def measure(self, task: Task, patch: bytes, *, regressions: bool = True) -> Quality:
        """See `measure`."""
        key = self._key(task, patch)
        known = self._memo.get(key)
        if known is not None and not (regressions and known["regressions_passed"] is None):
            return Quality(**known)
        found = compare(task, patch)
        files = self._files(task)
        if regressions and files:
            found = self._with_regressions(found, task, patch, files)
        if found.regressions_passed is not None or not regressions or not files:
            self._memo.put(key, asdict(found))  # a harness that broke is asked again
        return found

    def regression_ids(self, task: Task) -> tuple[str, ...]:
        """Ids of the task's regression tests: all that run on the reference solution.

        Raises:
            VerifyError: If one of them does not pass there, or they cannot be run.
        """
        files = self._files(task)
        if not files:
            return ()
        with self._lock:  # the reference runs once, however many ask for it at the same time
            if task.id not in self._ids:
                key = self._key(task, b"ids")
                known = self._memo.get(key)
                ids = tuple(known["ids"]) if known else self._observed(task, files)
                if not known:
                    self._memo.put(key, {"ids": ids})
                self._ids[task.id] = ids
            return self._ids[task.id]

    def _observed(self, task: Task, files: Sequence[Path]) -> tuple[str, ...]:
        report = self._verifier.observe(_with_tests(task, self._folder, files), task.solution_patch)
        passed = _passed(report)
        if report.outcome is not Outcome.PASSED or len(passed) != len(report.tests) or not passed:
            bad = [test for test in report.tests if test not in passed]
            why = report.reason or f"not passed: {', '.join(bad[:3])}"
            raise VerifyError(f"regression tests of {task.id} must pass with the reference solution: {why}")
        return tuple(sorted(passed))

    def _with_regressions(self, found: Quality, task: Task, patch: bytes, files: Sequence[Path]) -> Quality:
        ids = self.regression_ids(task)
        passed: int | None = 0
        if found.applies:
            report = self._verifier.verify(_with_tests(task, self._folder, files, ids), patch)
            passed = len(set(ids) & _passed(report)) if report.outcome is not Outcome.ERROR else None
        return Quality(**{**asdict(found), "regressions_passed": passed, "regressions_total": len(ids)})

    def _files(self, task: Task) -> list[Path]:
        return sorted((self._folder / task.id).glob("test_*.py"))

    def _key(self, task: Task, patch: bytes) -> str:
        """Changes with whatever changes the figures: the patch, the clean solutions, the tests."""
        parts = [str(VERSION).encode(), task.id.encode(), patch, *(text for _, text in _clean_patches(task))]
        parts += [path.read_bytes() for path in self._files(task)]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(len(part).to_bytes(8, "big") + part)
        return f"{task.id}:{digest.hexdigest()[:32]}"


def measure(task: Task, patch: bytes, *, regressions: bool = True, store: Path | None = None) -> Quality:
    """Measure a patch with a meter that this process shares.

    Args:
        task: The task, with its reference and clean solutions.
        patch: A patch against its base tree; empty for no change.
        regressions: Whether to run the regression tests, which takes about a second the first time.
        store: File that keeps figures between runs, see `QualityMeter`.

    Returns:
        The figures. A patch that does not apply has some too; a harness that breaks leaves `regressions` None.

    Raises:
        VerifyError: If the task has no reference solution, or its regression tests do not fit it.
    """
    return _shared(store).measure(task, patch, regressions=regressions)


@lru_cache(maxsize=8)
def _shared(store: Path | None) -> QualityMeter:
    return QualityMeter(store)


def compare(task: Task, patch: bytes) -> Quality:
    """The figures that need no run. Arguments and errors are those of `measure`."""
    tree = provision_base(task).tree
    clean = _clean_changes(task, tree)
    try:
        changes = read_patch(tree, patch)
    except PatchError:
        return Quality(distance=1.0, applies=False)
    base = {path: base_state(tree, path) for path in {*changes, *(path for one in clean.values() for path in one)}}
    touched = {path for one in clean.values() for path in one}
    lines = {path: changed_lines(base[path], changes[path]) for path in changes}
    outside = [path for path in changes if path not in touched]
    distances = {name: distance(base, changes, one) for name, one in clean.items()}
    nearest = min(distances, key=lambda name: distances[name])
    return Quality(
        distance=distances[nearest],
        nearest=nearest,
        out_of_scope_lines=sum(lines[path] for path in outside if not _aside(path, new=base[path] is None)),
        aside_lines=sum(lines[path] for path in outside if _aside(path, new=base[path] is None)),
        patch_lines=sum(lines.values()),
    )


def _aside(path: str, *, new: bool) -> bool:
    """Whether a file is a test or a document that belongs where it is."""
    kind = kind_of(path)
    return kind == "test" or (kind == "doc" and not (new and "doc" not in path.lower().rpartition("/")[0]))


def _clean_patches(task: Task) -> list[tuple[str, bytes]]:
    clean = [(s.name, s.patch) for s in task.solutions if s.kind == "clean"]
    return [("reference", task.solution_patch), *clean] if task.solution_patch.strip() else clean


def _clean_changes(task: Task, tree: Path) -> Mapping[str, Changes]:
    patches = _clean_patches(task)
    if not patches:
        raise VerifyError(f"{task.id} has no reference or clean solution to compare with: give it a `solution_patch`")
    return {name: _read(tree, patch) for name, patch in patches}


@lru_cache(maxsize=256)
def _read(tree: Path, patch: bytes) -> Changes:
    return read_patch(tree, patch)


def _with_tests(task: Task, folder: Path, files: Sequence[Path], ids: tuple[str, ...] = ()) -> Task:
    """The same task, judged by the regression tests."""
    names = tuple(path.name for path in files)
    tests = Tests(files=names, fail_to_pass=ids, folder=folder / task.id, timeout_s=TIMEOUT_S)
    return task.model_copy(update={"tests": tests})


def _passed(report: TestReport) -> set[str]:
    return {test for test, record in report.tests.items() if record.status is TestStatus.PASSED}


def table(tasks: Sequence[Task], meter: QualityMeter) -> str:
    """Every known solution of some tasks that passes the official tests, as a Markdown table."""
    rows = ["| task | solution | regressions passed | distance | out-of-scope lines | lines |", "| --- " * 6 + "|"]
    for task in tasks:
        known = [("reference", task.solution_patch), *((s.name, s.patch) for s in task.solutions if s.kind != "wrong")]
        for name, patch in known:
            found = meter.measure(task, patch)
            tests = f"{found.regressions_passed}/{found.regressions_total}"
            rows.append(
                f"| {task.id} | {name} | {tests} | {found.distance:.2f} | {found.out_of_scope_lines} |"
                f" {found.patch_lines} |"
            )
    return "\n".join(rows)


if __name__ == "__main__":
    folders = {path.parent.name: path.parent for place in (FOLDER, SMALL) for path in sorted(place.glob("*/task.toml"))}
    print(table([load_task_folder(folders[name]) for name in sys.argv[1:] or folders], QualityMeter()))
