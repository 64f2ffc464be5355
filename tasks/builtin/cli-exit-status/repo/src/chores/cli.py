"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from chores import commands
from chores.errors import ChoresError


def build_parser() -> argparse.ArgumentParser:
    """Return the parser for the command line."""
    parser = argparse.ArgumentParser(prog="chores", description="A to-do list.")
    parser.add_argument("--file", type=Path, default=Path("chores.json"))
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")

    sub = subparsers.add_parser("add", help="add a chore")
    sub.add_argument("title")
    sub.add_argument("--tag", action="append", default=[])
    sub.add_argument("--priority", type=int, default=0)
    sub.set_defaults(run=commands.add)

    sub = subparsers.add_parser("import", help="add a chore for each line of a file")
    sub.add_argument("source", type=Path)
    sub.set_defaults(run=commands.import_lines)

    sub = subparsers.add_parser("list", help="show open chores")
    sub.add_argument("--all", action="store_true", help="show finished ones too")
    sub.add_argument("--tag")
    sub.set_defaults(run=commands.show)

    sub = subparsers.add_parser("archive", help="move finished chores elsewhere")
    sub.add_argument("--to", type=Path, metavar="PATH")
    sub.set_defaults(run=commands.archive)

    for name, run in (("done", commands.done), ("remove", commands.remove)):
        sub = subparsers.add_parser(name, help=run.__doc__)
        sub.add_argument("number", type=int)
        sub.set_defaults(run=run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    args = build_parser().parse_args(argv)
    try:
        output = args.run(args)
    except ChoresError as error:
        print(f"chores: error: {error}", file=sys.stderr)
        return 1
    if output:
        print(output)
    return 0
