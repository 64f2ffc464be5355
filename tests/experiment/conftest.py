"""The experiment's modules lie flat beside its script, which finds them in its own folder."""

import sys
from pathlib import Path

FOLDER = str(Path(__file__).parents[2] / "examples" / "grpo_vs_gagar")
if FOLDER not in sys.path:
    sys.path.append(FOLDER)
