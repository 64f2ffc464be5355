"""Policies and graders for tests of pipelines: they wait for each other, and count."""

import threading
import time
from pathlib import Path

from gagar_env.grading import Verdict, VerdictOutcome

FIX = "sed -i 's/a - b/a + b/' calc.py"
OTHER_FIX = "sed -i 's/a - b/b + a/' calc.py"
MIXED = ([FIX], [OTHER_FIX], [])
"""Scripts of a group that is kept and has two candidates to rank."""
LONG_S = 60
"""Nothing here takes that long, unless what is tested does not work."""


class Scripted:
    """Member m plays `scripts[m]`, told by its seed. What is callable is called with the seed; None is skipped."""

    name = "scripted"

    def __init__(self, *scripts):
        self.scripts = scripts

    def start(self, *, task, actions, seed):
        script = iter(self.scripts[seed % len(self.scripts)])

        class Actor:
            def act(self, observation):
                for action in script:
                    if (said := action(seed) if callable(action) else action) is not None:
                        return said
                return "submit"

        return Actor()


class First:
    """Prefers the patch that adds in the order of the arguments. `before` is called with the workspace."""

    name = "first"

    def __init__(self, before=lambda workspace: None):
        self.before = before

    def grade(self, workspace):
        self.before(workspace)
        order = sorted(
            workspace.passing, key=lambda label: b"+    return a + b" not in workspace.candidates[label].patch
        )
        return Verdict(grader=self.name, outcome=VerdictOutcome.RANKED, tiers=tuple((label,) for label in order))


class Crowd:
    """How many are in a block at one time, and how many were at most."""

    def __init__(self):
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __enter__(self):
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_):
        with self._lock:
            self.now -= 1


def meet(barrier):
    barrier.wait()


def wait_for(event):
    assert event.wait(LONG_S)


def wait_until(true):
    ends_at = time.monotonic() + LONG_S
    while not true():
        assert time.monotonic() < ends_at
        time.sleep(0.01)


def gagar_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("gagar")]


def running(marker):
    """Processes with a text in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if marker.encode() in line:
            found.append(int(path.parent.name))
    return found
