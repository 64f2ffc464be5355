"""All attacks and all honest twins."""

from __future__ import annotations

from gagar_env.attacks import before, breaks, files, outside, process, report, start_up, twins
from gagar_env.attacks.base import Attack, Twin

ATTACKS: tuple[Attack, ...] = (
    *before.ATTACKS,
    *start_up.ATTACKS,
    *process.ATTACKS,
    *report.ATTACKS,
    *files.ATTACKS,
    *outside.ATTACKS,
    *breaks.ATTACKS,
)
"""Every attack, by what it is about."""
TWINS: tuple[Twin, ...] = twins.TWINS
