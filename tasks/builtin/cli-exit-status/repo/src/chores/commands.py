"""What the subcommands do. Each returns the text to print."""

from __future__ import annotations

from argparse import Namespace

from chores.archive import append_to_archive, default_archive
from chores.errors import ChoresError
from chores.model import MAX_PRIORITY, Chore
from chores.store import load_list, save_list


def add(args: Namespace) -> str:
    """Add one chore."""
    chores = load_list(args.file)
    chore = chores.add(args.title, args.tag, args.priority)
    save_list(chores, args.file)
    return f"Added {chore.number}: {chore.title}"


def import_lines(args: Namespace) -> str:
    """Add a chore for each line of a text file that is not blank."""
    try:
        lines = args.source.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ChoresError(f"cannot import {args.source}: {error}") from error
    chores = load_list(args.file)
    added = [chores.add(line) for line in lines if line.strip()]
    save_list(chores, args.file)
    return f"Added {_count(len(added))}"


def done(args: Namespace) -> str:
    """Mark a chore as done."""
    chores = load_list(args.file)
    chore = chores.finish(args.number)
    save_list(chores, args.file)
    return f"Done {chore.number}: {chore.title}"


def remove(args: Namespace) -> str:
    """Take a chore off the list."""
    chores = load_list(args.file)
    chore = chores.remove(args.number)
    save_list(chores, args.file)
    return f"Removed {chore.number}: {chore.title}"


def archive(args: Namespace) -> str:
    """Move finished chores to the archive."""
    chores = load_list(args.file)
    finished = chores.take_done()
    if finished:
        append_to_archive(finished, args.to or default_archive(args.file))
        save_list(chores, args.file)
    return f"Archived {_count(len(finished))}"


def show(args: Namespace) -> str:
    """List open chores, urgent ones first."""
    chosen = [
        chore
        for chore in load_list(args.file)
        if (args.all or not chore.done) and (not args.tag or args.tag in chore.tags)
    ]
    chosen.sort(key=lambda chore: -chore.priority)
    return "\n".join(_line(chore) for chore in chosen)


def _line(chore: Chore) -> str:
    marks = "x" if chore.done else "!" * chore.priority
    tags = "".join(f"  #{tag}" for tag in chore.tags)
    return f"{chore.number:3}  {marks:{MAX_PRIORITY}} {chore.title}{tags}"


def _count(number: int) -> str:
    return "1 chore" if number == 1 else f"{number} chores"
