"""The agentic grader: a model with tools inspects all episodes of a group together and ranks the passing ones."""

from __future__ import annotations

from gagar_env.agents.graders.agentic.grader import AgenticGrader as AgenticGrader
from gagar_env.agents.graders.agentic.votes import replay as replay

__all__ = ["AgenticGrader", "replay"]
