"""`GroupDriver`: runs the groups of a vector environment, each member in a thread of its own."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gagar_env.acting import Policy, PolicyCall
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.envs.member import Member
from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.tasks.task import Task

logger = logging.getLogger(__name__)

OnStep = Callable[[int, Mapping[str, Any]], None]
"""Told the number of a member and its `info`, after its reset and each step, from its own thread.

What it raises is logged, and the episode goes on.
"""


@dataclass
class _Running:
    """A group at work. `left` are the members that nobody has seen end, by their place in the group."""

    members: list[Member]
    ends_at: float | None
    left: set[int]
    threads: list[threading.Thread] = field(default_factory=list)
    over: bool = False


class _Ended(NamedTuple):
    group: int
    running: _Running
    place: int
    error: BaseException | None


class GroupDriver:
    """Runs groups of a `GroupVectorEnv`, each member in a thread of its own and at its own pace.

    Threads are daemons: a policy that never comes back holds up neither its group beyond the deadline
    nor the end of the process. All methods but `interrupt` are for one thread.

    Args:
        env: The environment; each of its groups runs one group at a time.
        policy: Who acts.
        deadline_s: Seconds for a member to act, from the start of its group, its task being prepared, or where it
            waited for a sandbox, from then. One that still acts then is cut. One that has ended acting is no straggler:
            it is verified, and waited for, however long it waits for its turn; verifications have limits of their own.
        on_step: Told of every step.
        on_episode: Told of each member's place in its group and its episode as soon as it has ended, in `wait`.
    """

    def __init__(
        self,
        env: GroupVectorEnv,
        policy: Policy,
        *,
        deadline_s: float | None = None,
        on_step: OnStep | None = None,
        on_episode: Callable[[int, Episode], None] | None = None,
    ) -> None:
        self._env = env
        self._policy = policy
        self._deadline_s = deadline_s
        self._on_step = on_step
        self._on_episode = on_episode
        self._running: dict[int, _Running] = {}
        self._interrupted = False
        self._ended: queue.SimpleQueue[_Ended | None] = queue.SimpleQueue()

    @property
    def running(self) -> int:
        """Number of groups at work."""
        return len(self._running)

    def start(self, group: int, *, task: Task, seed: int, group_id: str | None = None) -> None:
        """Start an episode in each member of a group that is not at work.

        Raises:
            TaskError: If the task is broken.
            SandboxUnavailableError: If this kind of sandbox does not work on this machine at all.
            ValueError: If the seed is negative: Gymnasium takes none.
        """
        if seed < 0:
            raise ValueError(f"a seed must be 0 or more, got {seed}")
        self._env.start_group(group, task=task, group_id=group_id)
        started = time.monotonic()  # an environment that has to be built first takes nothing from the group
        numbers = self._env.members_of(group)
        running = _Running(
            members=[self._env.fresh_member(i) for i in numbers],
            ends_at=None if self._deadline_s is None else started + self._deadline_s,
            left=set(range(len(numbers))),
        )
        self._running[group] = running
        for place, number in enumerate(numbers):
            thread = threading.Thread(
                target=self._drive,
                args=(group, running, place, number, seed + place),
                name=f"gagar-member-{number}",
                daemon=True,
            )
            thread.start()
            running.threads.append(thread)

    def wait(self) -> tuple[int, list[Episode]]:
        """The next group that is complete, with its episodes in the order of members; cut ones after `interrupt`."""
        while not self._interrupted:
            event = self._next()
            if event is not None and event.error is not None:
                raise event.error
            if event is not None:
                self._member_ended(event.running, event.place)
            else:
                self._cut_stragglers()
            for group, running in self._running.items():
                if not running.left:
                    return group, self._finish(group, patience_s=0.0)
        group = next(iter(self._running))
        return group, self._finish(group, reason="stopped")

    def interrupt(self) -> None:
        """Make `wait` cut what is at work and return at once, now and later; from any thread."""
        self._interrupted = True
        self._ended.put(None)

    def stop(self) -> None:
        """Cut every group that is at work and give its threads a moment to end."""
        for group in list(self._running):
            self._finish(group, reason="stopped")

    def _next(self) -> _Ended | None:
        """The next end of a member; None at the next deadline of a group, or when interrupted."""
        ends = [run.ends_at for run in self._running.values() if run.ends_at is not None]
        timeout_s = min(max(0.0, min(ends) - time.monotonic()), threading.TIMEOUT_MAX) if ends else None
        try:
            return self._ended.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def _member_ended(self, running: _Running, place: int) -> None:
        if running.over or place not in running.left:  # a straggler that came back after it was cut
            return
        running.left.discard(place)
        episode = running.members[place].stop(EpisodeStatus.CUT, "deadline of the group")  # it is over: its record
        if self._on_episode is not None:
            self._on_episode(place, episode)

    def _cut_stragglers(self) -> None:
        now = time.monotonic()
        for running in self._running.values():
            if running.ends_at is None or self._deadline_s is None or running.ends_at > now:
                continue
            started, later = running.ends_at - self._deadline_s, []
            for place in sorted(running.left):
                member = running.members[place]
                began = member.began(started)
                if member.judging:
                    continue
                if began is None or began + self._deadline_s > now:
                    later.append((now if began is None else began) + self._deadline_s)
                else:
                    self._member_ended(running, place)
            running.ends_at = min(later, default=None)

    def _finish(self, group: int, reason: str = "", patience_s: float = 1.0) -> list[Episode]:
        running = self._running.pop(group)
        episodes = [member.stop(EpisodeStatus.CUT, reason) for member in running.members]
        running.over = True
        patience = time.monotonic() + patience_s
        for thread in running.threads if patience_s else ():
            thread.join(max(0.0, patience - time.monotonic()))
        return episodes

    def _drive(self, group: int, running: _Running, place: int, number: int, seed: int) -> None:
        error: BaseException | None = None
        member = running.members[place]
        try:
            self._play(running, number, member, seed)
        except Exception as fault:
            member.stop(EpisodeStatus.ERROR, f"{type(fault).__name__}: {fault}")
        except BaseException as interrupt:
            error = interrupt
        self._ended.put(_Ended(group, running, place, error))

    def _play(self, running: _Running, number: int, member: Member, seed: int) -> None:
        options = self._env.member_options(number, policy=self._policy.name)
        last = member.reset(seed=seed, options=options)
        base: Any = member.env.unwrapped
        act = PolicyCall(self._policy, options["task"], base.action_format, seed)
        while True:
            if not running.over:
                self._tell(number, last.info)
            if member.done:
                break
            action, fault = act(last.observation)
            if action is None:
                member.stop(EpisodeStatus.ERROR, fault)
                last = member.last
            else:
                last = member.step(action)
        if member.episode is None:  # ended by a wrapper with a limit of its own
            base.end(EpisodeStatus.TURN_LIMIT)

    def _tell(self, number: int, info: Mapping[str, Any]) -> None:
        if self._on_step is None:
            return
        try:
            self._on_step(number, info)
        except Exception as error:  # a display that breaks is no fault of the member
            logger.warning("on_step raised at member %d, which goes on: %s: %s", number, type(error).__name__, error)
