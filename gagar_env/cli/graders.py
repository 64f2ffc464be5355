"""`gagar grader`: how good a grader is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from gagar_env.cli.models import Actors, make_grader
from gagar_env.cli.output import console, counted, need_git, print_json, progress_line
from gagar_env.errors import GagarError
from gagar_env.grader_eval import Estimate, GraderReport, Measures, evaluate
from gagar_env.grader_eval.export import export
from gagar_env.grader_eval.records import write_gradings
from gagar_env.sandbox import choose_kind
from gagar_env.tasks.task import Task

_ROWS = (
    ("pairwise accuracy", "pairwise_accuracy", "pairs in the right order; a tie is half"),
    ("Kendall's tau", "kendall_tau", "right minus wrong pairs of a group, -1 to 1"),
    ("ties of unequal", "ties_of_unequal", "pairs with a right order that are tied"),
    ("tie accuracy", "tie_accuracy", "pairs of equals that are tied"),
    ("slot bias", "slot_bias", "how much more often the earlier label wins; 0 is none"),
    ("length bias", "length_bias", "how much more often the longer of equals wins; 0 is none"),
    ("self-agreement", "self_agreement", "pairs that two gradings, labels reversed, see alike"),
    ("injection success", "injection_success", "worse candidates that gain by talking to the judge"),
    ("fallback rate", "fallback_rate", "gradings without a ranking"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSettings:
    """What an evaluation is made with."""

    actors: Actors
    groups: int
    seed: int
    repeats: int
    deadline_s: float | None
    sandbox: str
    jobs: int
    out: Path | None


def evaluate_grader(settings: EvalSettings, tasks: Sequence[Task], *, as_json: bool) -> bool:
    """Evaluate a grader and print the report; True if it ranked anything.

    Raises:
        GagarError: If there is no such grader, or no group could be made.
    """
    grader = make_grader(settings.actors)
    if grader is None:
        raise GagarError("--grader none ranks nothing: there is nothing to evaluate")
    if settings.out is not None and settings.out.exists():
        raise GagarError(f"--out {settings.out} is there already: choose another file")
    need_git()
    choose_kind(settings.sandbox)
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with progress_line(*columns) as progress:
        bar = progress.add_task("making groups", total=settings.groups)

        def tell(what: str, done: int, total: int) -> None:
            progress.update(bar, description=what, completed=done, total=total)

        found = evaluate(
            grader,
            tasks,
            groups=settings.groups,
            seed=settings.seed,
            repeats=settings.repeats,
            deadline_s=settings.deadline_s,
            sandbox=settings.sandbox,
            jobs=settings.jobs,
            on_progress=tell,
        )
    if settings.out is not None:
        write_gradings(settings.out, found.graded)
    if as_json:
        print_json(found.report.model_dump(mode="json"))
    else:
        _print(found.report, settings.out)
    return found.report.measures.fallback_rate.value != 1.0


def export_sessions(
    sources: Sequence[Path], out: Path, tasks: Sequence[Task], *, eval_share: float, seed: int, as_json: bool
) -> None:
    """Write conversations of a judge as training data, and say what was taken and what not.

    Raises:
        GagarError: If there is nothing to learn from.
    """
    if out.exists():
        raise GagarError(f"--out {out} is there already: choose another folder")
    statements = {task.id: task.problem_statement for task in tasks}
    manifest = export(sources, out, eval_share=eval_share, seed=seed, statements=statements)
    if as_json:
        print_json(manifest.model_dump(mode="json"))
        return
    for name, own in manifest.tasks.items():
        count = sum(example.split == name for example in manifest.examples)
        console.print(f"{name}: {counted(count, 'example')} of {counted(len(own), 'task')}", highlight=False)
    for reason, count in sorted(manifest.dropped.items()):
        console.print(f"left out {count}: {escape(reason)}", highlight=False)
    for group in manifest.alike:
        console.print(f"kept together, alike: {escape(', '.join(group))}", highlight=False)
    console.print(f"written to {out}", markup=False, highlight=False)


def _print(report: GraderReport, out: Path | None) -> None:
    measures, number = report.measures, sum(report.groups.values())
    split = ", ".join(f"{count} {name}" for name, count in report.groups.items())
    table = Table(title=f"grader {escape(repr(report.grader))} on {counted(number, 'group')}: {split}")
    for name in ("measure", "value", "95% interval", "of", "what it is"):
        table.add_column(name, justify="right" if name in ("value", "of") else "left")
    for name, field, what in _ROWS:
        _row(table, name, getattr(measures, field), what)
    _row(table, "seconds", report.seconds, "for each group, wall clock", digits=2)
    _row(table, "USD", report.cost_usd, "for each group", digits=4)
    console.print(table)
    console.print(_by_kind(measures))
    usage = report.usage
    if usage.calls:
        tokens = f"{usage.prompt_tokens} prompt and {usage.completion_tokens} completion tokens"
        console.print(f"{counted(usage.calls, 'call')}, {usage.failed_calls} failed, {tokens}", highlight=False)
    if report.cached:
        console.print(f"{counted(report.cached, 'verdict')} from the cache, at no cost", highlight=False)
    if report.skipped:
        reasons = Counter(f"{skip.kind}: {skip.reason}" for skip in report.skipped)
        for reason, count in sorted(reasons.items()):
            console.print(f"skipped {counted(count, 'task')} for {escape(reason)}", highlight=False)
    for name, count in report.short.items():
        console.print(f"[yellow]short[/] of {counted(count, 'group')}: {escape(name)}", highlight=False)
    if out is not None:
        console.print(f"written to {out}", markup=False, highlight=False)


def _row(table: Table, name: str, found: Estimate, what: str, digits: int = 3) -> None:
    if found.value is None:
        table.add_row(name, "-", "-", "0", what)
        return
    interval = f"{found.low:.{digits}f} to {found.high:.{digits}f}"
    table.add_row(name, f"{found.value:.{digits}f}", interval, str(found.count), what)


def _by_kind(measures: Measures) -> Table:
    table = Table(title="accuracy by kind and strength, ties of equals, successful attacks")
    for name in ("kind", "all", "1", "2", "3", "pairs"):
        table.add_column(name, justify="left" if name == "kind" else "right")
    for kind, found in measures.accuracy_by_kind.items():
        levels = [_short(each) for each in measures.accuracy_by_kind_and_strength[kind].values()]
        table.add_row(kind, _short(found), *levels, str(found.count))
    table.add_section()
    for kind, found in measures.tie_accuracy_by_kind.items():
        table.add_row(f"equal: {kind}", _short(found), "", "", "", str(found.count))
    table.add_section()
    for kind, found in measures.injection_success_by_channel.items():
        table.add_row(f"attack by {kind}", _short(found), "", "", "", str(found.count))
    return table


def _short(found: Estimate) -> str:
    return "-" if found.value is None else f"{found.value:.2f}"
