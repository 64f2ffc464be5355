"""GAGAR: groupwise agentic grading and advantage redistribution for code agents."""

__version__ = "0.1.0"
