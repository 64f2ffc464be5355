"""Policies and graders that workers of a cluster import by name."""

import os
import signal
import threading
import time
from pathlib import Path

from gagar_env.grading import Verdict, VerdictOutcome

FIX = "sed -i 's/a - b/a + b/' calc.py"


class Scripted:
    """Members take turns at the scripts by their seed; with `folder`, each member that begins leaves a file there.

    A line `wait N` waits so many seconds.
    """

    name = "scripted"

    def __init__(self, *scripts, folder=""):
        self.scripts, self.folder = scripts, str(folder)

    def start(self, *, task, actions, seed):
        script = iter(self.scripts[seed % len(self.scripts)])
        if self.folder:
            Path(self.folder, f"{seed}-{os.getpid()}-{time.monotonic_ns()}").touch()
        return ScriptedActor(script)


class ScriptedActor:
    def __init__(self, script):
        self.script = script

    def act(self, observation):
        action = next(self.script, "submit")
        if action.startswith("wait "):
            time.sleep(float(action.split()[1]))
            action = "true"
        if action == "kill me":
            os.kill(os.getpid(), signal.SIGKILL)
        if action.startswith("raise "):
            raise ValueError(action)
        return action


class ByLength:
    """The shortest patch is best; equally long ones share a tier. It may be slow."""

    name = "by-length"

    def __init__(self, wait_s=0.0):
        self.wait_s = wait_s

    def grade(self, workspace):
        time.sleep(self.wait_s)
        lengths = {label: len(workspace.candidates[label].patch) for label in workspace.passing}
        tiers = [tuple(x for x in lengths if lengths[x] == n) for n in sorted(set(lengths.values()))]
        return Verdict(grader=self.name, outcome=VerdictOutcome.RANKED, tiers=tuple(tiers))


class Locked(Scripted):
    """Does not pickle."""

    def __init__(self):
        super().__init__([FIX])
        self.lock = threading.Lock()


class Shared(Scripted):
    """Counts its episodes; in one process for all workers."""

    def __init__(self):
        super().__init__([FIX], [f"{FIX}; echo '# a longer one' >> calc.py"], ["true"], [f"echo x > junk.txt; {FIX}"])
        self.count = 0

    def start(self, **how):
        self.count += 1
        return super().start(**how)

    def started(self):
        return self.count


def broken_factory():
    raise ValueError("there is no such model")
