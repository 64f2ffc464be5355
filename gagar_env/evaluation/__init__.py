"""What a policy can do, without groups: pass@1, pass@k and the quality of what passes, with intervals.

The same environments, policies and verifier as in training; no grader, no advantages.
"""

from __future__ import annotations

from gagar_env.evaluation.compare import Comparison, compare
from gagar_env.evaluation.estimates import Estimate, pass_at_k, wilson
from gagar_env.evaluation.report import EvaluationReport, SetEvaluation, TaskEvaluation, report_of
from gagar_env.evaluation.rows import EpisodeRow, row_of
from gagar_env.evaluation.run import evaluate

__all__ = [
    "Comparison",
    "EpisodeRow",
    "Estimate",
    "EvaluationReport",
    "SetEvaluation",
    "TaskEvaluation",
    "compare",
    "evaluate",
    "pass_at_k",
    "report_of",
    "row_of",
    "wilson",
]
