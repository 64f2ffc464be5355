"""Runs of a candidate's tests on one tree, as evidence of what they do there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gagar_env.episode import Outcome, TestStatus
from gagar_env.errors import SandboxUnavailableError
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.task import Task, Tests
from gagar_env.verify import Verifier

if TYPE_CHECKING:
    from gagar_env.making.candidate import Candidate

RUNS = 3
LONGEST_S = 120.0
"""Seconds that one run of the tests may take."""
_NOT_COLLECTED = "the tests could not be collected"
PASSED = (TestStatus.PASSED, TestStatus.XPASSED)
FAILED = (TestStatus.FAILED, TestStatus.ERROR)

Statuses = Mapping[str, TestStatus]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Runs of the same tests on the same tree.

    Attributes:
        runs: Status by id, for each run.
        messages: Why tests failed in the first run; under "", why none could be collected.
        output: The end of what pytest printed in the first run.
        seconds: The slowest run.
        reason: Why nothing can be said, in one word: `too_slow`, `not_collected`, `error`; else empty.
        detail: The same in one line.
    """

    runs: tuple[Statuses, ...] = ()
    messages: Mapping[str, str] = field(default_factory=dict)
    output: str = ""
    seconds: float = 0.0
    reason: str = ""
    detail: str = ""

    def within(self, files: Collection[str]) -> Observed:
        """The same runs as if only these files had been given to pytest."""
        tops = tuple(f"{path.rstrip('/')}/" for path in files)

        def is_in(test: str) -> bool:
            path = test.partition("::")[0]
            return path in files or path.startswith(tops)

        return replace(self, runs=tuple({t: s for t, s in run.items() if is_in(t)} for run in self.runs))


Known = Observed | Callable[[], Observed]
"""Runs that were done already, or what does them when the first candidate asks."""


def need_isolation(sandbox: str, why: str) -> None:
    """Refuse a kind of sandbox that does not keep code from this machine.

    Raises:
        SandboxUnavailableError: If it does not, or does not work here.
    """
    if choose_kind(sandbox) == "process":
        raise SandboxUnavailableError(
            f"{why}, and a 'process' sandbox isolates nothing: install bubblewrap, or use --sandbox bwrap or docker"
        )


def observe(
    candidate: Candidate,
    *,
    reference: bool,
    sandbox: str = "auto",
    runs: int = RUNS,
    longest_s: float = LONGEST_S,
    verifier: Verifier | None = None,
    before: Observed | None = None,
) -> Observed:
    """Run the tests of a candidate on one tree.

    Args:
        candidate: The candidate.
        reference: Whether its reference is applied.
        sandbox: Kind of sandbox.
        runs: How often; a run that cannot be used ends it.
        longest_s: Bound of one run, in seconds.
        verifier: Shared by callers that have many candidates.
        before: Runs that were done already; they count.
    """
    verifier = verifier or Verifier(sandbox=sandbox, warm=False)
    task, patch = probe(candidate, longest_s), candidate.solution_patch if reference else b""
    seen = before or Observed()
    while len(seen.runs) < runs:
        report = verifier.observe(task, patch)
        seen = replace(seen, seconds=max(seen.seconds, report.seconds))
        if report.timed_out:
            return replace(seen, reason="too_slow", detail=f"the tests took over {longest_s:g} s")
        if report.outcome is Outcome.ERROR:
            return replace(seen, reason="error", detail=report.reason)
        if candidate.whole_files and not reference and report.reason.startswith(_NOT_COLLECTED):
            seen = replace(seen, runs=(*seen.runs, {}), messages={"": report.reason}, output=report.output_tail)
            continue
        if not report.passed:  # with nothing required, only a run that cannot be believed
            return replace(seen, reason="not_collected", detail=report.reason, output=report.output_tail)
        if not seen.runs:
            messages = {test: record.message for test, record in report.tests.items() if record.status in FAILED}
            seen = replace(seen, messages=messages, output=report.output_tail)
        seen = replace(seen, runs=(*seen.runs, {test: record.status for test, record in report.tests.items()}))
    return seen


def probe(candidate: Candidate, longest_s: float) -> Task:
    """The candidate as a task that demands nothing: every run that can be believed passes."""
    return Task(
        id=candidate.id,
        problem_statement="(not written yet)",
        repo=candidate.repo,
        environment=candidate.environment,
        solution_patch=candidate.solution_patch,
        tests=Tests(
            files=candidate.test_files,
            patch=candidate.test_patch,
            arguments=candidate.arguments,
            timeout_s=longest_s,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What two trees differ in.

    Attributes:
        fail_to_pass: Failed or missing in every run of the first, passed in every run of the second.
        pass_to_pass: Passed in every run of both.
        flaky: Runs of the same tree do not agree.
        broken: Passed in the first, and does not in the second.
    """

    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    flaky: tuple[str, ...]
    broken: tuple[str, ...]


def compare(base: tuple[Statuses, ...], fixed: tuple[Statuses, ...]) -> Compared:
    """Sort the ids of two trees. An id that the second tree does not have at all is broken only if its file ran not."""
    files = {test.partition("::")[0] for run in fixed for test in run}
    groups: dict[str, list[str]] = {"f2p": [], "p2p": [], "flaky": [], "broken": []}
    for test in dict.fromkeys(test for run in (*fixed, *base) for test in run):
        before, after = ({_kind(run.get(test)) for run in side} for side in (base, fixed))
        if len(before) > 1 or len(after) > 1:
            groups["flaky"].append(test)
        elif after == {"passed"} and before <= {"failed", "missing"}:
            groups["f2p"].append(test)
        elif after == before == {"passed"}:
            groups["p2p"].append(test)
        elif before == {"passed"} and (after == {"failed"} or test.partition("::")[0] not in files):
            groups["broken"].append(test)
    return Compared(
        fail_to_pass=tuple(groups["f2p"]),
        pass_to_pass=tuple(groups["p2p"]),
        flaky=tuple(groups["flaky"]),
        broken=tuple(groups["broken"]),
    )


def _kind(status: TestStatus | None) -> str:
    if status is None:
        return "missing"
    return "passed" if status in PASSED else "failed" if status in FAILED else status.value
