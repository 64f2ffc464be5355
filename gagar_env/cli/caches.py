"""`gagar cache`: what is kept on disk, whether it is whole, and how much room it takes."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gagar_env.cli.options import AsJson

if TYPE_CHECKING:
    from gagar_env.cache_room import Entry

cache_app = typer.Typer(help="Look after the cache of trees, environments and images.", no_args_is_help=True)


@cache_app.command("list")
def cache_list(
    each: Annotated[bool, typer.Option("--entries", help="A line for each entry, not for each kind.")] = False,
    as_json: AsJson = False,
) -> None:
    """List what is in the cache, how large it is, and what living processes use."""
    from gagar_env.cache import cache_root
    from gagar_env.cache_room import entries, limit_bytes
    from gagar_env.cli.output import console, print_json

    root, limit, known = cache_root(), limit_bytes(), entries()
    total = sum(entry.size for entry in known)
    if as_json:
        print_json({"folder": str(root), "bytes": total, "limit": limit, "entries": [_row(entry) for entry in known]})
        return
    if known:
        console.print(_entries(known) if each else _kinds(known))
    most = "no limit (GAGAR_CACHE_GB is 0)" if limit is None else f"at most {_size(limit)} (GAGAR_CACHE_GB)"
    console.print(f"{root}: {_size(total)}, {most}", markup=False, highlight=False, soft_wrap=True)


@cache_app.command("verify")
def cache_verify(as_json: AsJson = False) -> None:
    """Read all of the cache. What is damaged is removed unless it is in use, and made again when it is needed.

    Exit code 1: something was damaged.
    """
    from gagar_env.cache_room import entries, verify
    from gagar_env.cli.output import console, errors, print_json

    with errors.status("reading") as status:
        faults = verify(on_progress=lambda line: status.update(f"reading {line}"))
    whole = len(entries()) - sum(not fault.removed for fault in faults)
    if as_json:
        print_json([_row(f.entry) | {"reason": f.reason, "removed": f.removed} for f in faults])
    else:
        for fault in faults:
            what = "removed" if fault.removed else "in use: run this again when nothing runs"
            console.print(f"{fault.entry.place.name}: {fault.reason} ({what})", markup=False, highlight=False)
        console.print(f"{_count(whole)} whole, {len(faults)} damaged", markup=False, highlight=False)
    if faults:
        raise typer.Exit(1)


@cache_app.command("prune")
def cache_prune(
    to_gb: Annotated[
        float | None,
        typer.Option("--to-gb", min=0.0, help="What may stay, in GB; default: GAGAR_CACHE_GB. 0: nothing."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove what was not used for longest, and what killed processes left. What a living process uses stays."""
    from gagar_env.cache_room import entries, limit_bytes, make_room
    from gagar_env.cli.output import console, print_json

    limit = limit_bytes() if to_gb is None else int(to_gb * 1e9)
    gone = make_room(limit if limit is not None else 1 << 62)
    if as_json:
        print_json([_row(entry) for entry in gone])
        return
    left = sum(entry.size for entry in entries())
    text = f"{_count(len(gone))} removed, {_size(sum(entry.size for entry in gone))}; {_size(left)} left"
    console.print(text, markup=False, highlight=False)


def _count(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "kind": entry.place.kind,
        "key": entry.place.key,
        "bytes": entry.size,
        "used": _time(entry.used),
        "in_use": entry.in_use,
        "note": entry.note,
    }


def _kinds(known: list[Entry]) -> Any:
    from rich.table import Table

    table = Table()
    table.add_column("kind")
    for name in ("entries", "size", "in use", "last used"):
        table.add_column(name, justify="right", no_wrap=True)
    for kind in sorted({entry.place.kind for entry in known}):
        some = [entry for entry in known if entry.place.kind == kind]
        cells = (str(len(some)), _size(sum(entry.size for entry in some)), str(sum(entry.in_use for entry in some)))
        table.add_row(kind, *cells, _time(max(entry.used for entry in some)))
    return table


def _entries(known: list[Entry]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for name in ("entry", "what", "size", "in use", "last used"):
        table.add_column(name, overflow="fold")
    for entry in known:
        cells = (_size(entry.size), "yes" if entry.in_use else "", _time(entry.used))
        table.add_row(entry.place.name, escape(entry.note), *cells)
    return table


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M")


def _size(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.1f} MB"
