"""Fail when a test was skipped for a reason that this list does not allow: a skipped check is no check."""

import argparse
import sys
import xml.etree.ElementTree as ElementTree

ALLOWED = (
    "would kill the host's processes",
    "the whole suite runs as an ordinary user",
    "no CUDA device",  # transfers are counted on the CPU as well
    "GAGAR_REPO_DIR is not set",  # the records that need a clone; no clone can be downloaded there
    "swebench is not installed",  # its loader, beside the published shape, which is always checked
    "GAGAR_MORE_ROWS is not set",  # rows of public sets, which no package registry has
)


def main() -> int:
    """Return 1 and name the tests when any skip is not allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", help="what `pytest --junitxml` wrote")
    parser.add_argument(
        "--some", metavar="MARKER", action="append", default=[], help="fail when none of these tests ran"
    )
    arguments = parser.parse_args()
    cases = list(ElementTree.parse(arguments.report).iter("testcase"))
    bad = skipped = 0
    for case in cases:
        marked = any(_has(case, marker) for marker in arguments.some)
        for node in case.iter("skipped"):
            why = node.get("message") or ""
            skipped += 1
            if marked or not any(text in why for text in ALLOWED):
                bad += 1
                sys.stderr.write(f"skipped without leave: {case.get('classname')}::{case.get('name')}: {why}\n")
    for marker in arguments.some:
        ran = sum(_has(case, marker) and case.find("skipped") is None for case in cases)
        sys.stderr.write(f"{ran} tests marked {marker} ran\n")
        bad += not ran
    sys.stderr.write(f"{skipped} skipped; {bad} faults\n")
    return 1 if bad else 0


def _has(case: ElementTree.Element, marker: str) -> bool:
    """`tests/conftest.py` writes the marker of a test into the report as a property."""
    return any(p.get("name") == "marker" and p.get("value") == marker for p in case.iter("property"))


if __name__ == "__main__":
    sys.exit(main())
