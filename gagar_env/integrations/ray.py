"""Ray: groups run on the nodes of a cluster, with the same jobs and the same results as on one machine.

    with RayRollouts(policy, grader, group_size=8) as rollouts:
        for batch in rollouts.run(GroupJob(n, task, seed=group_seed(0, n)) for n in range(1000)):
            ...

One worker process on each node opens the sandboxes there, so that nothing of a sandbox crosses the network. Which node
gets which episode is decided by `gagar_env.scheduling`. This needs `pip install 'gagar-env[ray]'` on every node.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any

from gagar_env.acting import Policy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.errors import GagarError
from gagar_env.flag_policy import FlagPolicy
from gagar_env.grading import Grader
from gagar_env.group_checks import check_grading
from gagar_env.group_engine import OnEpisode
from gagar_env.integrations.ray_cluster import Fleet, FleetOptions, Up, connect, import_ray
from gagar_env.integrations.ray_policy import RemotePolicy as RemotePolicy
from gagar_env.integrations.ray_policy import serve_policy as serve_policy
from gagar_env.integrations.ray_run import Done, Run
from gagar_env.integrations.ray_setup import Setup, one_line, pickled
from gagar_env.jobs import FailedJob as FailedJob
from gagar_env.jobs import GroupBatch as GroupBatch
from gagar_env.jobs import GroupJob as GroupJob
from gagar_env.scheduling import Bounds

logger = logging.getLogger(__name__)
_TICK_S = 0.5


class RayRollouts:
    """Runs jobs on a Ray cluster: as `Pipeline`, with what a cluster needs.

    A job gives what it gives on one machine: each member has its seed wherever it runs. A worker or node that dies
    costs its episodes a new attempt elsewhere, `retries` times; then they are masked, with status `error` and the
    reason. Where Ray is connected already (by verl, SkyRL, ...) that connection is used and left alone; else one is
    made, and ended by `close`.

    Args:
        policy: Who acts; it is pickled and sent to each node. A `RemotePolicy` acts through one process for all.
        grader: Ranks the passing members, on any node; pickled too. None leaves the plain advantages.
        policy_factory: In place of `policy`: makes it on each node, once.
        grader_factory: In place of `grader`, the same.
        group_size: Members of each group.
        groups: Groups that act at one time; None for twice as many as the slots hold, because the last members of a
            group leave the slots of the others free.
        verifications: Verifications at one time on each node; by default one for each processor.
        gradings: Groups that are graded at one time on each node.
        ahead: Groups beyond `groups` that may wait, be graded, or be graded and not yet handed out; by default as many
            as all nodes grade at one time.
        deadline_s: Seconds for a group to act. A lost member that is run again has what is left of them.
        flag_policy: What a flag does to a pass.
        on_episode: Called with a job and an episode as soon as that is verified, from one thread of this process. What
            it raises ends the run.
        on_failed: Called with a job whose task cannot be run, in the thread that iterates. Without, it is logged.
        grading: Further arguments of `grade_group`.
        slots: Sandboxes of agents on each node at one time. By default what a node's custom resource
            `gagar_sandboxes` says; where no node has it, twice its processors.
        cpus: Processors that Ray shall count as taken by a worker.
        retries: How often what was lost with a worker is tried again.
        silence_s: A worker that gives no sign of life for so long is killed and taken for dead.
        patience_s: How long to wait for the first node, or the next one when all are gone.
        window: See `gagar_env.scheduling.Bounds`.
        address: Of the cluster, where Ray is not connected; None takes what `ray.init()` finds.
        worker_options: Further options of the workers' actors, such as `runtime_env`.
        env_kwargs: Arguments of `RepoEditEnv`: `sandbox`, `action_format`, limits, ...

    Raises:
        MissingDependencyError: If Ray is missing.
        TypeError: If there is not one policy, or something of it cannot be sent to other processes.
        ValueError: If a number or a setting is out of range.
        GagarError: If no cluster answers.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        grader: Grader | None = None,
        *,
        policy_factory: Callable[[], Policy] | None = None,
        grader_factory: Callable[[], Grader] | None = None,
        group_size: int = 8,
        groups: int | None = None,
        verifications: int | None = None,
        gradings: int = 2,
        ahead: int | None = None,
        deadline_s: float | None = None,
        flag_policy: FlagPolicy = "flag",
        on_episode: OnEpisode | None = None,
        on_failed: Callable[[FailedJob], None] | None = None,
        grading: Mapping[str, Any] | None = None,
        slots: int | None = None,
        cpus: float = 1.0,
        retries: int = 2,
        silence_s: float = 60.0,
        patience_s: float = 600.0,
        window: float = 2.0,
        address: str | None = None,
        worker_options: Mapping[str, Any] | None = None,
        **env_kwargs: Any,
    ) -> None:
        import_ray()
        if gradings < 1 or (slots is not None and slots < 1) or not silence_s > 0 or not cpus >= 0:
            raise ValueError(
                "gradings and slots must be 1 or more, silence_s above 0 and cpus 0 or more, "
                f"got {gradings}, {slots}, {silence_s} and {cpus}"
            )
        self._bounds = Bounds(
            group_size=group_size,
            groups=groups,
            ahead=ahead,
            window=window,
            retries=retries,
            deadline_s=deadline_s,
            patience_s=patience_s,
        )
        self._grading = dict(grading or {})
        check_grading(self._grading)
        tried = GroupVectorEnv(group_size=1, verifications=verifications, flag_policy=flag_policy, **env_kwargs)
        tried.close()
        setup = pickled(
            Setup(
                policy=policy,
                policy_factory=policy_factory,
                grader=grader,
                grader_factory=grader_factory,
                verifications=verifications,
                flag_policy=flag_policy,
                grading=self._grading,
                env_kwargs=env_kwargs,
            )
        )
        self._gradings, self._on_episode, self._on_failed = gradings, on_episode, on_failed
        self._ranks = grader is not None or grader_factory is not None
        options = FleetOptions(
            slots=slots, gradings=gradings, cpus=cpus, silence_s=silence_s, actor=dict(worker_options or {})
        )
        self._ours = connect(address)
        self._lock = threading.RLock()
        self._posted: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._run: Run | None = None
        self._fault = ""
        self._closed = False
        told: Any = {"on_up": self._up, "on_down": self._down, "on_fault": self._broken}
        self._fleet = Fleet(setup, options, post=self._posted.put, **told)
        self._thread = threading.Thread(target=self._work, name="gagar-ray", daemon=True)
        self._thread.start()

    @property
    def workers(self) -> dict[str, int]:
        """Workers that can take work -> their slots."""
        with self._lock:
            return {up.name: up.slots for up in self._fleet.ready}

    def run(self, jobs: Iterable[GroupJob]) -> Iterator[GroupBatch]:
        """Run jobs, and yield each group as soon as it is graded: see `Pipeline.run`.

        Raises:
            GagarError: If another `run` is under way, this is closed, workers cannot be made, or no node had room for
                `patience_s`. Without `on_failed`, the first error of a run in which no job could be run.
        """
        done: queue.SimpleQueue[Done | None] = queue.SimpleQueue()
        with self._lock:
            if self._closed or self._run is not None:
                raise GagarError("these rollouts are closed" if self._closed else "a run is under way: one at a time")
            if self._fault:
                raise GagarError(self._fault)
            run = self._run = Run(
                self._bounds,
                grading=self._grading,
                ranks=self._ranks,
                on_episode=self._on_episode,
                post=self._posted.put,
                down=self._fleet.down,
                done=done,
            )
            for up in self._fleet.ready:
                run.up(up, self._gradings)
        yield from self._iterate(run, done, iter(jobs))

    def _iterate(
        self, run: Run, done: queue.SimpleQueue[Done | None], jobs: Iterator[GroupJob]
    ) -> Iterator[GroupBatch]:
        first: FailedJob | None = None
        any_batch, more, left = False, True, 0
        try:
            while True:
                while more and self._has_room(run):
                    job = next(jobs, None)
                    more = job is not None
                    if job is not None:
                        left += 1
                        with self._lock:
                            run.add(job)
                        self._posted.put(None)
                if not left and not more:
                    break
                over = done.get()
                if over is None:
                    continue
                if isinstance(over.what, BaseException):
                    raise over.what
                left -= 1
                with self._lock:
                    run.scheduler.taken(over.number)
                if isinstance(over.what, FailedJob):
                    first = first or over.what
                    self._failed(over.what)
                else:
                    any_batch = True
                    yield over.what
        finally:
            with self._lock:
                run.end()
                self._run = None
        if first is not None and not any_batch and self._on_failed is None:
            raise first.error

    def close(self) -> None:
        """Cut what runs, close every sandbox and end the workers. May be called again, and from any thread."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._run is not None:
                self._run.fail(GagarError("these rollouts were closed"))
        self._posted.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(30.0)
        self._fleet.close()
        if self._ours:
            import_ray().shutdown()

    def __enter__(self) -> RayRollouts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _has_room(self, run: Run) -> bool:
        with self._lock:
            return not run.over and run.scheduler.has_room

    def _work(self) -> None:
        """The thread that looks after workers and the run."""
        while not self._closed:
            posted: list[Callable[[], None] | None] = []
            with contextlib.suppress(queue.Empty):
                posted.append(self._posted.get(timeout=_TICK_S))
                while True:
                    posted.append(self._posted.get_nowait())
            with self._lock:
                try:
                    for told in posted:
                        if told is not None:
                            told()
                    now = time.monotonic()
                    if not self._closed:
                        self._fleet.tick(now)
                    if self._run is not None:
                        self._run.step(now)
                except BaseException as error:
                    if self._run is None:
                        logger.warning("Ray: %s", one_line(error))
                    else:
                        self._run.fail(error)

    def _up(self, up: Up) -> None:
        if self._run is not None:
            self._run.up(up, self._gradings)

    def _down(self, up: Up, reason: str) -> None:
        if self._run is not None:
            self._run.down(up, reason)

    def _broken(self, fault: str) -> None:
        self._fault = f"workers cannot be made: {fault}"
        if self._run is not None:
            self._run.fail(GagarError(self._fault))

    def _failed(self, failed: FailedJob) -> None:
        if self._on_failed is not None:
            self._on_failed(failed)
            return
        logger.warning("job %d: task %s cannot be run: %s", failed.job.number, failed.job.task.id, failed.error)
