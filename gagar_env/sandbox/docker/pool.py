"""Containers that were started ahead, so that `reset` does not wait for the engine.

A container serves one sandbox, like any other: only its start is early.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import defaultdict, deque

from gagar_env.errors import SandboxError
from gagar_env.sandbox.docker.container import Container, Plan
from gagar_env.sandbox.docker.session import Session, server_script

logger = logging.getLogger(__name__)

_MAX_AGE = 0.5
"""Share of its lifetime that a waiting container may have used up."""
_MAX_PLANS = 4
"""Plans that containers are kept for; those that were asked for longest ago give way."""


class Started:
    """A container with an open session, ready for its first command."""

    def __init__(self, plan: Plan) -> None:
        self.at = time.monotonic()
        self.container = Container(plan)
        try:
            self.session = Session(self.container.id, server_script(plan.limits, root=plan.root), plan.user)
        except BaseException:
            self.container.remove()
            raise

    def discard(self) -> None:
        """End it. May be called twice."""
        self.session.close()
        self.container.remove()


class Pool:
    """Keeps a number of started containers for each plan that was asked for. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ready: dict[Plan, deque[Started]] = defaultdict(deque)
        self._targets: dict[Plan, int] = {}
        self._starting: dict[Plan, int] = defaultdict(int)

    def keep(self, plan: Plan, count: int) -> None:
        """Keep `count` containers of this plan ready from now on; 0 ends that."""
        with self._lock:
            self._targets.pop(plan, None)
            self._targets[plan] = count  # as the latest: a training run goes from task to task
            for old in [*self._targets][:-_MAX_PLANS]:
                del self._targets[old]
            surplus = [
                ready.pop() for p, ready in self._ready.items() for _ in range(len(ready) - self._targets.get(p, 0))
            ]
        for started in surplus:
            started.discard()
        self._fill(plan)

    def ready(self, plan: Plan) -> int:
        """How many are ready now."""
        with self._lock:
            return len(self._ready[plan])

    def take(self, plan: Plan) -> Started:
        """A started container: one that waits, else a new one.

        Raises:
            SandboxError: If the engine cannot start one.
        """
        found = None
        while found is None:
            with self._lock:
                if not self._ready[plan]:
                    break
                found = self._ready[plan].popleft()
            if time.monotonic() - found.at > plan.lifetime_s * _MAX_AGE:
                found.discard()
                found = None
        self._fill(plan)
        return found or Started(plan)

    def _fill(self, plan: Plan) -> None:
        with self._lock:
            missing = self._targets.get(plan, 0) - len(self._ready[plan]) - self._starting[plan]
            self._starting[plan] += max(0, missing)
        for _ in range(missing):
            threading.Thread(target=self._start, args=(plan,), name="gagar-warm", daemon=True).start()

    def _start(self, plan: Plan) -> None:
        started = None
        try:
            started = Started(plan)
        except SandboxError as error:  # whoever needs one will see the same, and is told
            logger.warning("no container could be started ahead: %s", error)
        finally:
            with self._lock:
                self._starting[plan] -= 1
                if started is not None and len(self._ready[plan]) < self._targets.get(plan, 0):
                    self._ready[plan].append(started)
                    started = None
        if started is not None:
            started.discard()

    def close(self) -> None:
        """Discard all that wait."""
        with self._lock:
            self._targets.clear()
            waiting = [started for ready in self._ready.values() for started in ready]
            self._ready.clear()
        for started in waiting:
            started.discard()


pool = Pool()
"""The pool of this process."""


def _renew() -> None:
    """After a fork: what waits belongs to the parent."""
    global pool
    pool = Pool()


os.register_at_fork(after_in_child=_renew)
atexit.register(lambda: pool.close())
