"""`Worker`: runs and grades episodes on one node, in a process of its own. It raises nothing: it answers."""

from __future__ import annotations

import logging
import os
import pickle
import queue
import threading
from typing import Any, Literal, NamedTuple

from gagar_env.acting import check_policy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.episode import Episode
from gagar_env.errors import GagarError, SandboxUnavailableError, TaskError
from gagar_env.flag_policy import judge_episode
from gagar_env.grading import check_grader
from gagar_env.grading_calls import GradingCalls
from gagar_env.group_driver import GroupDriver
from gagar_env.group_engine import grade_job
from gagar_env.group_result import GroupResult
from gagar_env.integrations.ray_rooms import Room
from gagar_env.integrations.ray_setup import Setup, one_line
from gagar_env.jobs import GroupJob

logger = logging.getLogger(__name__)
_GET_S = 120.0
"""For fetching an episode from where it was made. One that takes longer is taken for lost."""


class Played(NamedTuple):
    """What became of an attempt: an episode beside it, or why there is none.

    `unfit`: not on this node. `broken`: the task. `fault`: the run cannot go on.
    """

    kind: Literal["episode", "unfit", "broken", "fault"]
    error: Exception | None = None


class Graded(NamedTuple):
    """What became of a grading: a result with its episodes, or the members whose episodes are gone, or a fault."""

    result: GroupResult | None = None
    episodes: tuple[Episode, ...] = ()
    gone: tuple[int, ...] = ()
    error: Exception | None = None


class Ready(NamedTuple):
    """Sent once: who acts here, and in which process; or why this worker is of no use."""

    policy: str
    pid: int
    fault: str = ""


def portable(error: BaseException) -> Exception:
    """The exception itself if it comes through pickling as it is, else a `GagarError` with its text."""
    try:
        copy = pickle.loads(pickle.dumps(error))
        if isinstance(error, Exception) and type(copy) is type(error) and str(copy) == str(error):
            return error
    except Exception as fault:
        logger.debug("an exception does not pickle: %s", one_line(fault))
    return GagarError(one_line(error))


class Worker:
    """One place of the scheduler. Its methods are called from many threads.

    Args:
        setup: A pickled `Setup`.
        slots: Episodes at one time.
    """

    def __init__(self, setup: bytes, slots: int) -> None:
        self._room = Room()
        self._lock = threading.Lock()
        self._drivers: dict[tuple[Any, ...], GroupDriver] = {}
        self._cut: set[tuple[Any, ...]] = set()
        self._runs_over: set[str] = set()
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._fault = ""
        try:
            self._make(setup, slots)
        except Exception as error:
            self._fault = one_line(error)

    def _make(self, setup: bytes, slots: int) -> None:
        made: Setup = pickle.loads(setup)
        policy = check_policy(made.policy if made.policy_factory is None else made.policy_factory())
        grader = made.grader if made.grader_factory is None else made.grader_factory()
        check_grader(grader)
        self._setup, self._policy, self._grader = made, policy, grader
        self._calls = None if grader is None else GradingCalls(grader)
        self._env = GroupVectorEnv(
            num_groups=slots,
            group_size=1,
            verifications=made.verifications,
            flag_policy=made.flag_policy,
            **made.env_kwargs,
        )
        for number in range(slots):
            self._free.put(number)

    def ready(self) -> Ready:
        """Whether this worker can take work."""
        return Ready("" if self._fault else self._policy.name, os.getpid(), self._fault)

    def ping(self) -> bool:
        """A sign of life."""
        return True

    def play(
        self, key: tuple[Any, ...], job: GroupJob, group_id: str, member: int, deadline_s: float | None
    ) -> tuple[Played, Episode | None]:
        """Run one member of a job. `key` names the attempt; it begins with the run."""
        number = self._free.get()
        try:
            return Played("episode"), self._play(number, key, job, group_id, member, deadline_s)
        except TaskError as error:
            return Played("broken", portable(error)), None
        except SandboxUnavailableError as error:
            return Played("unfit", portable(error)), None
        except (OSError, GagarError) as error:
            return Played("unfit", portable(error)), None
        except Exception as error:
            return Played("broken", portable(error)), None
        except BaseException as error:  # an interrupt inside of the policy: it ends a run on one machine as well
            return Played("fault", portable(error)), None
        finally:
            self._free.put(number)

    def _play(
        self, number: int, key: tuple[Any, ...], job: GroupJob, group_id: str, member: int, deadline_s: float | None
    ) -> Episode:
        self._env.prepare(job.task)
        driver = GroupDriver(self._env, self._policy, deadline_s=deadline_s)
        with self._lock:
            if key in self._cut or key[0] in self._runs_over:
                raise GagarError("nobody waits for this episode any more")
            self._drivers[key] = driver
        try:
            driver.start(number, task=job.task, seed=job.seed + member, group_id=group_id)
            _, episodes = driver.wait()
        finally:
            driver.stop()
            with self._lock:
                del self._drivers[key]
                self._cut.discard(key)
        return judge_episode(episodes[0], self._setup.flag_policy)

    def cut(self, key: tuple[Any, ...]) -> None:
        """Nobody wants this attempt any more."""
        with self._lock:
            self._cut.add(key)
            driver = self._drivers.get(key)
        if driver is not None:
            driver.interrupt()

    def end_run(self, run: str) -> None:
        """Nobody wants anything of this run any more."""
        with self._lock:
            self._runs_over.add(run)
            drivers = [driver for key, driver in self._drivers.items() if key[0] == run]
            calls, self._calls = self._calls, None if self._grader is None else GradingCalls(self._grader)
        for driver in drivers:
            driver.interrupt()
        if calls is not None:
            calls.stop()

    def grade(self, job: GroupJob, members: list[Any]) -> Graded:
        """Fetch the episodes of a group and grade them. `members` are episodes, or references to them."""
        import ray

        episodes: list[Episode] = []
        gone: list[int] = []
        for number, member in enumerate(members):
            if isinstance(member, Episode):
                episodes.append(member)
                continue
            try:
                episodes.append(ray.get(member, timeout=_GET_S))
            except Exception as error:
                logger.warning("member %d of job %d cannot be fetched: %s", number, job.number, one_line(error))
                gone.append(number)
        if gone:
            return Graded(gone=tuple(gone))
        try:
            batch = grade_job(job, tuple(episodes), self._calls, self._setup.grading)
            return Graded(batch.result, batch.episodes)
        except Exception as error:
            return Graded(error=portable(error))

    def stop(self) -> None:
        """Cut everything and close every sandbox."""
        with self._lock:
            drivers = list(self._drivers.values())
        for driver in drivers:
            driver.interrupt()
        if not self._fault:
            if self._calls is not None:
                self._calls.stop()
            self._env.close()
        self._room.close()
