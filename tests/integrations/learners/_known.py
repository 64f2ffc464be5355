"""Known advantages of three groups, ragged in size and length, and records that become them without a verification."""

import numpy as np

from gagar_env.advantages import group_advantages, rank_weights, redistribute
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport

SIZES = (8, 4, 6)
GROUP = np.repeat(np.arange(3), SIZES)
PASSED = np.array([*(1, 1, 1, 1, 0, 0, 0, 0), *(1, 0, 0, 0), *(1, 1, 1, 1, 1, 0)], dtype=bool)
RANKS = np.array([*(0, 1, 2, 3, -1, -1, -1, -1), *(0, -1, -1, -1), *(0, 0, 1, 2, 2, -1)])
LENGTHS = [3, 7, 1, 5, 2, 6, 4, 3, 9, 1, 2, 4, 5, 5, 8, 1, 3, 2]
BEFORE = group_advantages(PASSED, GROUP, base="dr_grpo")
KNOWN = redistribute(BEFORE, rank_weights(RANKS, GROUP, strength=0.75), PASSED, GROUP)
assert np.allclose(KNOWN[:4], [0.8, 0.6, 0.4, 0.2])
assert np.allclose([KNOWN[np.equal(GROUP, g)].sum() for g in range(3)], 0)


def equal(found, wanted=KNOWN):
    """Whether numbers came through, to 1e-6."""
    found = np.asarray(found, dtype=np.float64)
    return found.shape == np.shape(wanted) and bool(np.max(np.abs(found - wanted), initial=0.0) <= 1e-6)


def of_tokens(advantages, mask):
    """The one advantage of each row, after a look that all its trained tokens have it and the others 0."""
    advantages, mask = np.asarray(advantages, dtype=np.float64), np.asarray(mask, dtype=bool)
    rows = []
    for row, used in zip(advantages, mask, strict=True):
        assert np.ptp(row[used]) <= 1e-6, row
        rows.append(row[used][0])
    return rows


def episode(record):
    """`p`: passed, `f`: failed, `e`: no result, None: the learner has none."""
    if record is None:
        return None
    common = {"id": "own", "group_id": "own", "task_id": "ledger-rounding"}
    if record == "e":
        return Episode(status=EpisodeStatus.ERROR, error="the machine broke", **common)
    outcome = Outcome.PASSED if record == "p" else Outcome.FAILED
    return Episode(status=EpisodeStatus.SUBMITTED, report=TestReport(outcome=outcome), **common)
