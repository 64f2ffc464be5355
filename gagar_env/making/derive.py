"""From a candidate to a task: the check that every maker ends in.

The tests run several times on the base tree and several times with the reference, through the verifier that trains:

- `fail_to_pass`: failed, or did not run, in every run of the base, and passed in every run with the reference;
- `pass_to_pass`: passed in every run of both;
- an id on which runs of the same tree do not agree is flaky: left out and counted;
- an id that fails or is skipped on both sides is left out.

Refused are: nothing that goes from fail to pass; a tree whose tests cannot be collected, do not end, or take too long;
a reference that breaks a test. The task that remains goes through `check_task` like any other.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from gagar_env.check import check_task
from gagar_env.errors import GagarError
from gagar_env.making.candidate import Candidate, Findings, Made, RefusedError
from gagar_env.making.observe import LONGEST_S, RUNS, Compared, Known, Observed, compare, observe, probe
from gagar_env.tasks.task import Task
from gagar_env.verify import Verifier

_ROOM = 10
"""Times the slowest run is what the task allows: training runs many at one time, and then each is slow."""
_LEAST_TIMEOUT_S = 60.0


def derive(
    candidate: Candidate,
    *,
    sandbox: str = "auto",
    runs: int = RUNS,
    longest_s: float = LONGEST_S,
    known: Known | None = None,
    verifier: Verifier | None = None,
) -> Made:
    """Find out what a candidate's tests show, and whether it is a task.

    Args:
        candidate: The candidate.
        sandbox: Kind of sandbox, as for `open_sandbox`.
        runs: Runs of each side, at least 1; fewer where the first ones refuse it.
        longest_s: Seconds that one run of the tests may take.
        known: Runs with the reference, in the place of `candidate.reference_runs`.
        verifier: Shared by callers that have many candidates.

    Returns:
        What was made, or why nothing was. Faults of the candidate and of this machine do not raise.

    Raises:
        ValueError: If `runs` is below 1.
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1, actually: {runs}")
    started = time.monotonic()
    if known is not None:
        candidate = replace(candidate, reference_runs=known)
    try:
        verifier = verifier or Verifier(sandbox=sandbox, warm=False)
        made = _Derivation(candidate, sandbox, runs, longest_s, verifier).made()
    except RefusedError as refused:
        made = Made(id=candidate.id, reason=refused.reason, detail=str(refused))
    except (GagarError, OSError, ValueError) as error:  # ValueError: a record that is no valid task
        made = Made(id=candidate.id, reason="error", detail=" ".join(str(error).split()))
    return replace(made, seconds=round(time.monotonic() - started, 2))


class _Derivation:
    """One candidate on its way."""

    def __init__(self, candidate: Candidate, sandbox: str, runs: int, longest_s: float, verifier: Verifier) -> None:
        self._candidate = candidate
        self._sandbox = sandbox
        self._runs = runs
        self._longest_s = longest_s
        self._verifier = verifier

    def made(self) -> Made:
        candidate = self._candidate
        base, fixed = self._both()
        slowest = max(base.seconds, fixed.seconds)
        for name, seen in (("base", base), ("reference", fixed)):
            if seen.reason:
                reason = seen.reason if seen.reason in ("error", "too_slow") else f"{name}_{seen.reason}"
                return Made(id=candidate.id, reason=reason, detail=f"{name}: {seen.detail}", test_seconds=slowest)
        found = compare(base.runs, fixed.runs)
        made = Made(
            id=candidate.id,
            flaky=found.flaky,
            fail_to_pass=len(found.fail_to_pass),
            pass_to_pass=len(found.pass_to_pass),
            tests=len({test for run in (*base.runs, *fixed.runs) for test in run}),
            test_seconds=slowest,
        )
        if found.broken:
            detail = f"the reference breaks {some(found.broken)}"
            return replace(made, reason="reference_breaks", detail=detail)
        if not found.fail_to_pass:
            return replace(made, reason="no_fail_to_pass", detail="no test goes from fail to pass")
        task = self._task(found, base, timeout_s=round(max(_LEAST_TIMEOUT_S, _ROOM * slowest)))
        check = check_task(task, sandbox=self._sandbox, solutions=bool(task.solutions))
        if not check.ok:
            return replace(made, reason="check", detail=check.problems[0])
        return replace(made, task=task)

    def _both(self) -> tuple[Observed, Observed]:
        """Runs of both sides. One of each first: most of those that are refused show it there."""
        base, fixed = _called(self._candidate.base_runs), Observed()
        base = base or self._observe(False, 1)
        if base.reason:
            return base, fixed
        fixed = _called(self._candidate.reference_runs) or self._observe(True, 1)
        if fixed.reason:
            return base, fixed
        if compare(base.runs, fixed.runs).fail_to_pass:  # what seems broken may be flaky
            base = self._observe(False, self._runs, base)
            fixed = self._observe(True, self._runs, fixed)
        return base, fixed

    def _observe(self, reference: bool, runs: int, before: Observed | None = None) -> Observed:
        return observe(
            self._candidate,
            reference=reference,
            runs=runs,
            longest_s=self._longest_s,
            verifier=self._verifier,
            before=before,
        )

    def _task(self, found: Compared, base: Observed, *, timeout_s: float) -> Task:
        candidate = self._candidate
        findings = Findings(
            candidate=candidate,
            fail_to_pass=found.fail_to_pass,
            pass_to_pass=found.pass_to_pass,
            messages=base.messages,
            output=base.output,
        )
        statement = candidate.statement if isinstance(candidate.statement, str) else candidate.statement(findings)
        statement = statement.encode("utf-8", "backslashreplace").decode()  # what tests print may be no text
        extra = {**candidate.extra, "runs": self._runs, "flaky": list(found.flaky)}
        lists = {"fail_to_pass": found.fail_to_pass, "pass_to_pass": found.pass_to_pass}
        record: dict[str, Any] = probe(candidate, timeout_s).model_dump()
        record |= {"title": candidate.title, "problem_statement": statement, "tags": candidate.tags, "extra": extra}
        record["solutions"] = candidate.solutions
        return Task.model_validate(record | {"tests": record["tests"] | lists})


def _called(known: Known | None) -> Observed | None:
    return known() if callable(known) else known


def some(ids: tuple[str, ...]) -> str:
    """The first few of many ids, for one line."""
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
