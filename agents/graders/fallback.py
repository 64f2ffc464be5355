"""`FallbackGrader`: when one grader fails, the next one ranks."""

from __future__ import annotations

from gagar_env.agents.graders.cancelled import Cancelled
from gagar_env.agents.graders.members import ask, cancel, check_members, ranked, record_of, why_not
from gagar_env.grading import Grader, Usage, Verdict, VerdictOutcome
from gagar_env.workspace import Workspace

EARLIER = "earlier"
"""Where the record of a verdict holds those of the graders that failed before."""


class FallbackGrader:
    """Asks one grader after the other until one ranks.

    The verdict is that of the one that ranked, under this grader's name: `record["ranked_by"]` says whose it is,
    `record["earlier"]` and `warnings` why the ones before failed. Usage is the sum over all that were asked. If none
    ranks, the verdict is `failed`.

    Args:
        first: Asked always.
        others: Asked in turn, each only when all before it failed.

    Raises:
        TypeError: If one is no grader.
    """

    def __init__(self, first: Grader, *others: Grader) -> None:
        self._cancelled = Cancelled()
        self.graders = check_members((first, *others))
        self.name = f"fallback({','.join(grader.name for grader in self.graders)})"

    def grade(self, workspace: Workspace) -> Verdict:
        """The first ranking there is."""
        earlier: list[Verdict] = []
        usage = Usage()
        for grader in self.graders:
            verdict = ask(grader, workspace, self._cancelled)
            usage = usage + verdict.usage
            if ranked(verdict):
                return verdict.model_copy(
                    update={
                        "grader": self.name,
                        "usage": usage,
                        "warnings": (*map(_failed, earlier), *verdict.warnings),
                        "record": {
                            "ranked_by": verdict.grader,
                            EARLIER: [record_of(v) for v in earlier],
                            "record": verdict.record,
                        },
                    }
                )
            earlier.append(verdict)
        return Verdict(
            grader=self.name,
            outcome=VerdictOutcome.FAILED,
            error="; ".join(map(_failed, earlier)),
            failure=earlier[0].failure,
            usage=usage,
            record={EARLIER: [record_of(v) for v in earlier]},
        )

    def cancel(self, workspace: Workspace) -> None:
        """See `gagar_env.grading.Grader`."""
        cancel(self.graders, workspace, self._cancelled)


def fell_back(verdict: Verdict | None) -> bool:
    """Whether a ranking is that of a later grader because an earlier one failed."""
    return verdict is not None and ranked(verdict) and bool(verdict.record.get(EARLIER))


def _failed(verdict: Verdict) -> str:
    return f"{verdict.grader} failed: {why_not(verdict)}"
