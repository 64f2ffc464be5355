"""The command line: list the entries of feed files."""

import argparse
from pathlib import Path

from .parser import FeedError
from .reader import Reader


def build_parser():
    """Return the parser for the command line."""
    parser = argparse.ArgumentParser(
        prog="newsbox", description="List the entries of RSS and Atom files."
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a feed file")
    parser.add_argument("--limit", type=int, help="list at most LIMIT entries")
    return parser


def format_entry(entry):
    """Return the line printed for `entry`."""
    day = entry.published.date().isoformat() if entry.published else "-" * 10
    return f"{day}  {entry.feed_title}: {entry.title}"


def main(argv=None):
    """List the entries and return the exit status."""
    parser = build_parser()
    args = parser.parse_args(argv)
    reader = Reader()
    for name in args.files:
        try:
            reader.add(name, Path(name).read_text(encoding="utf-8"))
        except (OSError, FeedError) as error:
            parser.error(f"{name}: {error}")
    for entry in reader.entries(limit=args.limit):
        print(format_entry(entry))
    return 0
