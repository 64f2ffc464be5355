"""Tasks from two releases of a library: what was fixed between them, with the tests that came with it.

The base is the older source distribution. Its tests are replaced by those of the newer one; the reference is what the
newer one changes in the package itself. Versions, documentation and what builds it are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

from gagar_env.cache import Progress
from gagar_env.making.candidate import Candidate, Findings, refusal
from gagar_env.making.environment import repository_environment
from gagar_env.making.notes import fitting, release_notes, statement
from gagar_env.making.observe import LONGEST_S, RUNS, Observed, compare, need_isolation, observe
from gagar_env.making.pair import Pair, read_pair
from gagar_env.making.split import FileDiff
from gagar_env.making.subsets import Piece, Tried, piece_of_all, pieces_that_stand_alone
from gagar_env.package_index import Sdist
from gagar_env.patch import base_state, make_patch
from gagar_env.tasks.task import Environment, RepoSource
from gagar_env.verify import Verifier

MOST_PIECES = 10
"""Parts of one pair of releases that are tried."""
_AFTER = timedelta(days=30)
"""Requirements are those of this long after the newer release ..."""
_TODAY = timedelta(days=730)
"""... or today's, where it is younger than this: fewer environments have to be built."""


def propose(
    name: str,
    old: str,
    new: str,
    *,
    sandbox: str = "auto",
    runs: int = RUNS,
    longest_s: float = LONGEST_S,
    most_pieces: int = MOST_PIECES,
    environment: Environment | None = None,
    verifier: Verifier | None = None,
    on_progress: Progress | None = None,
) -> Iterator[Candidate]:
    """Candidates from two releases: parts of the change that make tests pass on their own, then what is left.

    Args:
        name: Of the project in the package index.
        old: Version of the base.
        new: The version that has the fix.
        sandbox: Kind of sandbox to try parts in.
        runs: Of the base, which all candidates share.
        longest_s: Seconds that one run of the tests may take.
        most_pieces: How many parts are tried.
        environment: What the tests run in; by default it is found from the files of both.
        verifier: Shared by many calls.
        on_progress: Told what takes time.

    Raises:
        SandboxUnavailableError: If that kind of sandbox isolates nothing, or does not work here.
        RefusedError: With the reason, if nothing can be made of them.
        TaskError: If a source distribution cannot be unpacked.
        EnvironmentBuildError: If the index cannot be asked.
    """
    need_isolation(sandbox, f"the tests of {name} are a stranger's code")
    pair = read_pair(name, old, new, on_progress=on_progress)
    environment = environment or repository_environment(
        pair.old_tree, name=name, version=old, before=_date(pair.new), tests_of=pair.new_tree, on_progress=on_progress
    )
    explored = _Explored(pair, environment, verifier or Verifier(sandbox=sandbox, warm=False), longest_s)
    whole = explored.start(runs)
    pieces = pieces_that_stand_alone(pair.code, whole, explored.attempt, most=most_pieces, words=_words(pair))
    for tried in pieces:
        yield explored.candidate(tried)


class _Explored:
    """The runs of one pair of releases."""

    def __init__(self, pair: Pair, environment: Environment, verifier: Verifier, longest_s: float) -> None:
        self._pair = pair
        self._verifier = verifier
        self._longest_s = longest_s
        self._base = Observed()
        self._unstable: set[str] = set()
        self._ids: Counter[str] = Counter()
        self._entries = release_notes(pair.new_tree, pair.new.version)
        old = pair.old
        library, test_patch = old.project, make_patch(pair.old_tree, pair.tests)
        self._blank = Candidate(
            id=f"{library}-{pair.new.version}",
            statement="(none yet)",
            repo=RepoSource(kind="archive", path=old.path, sha256=old.sha256),
            environment=environment,
            solution_patch=b"",
            test_patch=test_patch,
            test_files=pair.test_files,
            whole_files=True,
            tags=("from-releases", library),
            extra={
                "maker": "releases",
                "library": library,
                "old": old.version,
                "new": pair.new.version,
                "sources": [sdist.url for sdist in (old, pair.new)],
            },
        )

    def start(self, runs: int) -> Tried:
        """Run the base and the whole change, and keep to the test files that tell them apart."""
        piece = piece_of_all(self._pair.code)
        self._base = self._run(self._blank, reference=False)
        candidate = self._with(piece)
        seen = self._run(candidate, reference=True)
        found = compare(self._base.runs, seen.runs)
        if not found.fail_to_pass:
            pair = self._pair
            raise refusal("no_fail_to_pass", f"{pair.new.project} {pair.new.version}: no test goes from fail to pass")
        files = tuple(dict.fromkeys(test.partition("::")[0] for test in found.fail_to_pass))
        known = self._base if set(files) == set(self._blank.test_files) else None
        self._blank = replace(self._blank, test_files=files)
        self._base = self._run(self._blank, reference=False, runs=runs, before=known)
        # An id that holds an address in memory is another one in each run, and looks as if it was new.
        self._unstable = {test.partition("[")[0] for test in compare(self._base.runs, self._base.runs).flaky}
        return self._tried(piece, seen.within(files))

    def attempt(self, piece: Piece) -> Tried:
        """Run the tests with one piece."""
        candidate = self._with(piece)
        return self._tried(
            piece, observe(candidate, reference=True, runs=1, longest_s=self._longest_s, verifier=self._verifier)
        )

    def _tried(self, piece: Piece, seen: Observed) -> Tried:
        found = compare(self._base.runs, seen.runs)
        passes, broken = (
            frozenset(test for test in tests if test.partition("[")[0] not in self._unstable)
            for tests in (found.fail_to_pass, found.broken)
        )
        return Tried(piece=piece, seen=seen, passes=passes if not seen.reason and not broken else frozenset())

    def candidate(self, tried: Tried) -> Candidate:
        """What is proposed for a piece."""
        pair, piece = self._pair, tried.piece
        library, old, new = pair.old.project, pair.old.version, pair.new.version
        path, _, symbol = piece.name.partition("::")
        touched = sorted(piece.changes)
        names = {symbol.rpartition(".")[2], *symbol.split(".")} if symbol else _symbols(pair, touched)
        entries = fitting(self._entries, names | {Path(p).stem for p in touched} if symbol else names)
        module = Path(path).parent.name if path.endswith("/__init__.py") else Path(path).stem
        slug = re.sub(r"[^A-Za-z0-9_.]+", "-", "-".join(filter(None, (module, symbol)))).strip("-.")
        write = partial(_write, library=library, version=old, touched=touched, entries=entries)
        name = f"{library}-{new}" + (f"-{slug}" if slug else "")
        self._ids[name] += 1  # modules in different folders may have one name
        return replace(
            self._with(piece),
            id=name if self._ids[name] == 1 else f"{name}-{self._ids[name]}",
            title=f"{library} {old}: what {new} changes in {symbol or ', '.join(touched[:3])}",
            statement=write,
            extra={**self._blank.extra, "piece": piece.name},
            base_runs=self._base,
            reference_runs=tried.seen,
        )

    def _with(self, piece: Piece) -> Candidate:
        return replace(self._blank, solution_patch=make_patch(self._pair.old_tree, piece.changes))

    def _run(self, candidate: Candidate, *, reference: bool, runs: int = 1, before: Observed | None = None) -> Observed:
        seen = observe(
            candidate,
            reference=reference,
            runs=runs,
            longest_s=self._longest_s,
            verifier=self._verifier,
            before=before,
        )
        if seen.reason:
            side = "reference" if reference else "base"
            reason = seen.reason if seen.reason in ("error", "too_slow") else f"{side}_{seen.reason}"
            raise refusal(reason, f"{candidate.id}: {side}: {seen.detail}")
        return seen


def _write(findings: Findings, *, library: str, version: str, touched: list[str], entries: list[str]) -> str:
    return statement(findings, library=library, version=version, touched=touched, entries=entries)


def _words(pair: Pair) -> set[str]:
    """Names in the tests that are added or changed."""
    diffs = (FileDiff(path, base_state(pair.old_tree, path), pair.tests[path]) for path in pair.test_files)
    return {word for diff in diffs for word in diff.words(diff.hunks)}


def _symbols(pair: Pair, touched: list[str]) -> set[str]:
    names = {symbol for diff in pair.code if diff.path in touched for symbol in diff.parts()}
    return {part for name in names for part in name.split(".")}


def _date(sdist: Sdist) -> datetime | None:
    try:
        uploaded = datetime.fromisoformat(sdist.uploaded[:19]).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return uploaded + _AFTER if datetime.now(timezone.utc) - uploaded > _TODAY else None
