"""How good a grader is: groups whose right order is known, graded as in training, and measured.

tasks -> scenes -> items (ordered, equal, attacked) -> gradings -> measures with confidence intervals
"""

from gagar_env.grader_eval.evaluate import Evaluation as Evaluation
from gagar_env.grader_eval.evaluate import GraderReport as GraderReport
from gagar_env.grader_eval.evaluate import evaluate as evaluate
from gagar_env.grader_eval.measures import Estimate as Estimate
from gagar_env.grader_eval.measures import Measures as Measures

__all__ = ["Estimate", "Evaluation", "GraderReport", "Measures", "evaluate"]
