"""How a group is shown: as a table, and as a JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text
from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from gagar_env.episode import Episode
from gagar_env.group import GroupResult


def patch_lines(patch: bytes) -> int:
    """Added and removed lines of a patch; binary files count nothing."""
    try:
        files = PatchSet(patch.decode("latin-1"))
    except (UnidiffParseError, ValueError):  # a head with more digits than a number may have, say
        return 0
    return sum(file.added + file.removed for file in files)


def group_rows(result: GroupResult, episodes: Sequence[Episode]) -> list[dict[str, Any]]:
    """One row for each episode, best first: rank, then failing ones."""
    by_id = {episode.id: episode for episode in episodes}
    rows = [
        {
            "id": episode_id,
            "label": label,
            "passed": passed,
            "valid": valid,
            "turns": len(by_id[episode_id].turns),
            "patch_lines": patch_lines(by_id[episode_id].patch),
            "rank": rank,
            "weight": weight,
            "advantage_before": before if result.comparable else None,
            "advantage_after": after if result.comparable else None,
        }
        for episode_id, label, passed, valid, rank, weight, before, after in zip(
            result.episode_ids,
            result.labels,
            result.passed,
            result.valid,
            result.ranks,
            result.weights,
            result.advantages_before,
            result.advantages,
            strict=True,
        )
    ]
    return sorted(rows, key=lambda row: (not row["valid"], not row["passed"], row["rank"] or 0, row["label"] or ""))


def group_json(result: GroupResult, episodes: Sequence[Episode] | None, *, seed: int, sandbox: str) -> dict[str, Any]:
    """The object that `gagar demo --json` prints. What was not compared has no advantages: null, not 0.

    Without episodes, as of a group some of whose episodes cannot be read any more, it has no rows.
    """
    return {
        "seed": seed,
        "task": result.task_id,
        "sandbox": sandbox,
        "group_id": result.group_id,
        "kept": result.kept,
        "reason": result.reason,
        "sum_before": result.sum_before if result.comparable else None,
        "sum_after": result.sum_after if result.comparable else None,
        "episodes": [] if episodes is None else group_rows(result, episodes),
    }


def group_table(result: GroupResult, episodes: Sequence[Episode]) -> Table:
    """The table that `gagar demo` ends with; its last row holds the sums over the passing episodes."""
    table = Table(title=f"group {result.group_id} of task {result.task_id}", show_footer=True)
    table.add_column("episode", footer="sum", no_wrap=True)
    table.add_column("tests", footer="of passing", no_wrap=True)
    for name in ("turns", "patch\nlines", "rank", "weight"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("advantage\nbefore", justify="right", footer=_signed(result.sum_before, result), no_wrap=True)
    table.add_column("advantage\nafter", justify="right", footer=_signed(result.sum_after, result), no_wrap=True)
    for row in group_rows(result, episodes):
        tests = "[green]passed[/]" if row["passed"] else "[red]failed[/]" if row["valid"] else "[yellow]invalid[/]"
        ranked = row["rank"] is not None
        cells = [
            row["label"] or "-",
            tests,
            str(row["turns"]),
            str(row["patch_lines"]),
            str(row["rank"] + 1) if ranked else "-",
            f"{row['weight']:.2f}" if ranked else "-",
            _signed(row["advantage_before"], result),
            _signed(row["advantage_after"], result),
        ]
        table.add_row(*cells)
    return table


def _signed(number: float, result: GroupResult) -> str:
    return f"{number:+.4f}" if result.comparable else "-"


def reason_lines(result: GroupResult) -> list[Text]:
    """One line for each ranked label, best first: why it stands where it does."""
    if result.verdict is None:
        return []
    reasons = result.verdict.reasons
    return [
        Text(f"{label}: {reasons.get(label, '')}", no_wrap=True, overflow="ellipsis")
        for tier in result.verdict.tiers
        for label in tier
        if reasons.get(label)
    ]
