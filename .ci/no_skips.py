"""Fail when a test was skipped for a reason that this list does not allow: a skipped check is no check."""

import sys
import xml.etree.ElementTree as ElementTree

ALLOWED = (
    "would kill the host's processes",
    "the whole suite runs as an ordinary user",
    "GAGAR_REPO_DIR is not set",  # the records that need a clone; no clone can be downloaded there
)


def main(path: str) -> int:
    """Return 1 and name the tests when any skip is not allowed."""
    skipped = [
        (f"{case.get('classname')}::{case.get('name')}", node.get("message") or "")
        for case in ElementTree.parse(path).iter("testcase")
        for node in case.iter("skipped")
    ]
    bad = [(name, why) for name, why in skipped if not any(text in why for text in ALLOWED)]
    for name, why in bad:
        sys.stderr.write(f"skipped without leave: {name}: {why}\n")
    sys.stderr.write(f"{len(skipped)} skipped, {len(bad)} of them without leave\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
