"""Workers on the nodes of a Ray cluster: `Fleet` starts them, looks after them, and tells when they come and go."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gagar_env.errors import GagarError, MissingDependencyError
from gagar_env.integrations.ray_rooms import Reaper
from gagar_env.integrations.ray_setup import one_line
from gagar_env.integrations.ray_worker import Ready, Worker

logger = logging.getLogger(__name__)
NAMESPACE = "gagar-env"
SLOTS = "gagar_sandboxes"
"""The custom resource that says how many sandboxes a node takes."""
_LOOK_S, _PING_S, _REAPER_S = 2.0, 5.0, 60.0
_SPARE = 6
"""Threads of a worker beyond those that play and grade: for signs of life and cuts."""


def import_ray() -> Any:
    """The library.

    Raises:
        MissingDependencyError: If it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError("this needs Ray: pip install 'gagar-env[ray]'") from error
    return ray


def connect(address: str | None) -> bool:
    """Make sure that this process is in a cluster; whether it was brought there just now.

    Raises:
        GagarError: If no cluster answers at that address.
    """
    ray = import_ray()
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise GagarError(f"no Ray cluster at {address or 'this machine'}: {one_line(error)}") from error
    return True


@dataclass(slots=True)
class Up:
    """A worker that was started."""

    name: str
    node: str
    handle: Any
    slots: int
    ready: Ready | None = None
    asked_at: float | None = None
    """When it was asked for a sign of life that has not come."""
    heard_at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """How workers are started.

    Attributes:
        slots: Sandboxes on each node; None takes the custom resource `gagar_sandboxes` where a node has it, and where
            none has it twice its processors.
        gradings: Groups graded on each node at one time.
        cpus: That Ray shall count as taken by a worker.
        silence_s: A worker that gives no sign of life for so long is killed and taken for dead.
        actor: Further options of the workers' actors.
    """

    slots: int | None
    gradings: int
    cpus: float
    silence_s: float
    actor: Mapping[str, Any]


class Fleet:
    """All workers of one `RayRollouts`. Everything but `post` is called in one thread.

    Args:
        setup: The pickled `Setup`.
        options: How workers are started.
        post: Has a function called in that thread, from any other.
        on_up: Told of a worker that can take work.
        on_down: Told of one that cannot any more, and why.
        on_fault: Told why workers cannot be made at all.
    """

    def __init__(
        self,
        setup: bytes,
        options: FleetOptions,
        *,
        post: Callable[[Callable[[], None]], None],
        on_up: Callable[[Up], None],
        on_down: Callable[[Up, str], None],
        on_fault: Callable[[str], None],
    ) -> None:
        self._ray = import_ray()
        self._setup = self._ray.put(setup)
        self._options = options
        self._post, self._on_up, self._on_down, self._on_fault = post, on_up, on_down, on_fault
        self._workers: dict[str, Up] = {}
        self._again_at: dict[str, tuple[float, float]] = {}
        self._reapers: dict[str, float] = {}
        self._made = 0
        self._look_at = 0.0

    @property
    def ready(self) -> list[Up]:
        """Those that can take work."""
        return [up for up in self._workers.values() if up.ready is not None]

    def tick(self, now: float) -> None:
        """Look at nodes and workers, if it is time."""
        if now < self._look_at:
            return
        self._look_at = now + _LOOK_S
        nodes = self._nodes()
        for up in list(self._workers.values()):
            if up.node not in nodes:
                self.down(up.name, "its node died")
            elif up.asked_at is not None and now - up.asked_at > self._options.silence_s:
                self.down(up.name, f"its worker gave no sign of life for {self._options.silence_s:g} seconds")
            elif up.ready is not None and up.asked_at is None and now - up.heard_at > _PING_S:
                up.asked_at = now
                when(up.handle.ping.remote(), partial(self._heard, up), self._post)
        taken = {up.node for up in self._workers.values()}
        for node, (slots, named) in nodes.items():
            if node not in taken and now >= self._again_at.get(node, (0.0, 0.0))[0]:
                self._start(node, slots, named)
            if now - self._reapers.get(node, -_REAPER_S) >= _REAPER_S:
                self._reapers[node] = now
                self._reaper(node)

    def down(self, name: str, reason: str) -> None:
        """A worker is of no use any more: kill what is left of it. It is told of once."""
        up = self._workers.pop(name, None)
        if up is None:
            return
        wait = min(60.0, 2 * self._again_at.get(up.node, (0.0, 0.5))[1])
        self._again_at[up.node] = time.monotonic() + wait, wait
        self._look_at = 0.0
        self._kill(up)
        if up.ready is not None:
            logger.warning("worker %s (process %d): %s", up.name, up.ready.pid, reason)
            self._on_down(up, reason)

    def close(self, patience_s: float = 15.0) -> None:
        """End all workers, and their sandboxes first."""
        workers, self._workers = list(self._workers.values()), {}
        asked = [up.handle.stop.remote() for up in workers if up.ready is not None]
        if asked:
            self._ray.wait(asked, num_returns=len(asked), timeout=patience_s)
        for up in workers:
            self._kill(up)

    def _nodes(self) -> dict[str, tuple[int, bool]]:
        """Nodes that are to be used -> their slots, and whether Ray is told of these."""
        alive = {node["NodeID"]: node["Resources"] for node in self._ray.nodes() if node["Alive"]}
        named = {node: int(has[SLOTS]) for node, has in alive.items() if has.get(SLOTS, 0) >= 1}
        most = self._options.slots
        if named:
            return {node: (slots if most is None else min(slots, most), True) for node, slots in named.items()}
        return {
            node: (most or max(1, 2 * int(has.get("CPU", 0))), False)
            for node, has in alive.items()
            if has.get("CPU", 0) >= self._options.cpus
        }

    def _start(self, node: str, slots: int, named: bool) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self._made += 1
        name = f"{node[:8]}-{self._made}"
        options: dict[str, Any] = {
            "num_cpus": self._options.cpus,
            "resources": {SLOTS: slots} if named else {},
            "max_concurrency": slots + self._options.gradings + _SPARE,
            "max_restarts": 0,
            "max_task_retries": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False),
            **self._options.actor,
        }
        handle = self._ray.remote(Worker).options(**options).remote(self._setup, slots)
        up = self._workers[name] = Up(name, node, handle, slots)
        when(handle.ready.remote(), partial(self._came, up), self._post)

    def _came(self, up: Up, answer: Ready | None, error: BaseException | None) -> None:
        if self._workers.get(up.name) is not up:
            return
        if answer is None or error is not None:
            fault = one_line(error or GagarError("no answer"))
            logger.warning("worker %s does not start: %s", up.name, fault)
            self.down(up.name, fault)
        elif answer.fault:
            self._on_fault(answer.fault)
        else:
            up.ready, up.heard_at = answer, time.monotonic()
            self._on_up(up)

    def _heard(self, up: Up, _: bool | None, error: BaseException | None) -> None:
        up.asked_at, up.heard_at = None, time.monotonic()
        if error is not None:
            self.down(up.name, f"its worker died: {one_line(error, most=200)}")
        else:
            self._again_at.pop(up.node, None)

    def _reaper(self, node: str) -> None:
        """The reaper of a node: one for all runs of the cluster, whatever becomes of this process."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        try:
            made = self._ray.remote(Reaper).options(
                name=f"gagar-reaper-{node}",
                namespace=NAMESPACE,
                lifetime="detached",
                get_if_exists=True,
                num_cpus=0,
                max_restarts=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            )
            made.remote()
        except Exception as error:
            logger.warning("no reaper on node %s: %s", node[:8], one_line(error))

    def _kill(self, up: Up) -> None:
        try:
            self._ray.kill(up.handle, no_restart=True)
        except Exception as error:
            logger.debug("worker %s: %s", up.name, one_line(error))


def when(
    reference: Any, then: Callable[[Any, BaseException | None], None], post: Callable[[Callable[[], None]], None]
) -> None:
    """Have `then` called with the value of a reference, or with what was raised for it, in the thread of `post`."""

    def done(future: Any) -> None:
        error = future.exception()
        value = None if error is not None else future.result()
        post(lambda: then(value, error))

    reference.future().add_done_callback(done)
