"""A process that runs episodes of one harness when told to: `_throughput_worker.py` of `throughput.py`.

It reads one JSON object a line, `{"leg": ..., "episodes": ..., "threads": ..., "work": ...}`, and answers with one:
`seconds`, and `failed`, the number of episodes that did not earn their reward; or `error`. Standard library only,
beside what the leg itself needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from _throughput_work import Work

PR_SET_CHILD_SUBREAPER = 36


def leg_of(name: str, work: Work) -> Callable[[], bool]:
    """One episode of a leg; true when it earned its reward."""
    family, _, kind = name.partition("/")
    if family == "gagar":
        import _throughput_ours as legs
    else:
        import _throughput_peers as legs  # type: ignore[no-redef]
    return legs.leg(kind if family == "gagar" else name, work)


def run(order: dict[str, object], known: dict[tuple[str, str], Callable[[], bool]]) -> dict[str, object]:
    """Run what was ordered."""
    name, place = str(order["leg"]), str(order["work"])
    if (name, place) not in known:
        known[name, place] = leg_of(name, Work.from_json(place))
    episode = known[name, place]
    with ThreadPoolExecutor(int(str(order["threads"]))) as pool:
        started = time.perf_counter()
        earned = list(pool.map(lambda _: episode(), range(int(str(order["episodes"])))))
        seconds = time.perf_counter() - started
    getattr(episode, "finish", lambda: None)()
    return {"seconds": seconds, "failed": earned.count(False)}


def main() -> None:
    """Serve until the input ends."""
    with contextlib.suppress(OSError):  # what a harness leaves behind is its own: it is counted here, not with init
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a harness may print what it likes
    logging.disable(logging.CRITICAL)
    os.environ["MSWEA_SILENT_STARTUP"] = "1"
    known: dict[tuple[str, str], Callable[[], bool]] = {}
    for line in sys.stdin:
        try:
            answer = run(json.loads(line), known)
        except ImportError as error:
            answer = {"error": f"{error.name or error} is not installed"}
        except Exception as error:
            said = (str(error).splitlines() or [""])[0]
            answer = {"error": f"{type(error).__name__}: {said}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
