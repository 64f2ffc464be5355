"""A game of numbers with the records of real episodes: for learners, where a sandbox for each step would take minutes.

Its patches are real patches of the task `tiny-add` and are graded as such; the report of the tests is known beforehand.
"""

import itertools

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from gagar_env.envs.recorder import Recorder, Work
from gagar_env.envs.repo_edit import EPISODE_KEY
from gagar_env.episode import EpisodeStatus, Outcome, TestReport

BODIES = {
    "short": ["return a + b"],
    "long": ["total = a", "if b != 0:", "    total = total + b", "else:", "    print('none')", "return total"],
    "wrong": ["return a * b"],
}


def patch(name):
    """Puts another body into `add`."""
    lines = [f"+    {line}\n" for line in BODIES[name]]
    return (
        "diff --git a/calc.py b/calc.py\n--- a/calc.py\n+++ b/calc.py\n"
        f"@@ -1,5 +1,{4 + len(lines)} @@\n def add(a, b):\n-    return a - b\n{''.join(lines)} \n \n def double(a):\n"
    )


class NumberGame(gym.Env):
    """What a subclass decides: `space`, `see`, `ends` and `work`."""

    numbers = itertools.count()
    observation_space = spaces.Box(0.0, 1000.0, (3,), np.float32)
    action_space = spaces.Discrete(4)

    def __init__(self, horizon, place=0):
        self.horizon, self.place, self.played = horizon, place, -1
        self.render_mode = None

    def see(self):
        """Which member, which of its episodes, which turn."""
        return np.array([self.place, self.played, len(self.actions)], dtype=np.float32)

    def ends(self):
        return len(self.actions) >= self.horizon

    def work(self):
        """Name of the patch; None breaks the episode."""
        return "wrong"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.played += 1
        self.actions = []
        self.recorder = Recorder(
            task_id=options["task"].id, group_id=options["group_id"], seed=seed, policy="", sandbox="process"
        )
        return self.see(), self.info()

    def step(self, action):
        self.actions.append(int(action))
        self.recorder.turn(str(action), "", exit_code=0, timed_out=False, seconds=0.0)
        if self.ends():
            name = self.work()
            if name is None:
                raise OSError("the game is broken")
            outcome = Outcome.FAILED if name == "wrong" else Outcome.PASSED
            work = Work(patch=patch(name).encode(), report=TestReport(outcome=outcome))
            self.recorder.finish(EpisodeStatus.SUBMITTED, work=work)
        info = self.info()
        return self.see(), float(info["passed"]), info[EPISODE_KEY] is not None, False, info

    def cut(self, reason):
        return self.recorder.finish(EpisodeStatus.CUT, error=reason)

    def fail(self, error):
        return self.recorder.finish(EpisodeStatus.ERROR, error=error)

    def info(self):
        episode = self.recorder.episode
        return {
            "task_id": self.recorder.task_id,
            "group_id": self.recorder.group_id,
            "turn": len(self.actions),
            "exit_code": 0,
            "timed_out": False,
            "status": "running" if episode is None else episode.status.value,
            "valid": episode is None or episode.valid,
            "passed": episode is not None and episode.passed,
            EPISODE_KEY: episode,
        }


class Scripted(NumberGame):
    """Member `place` has a length and an outcome of its own, whatever it does."""

    def __init__(self, horizon, place, outcomes, lengths=None):
        super().__init__(horizon, place)
        self.outcome = outcomes[place % len(outcomes)]
        self.length = (lengths or range(1, horizon + 1))[place % len(lengths or range(horizon))]

    def ends(self):
        return len(self.actions) >= self.length

    def work(self):
        return self.outcome


class Bandit(NumberGame):
    """One turn: 0 passes with the short patch, 1 with the long one, others fail."""

    observation_space = spaces.Dict({"x": spaces.Box(0.0, 1.0, (1,), np.float32)})

    def see(self):
        return {"x": np.ones(1, dtype=np.float32)}

    def work(self):
        return {0: "short", 1: "long"}.get(self.actions[-1], "wrong")
