"""The maker of bugs: takes a repository with tests that pass and breaks one place of its code, or two.

The base of such a task is the repository plus the bug, its reference the way back. The tests that find the bug are part
of the repository, where the agent may read and run them; what counts are the repository's own copies of them, as for
any task. Which tests run which lines is measured once, in a sandbox, so that only what is tested is broken and only
test files that can notice it are run.
"""

from __future__ import annotations

import hashlib
import random
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gagar_env.cache import Progress
from gagar_env.changes import FileState
from gagar_env.making.bugs import Bug, bugs, halves
from gagar_env.making.candidate import Candidate, Statement, refusal
from gagar_env.making.codebase import Codebase, open_codebase
from gagar_env.making.codefiles import code_files, test_files
from gagar_env.making.coverage import Coverage, trace
from gagar_env.making.mutations import PAIR, Site, check_kinds, find_sites
from gagar_env.making.observe import LONGEST_S, RUNS, Observed, compare, observe
from gagar_env.making.statement import BugStatement
from gagar_env.patch import base_state, make_patch
from gagar_env.tasks.task import Environment, Solution, Task, Tests
from gagar_env.verify import Verifier

MOST_TEST_FILES = 3
"""Test files of one task: those of whose tests most run the broken lines."""
_MOST_COMMON = 0.8
"""A line that a larger part of all tests runs breaks everything at once, which is no puzzle."""
_SLOWEST_FILE_S = 60.0
_SLOWEST_ALL_S = 300.0
"""Watched seconds; unwatched, tests are some times faster."""
_ENOUGH_S = 10.0
"""A second test file is added only where all together stay below."""
_MOST_FILES = 150
"""Files of code that are looked at; of more, the seed draws."""
_LEAST_BOUND_S = 30.0
"""Of the first run of a bug: many never end."""


def propose(
    repo: str | Path,
    *,
    limit: int = 0,
    seed: int = 0,
    kinds: Iterable[str] | None = None,
    sandbox: str = "auto",
    commit: str = "",
    environment: Environment | None = None,
    statement: Statement | None = None,
    verifier: Verifier | None = None,
    longest_s: float = LONGEST_S,
    on_progress: Progress | None = None,
) -> Iterator[Candidate]:
    """Propose bugs of a repository, one after the other, until no place is left.

    Args:
        repo: A folder, a git repository or a bundle, an archive, or `NAME==VERSION` of a package index.
        limit: How many tasks are wanted; a hint, nothing ends there.
        seed: The same seed gives the same bugs in the same order.
        kinds: Kinds of bugs, see `gagar_env.making.mutations.KINDS`; all by default.
        sandbox: Kind of sandbox in which its tests are watched.
        commit: Of a git repository; by default its HEAD.
        environment: What its tests run in; by default it is found from its files.
        statement: What writes the problem statements; by default a template.
        verifier: Shared with the check of the candidates.
        longest_s: Seconds that one run of the tests may take.
        on_progress: Told what takes time.

    Raises:
        RefusedError: `no_tests`, `no_code`, or what its environment lacks.
        MissingDependencyError: If libcst is not installed.
        UnknownNameError: If a kind is not known.
        TaskError: If there is no such repository.
        EnvironmentBuildError: If this machine cannot provide what it needs.
    """
    wanted = check_kinds(kinds)
    find_sites("probe.py", b"")  # what is missing is said before anything is downloaded
    codebase = open_codebase(repo, commit=commit, environment=environment, on_progress=on_progress)
    yield from Injection(
        codebase,
        sandbox=sandbox,
        statement=statement or BugStatement(),
        verifier=verifier or Verifier(sandbox=sandbox, warm=False),
        longest_s=longest_s,
        on_progress=on_progress,
    ).candidates(wanted, seed)


class Injection:
    """Bugs of one state of a repository. What all of them share is done once: coverage, and runs of the whole tests."""

    def __init__(
        self,
        codebase: Codebase,
        *,
        sandbox: str,
        statement: Statement,
        verifier: Verifier,
        longest_s: float = LONGEST_S,
        on_progress: Progress | None = None,
    ) -> None:
        self._codebase = codebase
        self._sandbox = sandbox
        self._statement = statement
        self._verifier = verifier
        self._longest_s = longest_s
        self._say = on_progress or (lambda line: None)
        self._lock = threading.Lock()
        self._whole: Observed | None = None
        self.coverage = Coverage()
        self._files: tuple[str, ...] = ()

    def candidates(self, kinds: Sequence[str], seed: int) -> Iterator[Candidate]:
        """All bugs of these kinds, in an order that the seed draws."""
        sites = self._sites(kinds, seed)
        if not sites:
            raise refusal("no_code", f"{self._codebase.name}: no test runs a line of its code that could be broken")
        for bug in bugs(sites, kinds, seed, self._tests_of):
            yield self._candidate(bug)

    def _sites(self, kinds: Sequence[str], seed: int) -> list[Site]:
        tree = self._codebase.tree
        codes, files = code_files(tree), test_files(tree)
        if not files:
            raise refusal("no_tests", f"{self._codebase.name}: it has no file of tests (test_*.py)")
        if not codes:
            raise refusal("no_code", f"{self._codebase.name}: it has no Python code beside its tests")
        probe = self._probe(files)
        self.coverage = trace(probe, codes=codes, files=files, sandbox=self._sandbox, on_progress=self._say)
        if self.coverage.codes():
            self._files = _affordable(self.coverage)
            codes = [path for path in codes if path in self.coverage.codes()]
        else:
            self._say(f"{self._codebase.name}: which lines its tests run is not known: {_last(self.coverage.output)}")
            self._files = tuple(files)
        if len(codes) > _MOST_FILES:
            codes = sorted(random.Random(f"files {seed}").sample(codes, _MOST_FILES))
        self._say(f"looking for places in {len(codes)} files of {self._codebase.name} ...")
        singles = [kind for kind in kinds if kind != PAIR] or None
        found = [site for path in codes for site in find_sites(path, (tree / path).read_bytes(), kinds=singles)]
        return [site for site in found if self._tests_of(site)]

    def _tests_of(self, site: Site) -> tuple[str, ...]:
        """The test files for a site, in the order of their paths; none where no test would notice."""
        if not self.coverage.codes():
            stem = site.path.rpartition("/")[2].removesuffix(".py")
            named = [path for path in self._files if stem in path.rpartition("/")[2]]
            return tuple(named[:MOST_TEST_FILES]) or self._files
        found = self.coverage.tests_of(site.path, site.statement_line, site.last_line)
        found = {path: count for path, count in found.items() if path in self._files}
        if sum(found.values()) > max(10, _MOST_COMMON * self.coverage.tests):
            return ()
        files = self.coverage.files
        best = sorted(found, key=lambda path: (-found[path] / (1 + files[path].seconds), path))
        taken = best[:1]
        for path in best[1:MOST_TEST_FILES]:
            if sum(files[p].seconds for p in (*taken, path)) <= _ENOUGH_S:
                taken.append(path)
        return tuple(sorted(taken))

    def _candidate(self, bug: Bug) -> Candidate:
        codebase, tree = self._codebase, self._codebase.tree
        states = {path: _state(tree, path, data) for path, data in bug.broken.items()}
        broken = make_patch(tree, states)
        with tempfile.TemporaryDirectory(prefix="gagar-bug-") as name:
            for path, data in bug.broken.items():
                target = Path(name, path)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                target.chmod(0o755 if states[path].mode == "100755" else 0o644)
            sound = {path: _state(tree, path, (tree / path).read_bytes()) for path in bug.broken}
            solution = make_patch(Path(name), sound)
            wrong, alone = [], []
            for which, path, text in halves(bug):
                half = sound[path] if text is None else _state(tree, path, text)
                patch = make_patch(Path(name), {path: half})
                wrong.append(Solution(name=f"wrong-{which}-half", kind="wrong", patch=patch))
                alone.append(make_patch(tree, {**states, path: half}))
        digest = hashlib.sha256(codebase.source.sha256.encode() + broken).hexdigest()[:10]
        candidate = Candidate(
            id=f"{codebase.name}-bug-{digest}",
            title=f"A bug in {codebase.name}",
            statement=self._statement,
            repo=codebase.source.model_copy(update={"patch": broken}),
            environment=codebase.environment,
            solution_patch=solution,
            test_files=bug.tests,
            tags=("made", "inject", codebase.name),
            solutions=tuple(wrong),
            extra=self._record(bug),
            reference_runs=lambda: self._known(bug.tests, candidate),
        )
        return replace(candidate, base_runs=self._first_run(candidate, broken, alone))

    def _record(self, bug: Bug) -> dict[str, Any]:
        sites = [
            {"kind": s.kind, "what": s.what, "path": s.path, "function": s.function, "line": s.first_line}
            for s in bug.sites
        ]
        return {
            "maker": "inject",
            "library": self._codebase.name,
            "origin": self._codebase.origin,
            "kind": bug.kind,
            "sites": sites,
        }

    def _first_run(self, candidate: Candidate, broken: bytes, alone: Sequence[bytes]) -> Callable[[], Observed]:
        """The first run of a bug, on the tree that all share: a bug that no test finds needs no tree of its own.

        Of a pair, each half is run `alone` before.
        """
        watched = sum(self.coverage.files[path].seconds for path in candidate.test_files if path in self.coverage.files)
        bound = min(self._longest_s, _LEAST_BOUND_S + 3.0 * watched) if self.coverage.codes() else self._longest_s

        def once(patch: bytes) -> Observed:
            shared = replace(candidate, repo=self._codebase.source, solution_patch=patch)
            return observe(shared, reference=True, runs=1, longest_s=bound, verifier=self._verifier)

        def run() -> Observed:
            for half in alone:
                seen, sound = once(half), self._known(candidate.test_files, candidate)
                if not seen.reason and not compare(seen.runs, sound.runs).fail_to_pass:
                    raise refusal("half_survives", "no test finds one of the two bugs where the other is mended")
            return once(broken)

        return run

    def _known(self, files: tuple[str, ...], candidate: Candidate) -> Observed:
        """Runs of the sound tree: all of its tests at once, for all candidates together; else this one's."""
        with self._lock:
            if self._whole is None:
                self._say(f"running the tests of {self._codebase.name} {RUNS} times as they are ...")
                whole = replace(candidate, repo=self._codebase.source, test_files=self._files, solution_patch=b"")
                self._whole = observe(
                    whole, reference=False, runs=RUNS, longest_s=self._longest_s, verifier=self._verifier
                )
                if self._whole.reason:
                    self._say(f"{self._codebase.name}: not all at once: {self._whole.detail}")
        if self._whole.reason:
            return observe(candidate, reference=True, runs=1, longest_s=self._longest_s, verifier=self._verifier)
        return replace(self._whole.within(files), seconds=0.0)

    def _probe(self, files: Sequence[str]) -> Task:
        return Task(
            id=f"{self._codebase.name}-sound",
            problem_statement="-",
            repo=self._codebase.source,
            environment=self._codebase.environment,
            tests=Tests(files=tuple(files)),
        )


def _state(tree: Path, path: str, data: bytes) -> FileState:
    was = base_state(tree, path)
    return FileState(data, was.mode if was is not None else "100644")


def _affordable(coverage: Coverage) -> tuple[str, ...]:
    """Test files that are not too slow, the fastest first until there are enough, in the order of their paths."""
    taken: list[str] = []
    total = 0.0
    for path, file in sorted(coverage.files.items(), key=lambda pair: (pair[1].seconds, pair[0])):
        total += file.seconds
        if not taken or (file.seconds <= _SLOWEST_FILE_S and total <= _SLOWEST_ALL_S):
            taken.append(path)
    return tuple(sorted(taken))


def _last(output: str) -> str:
    lines = output.strip().splitlines()
    return lines[-1] if lines else "pytest said nothing"
