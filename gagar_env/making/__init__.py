"""Tasks made from repositories: `Candidate` is what a maker proposes, `derive` finds out whether it is a task."""

from gagar_env.making.candidate import Candidate, Findings, Made, RefusedError, Statement, refusal
from gagar_env.making.derive import derive
from gagar_env.making.observe import Observed, observe

__all__ = ["Candidate", "Findings", "Made", "Observed", "RefusedError", "Statement", "derive", "observe", "refusal"]
