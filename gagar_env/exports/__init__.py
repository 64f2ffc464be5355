"""A stored run in the formats of others: Parquet, data sets, chat records, `.traj` files, predictions.

Episodes are read and written one by one: memory does not grow with the run. What is written appears whole or not at
all. Parquet needs the extra `datasets`; nothing else does.
"""

from __future__ import annotations

from gagar_env.exports.export import FORMATS, ExportSummary, export_run
from gagar_env.exports.records import ONLY, PICKS, Exported, exported_episodes

__all__ = ["FORMATS", "ONLY", "PICKS", "ExportSummary", "Exported", "export_run", "exported_episodes"]
