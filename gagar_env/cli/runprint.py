"""What `gagar run` prints at its end."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.markup import escape
from rich.table import Table

from gagar_env.cli.output import console, counted, errors, one_line
from gagar_env.cli.runtally import Row, Tally
from gagar_env.grading import Usage
from gagar_env.rollout import Policy
from gagar_env.totals import GradingTotals


def print_run(tally: Tally, totals: GradingTotals, policy: Policy, written_to: Path | None) -> None:
    """Print the groups, or the tasks of a long run, and what it came to."""
    console.print(_by_group(tally) if tally.groups <= len(tally.rows) else _by_task(tally))
    reasons = dict(tally.reasons) | {"without the ranking that was wanted": tally.fallbacks}
    counts = ", ".join(f"{number} {why}" for why, number in reasons.items() if number)
    kinds = ", ".join(sorted(tally.kinds))
    console.print(f"{counted(tally.groups, 'group')} in the {kinds!r} sandbox: {counts}", highlight=False)
    for task_id, fault in tally.faults.items():
        console.print(f"[yellow]invalid[/] {escape(f'{task_id}: {one_line(fault)}')}", highlight=False)
    for (task_id, why), number in () if totals.all_failed else tally.plain.items():
        times = f" ({number} groups)" if number > 1 else ""
        console.print(f"[yellow]plain[/] {escape(f'{task_id}{times}: {one_line(why)}')}", highlight=False)
    for line in _spent(tally, totals, policy):
        console.print(line, markup=False, highlight=False)
    if tally.any_of_one:
        console.print("a group of one is not graded: there is nothing to compare; `gagar eval` measures a policy")
    if written_to is not None:
        console.print(f"written to {written_to}", markup=False, highlight=False)


def warn(line: str) -> None:
    """Print a line about what went wrong."""
    errors.print(f"gagar: {line}", style="red", markup=False, highlight=False, soft_wrap=True)


def _columns(names: tuple[str, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in names:
        table.add_column(name, justify="left" if name in ("task", "group") else "right", overflow="fold")
    return table


def _by_group(tally: Tally) -> Table:
    names = ("task", "passed", "invalid", "group", "tiers", "sum\nbefore", "sum\nafter")
    table = _columns((*names, "grading\ntokens", "grading\nseconds") if tally.with_a_model else names)
    for _, row in sorted(tally.rows.items()):
        table.add_row(
            escape(row.task),
            f"{row.passed}/{row.episodes}",
            str(row.invalid),
            row.what,
            str(row.tiers) if row.tiers else "-",
            *(("-", "-") if row.sums is None else (f"{total:+.4f}" for total in row.sums)),
            *(_cost(row) if tally.with_a_model else ()),
        )
    return table


def _by_task(tally: Tally) -> Table:
    table = _columns(("task", "groups", "kept", "passed", "invalid"))
    for task_id, row in sorted(tally.tasks.items()):
        passed = f"{row.passed}/{row.episodes}"
        table.add_row(escape(task_id), str(row.groups), str(row.kept), passed, str(row.invalid))
    return table


def _cost(row: Row) -> tuple[str, str]:
    return ("-", "-") if row.grading_tokens is None else (str(row.grading_tokens), f"{row.grading_s:.1f}")


def _spent(tally: Tally, totals: GradingTotals, policy: Policy) -> list[str]:
    """What models were asked for, one line for the policy and one for the grader; none without models."""
    lines: list[str] = []
    if any(tally.acted.values()):
        noted = {"answers", "prompt_tokens", "completion_tokens"}
        counts: dict[str, int] = getattr(policy, "counts", {})
        seen = [f"{n} {name.replace('_', ' ')}" for name, n in counts.items() if name not in noted]
        acted = _tokens(tally.acted["prompt_tokens"], tally.acted["completion_tokens"], seen)
        lines.append(f"{policy.name}: {acted}")
    usage = totals.usage
    if usage.calls or tally.fell_back or totals.cached:
        extra = [f"{usage.failed_calls} without a reply"] if usage.failed_calls else []
        extra += [_price(usage), f"{usage.seconds:.1f} seconds"]
        extra += [f"{counted(tally.fell_back, 'group')} ranked by the fallback"] if tally.fell_back else []
        extra += [f"{counted(totals.cached, 'verdict')} from the cache"] if totals.cached else []
        asked = _tokens(usage.prompt_tokens, usage.completion_tokens, extra)
        lines.append(f"{tally.grader}: {counted(usage.calls, 'call')}, {asked}")
    if (tau := totals.length_tau) is not None:
        lines.append(f"rank and length of patches: tau {tau:+.2f}; above 0, longer ones were ranked better")
    return lines


def _price(usage: Usage) -> str:
    if usage.cost_known:
        return f"{usage.cost_usd:.4f} USD"
    return f"over {usage.cost_usd:.4f} USD" if usage.cost_usd else "price not known"


def _tokens(prompt: int, completion: int, extra: list[str]) -> str:
    return ", ".join([f"{prompt} prompt and {completion} completion tokens", *extra])
