"""One running episode: its sandbox, its clock, and the way from an action to the record."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from gagar_env.actions import ActionFormat, Answer, BadAction, SandboxAction, Submit
from gagar_env.changes import Capture
from gagar_env.envs.observation import clean_text, first_observation, show_result
from gagar_env.envs.recorder import Recorder, Work
from gagar_env.envs.slots import Slots, slots_by_processor
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport
from gagar_env.errors import PatchError, SandboxClosedError
from gagar_env.patch import make_patch
from gagar_env.provision import provision
from gagar_env.sandbox import keep_warm, open_sandbox
from gagar_env.sandbox.base import Sandbox
from gagar_env.sandbox.stoppable import Stoppable
from gagar_env.tasks.task import EpisodeLimits, Task
from gagar_env.verify import Verifier

logger = logging.getLogger(__name__)

MAX_ACTION_CHARS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for every episode of one environment."""

    action_format: ActionFormat
    verifier: Verifier | None
    """None: nothing is verified."""
    verify_on_truncation: bool
    warm: int = 0
    """Sandboxes to keep started ahead."""
    slots: Slots | None = None
    """Of verifications; None: those of all that have none, one for each processor."""
    rooms: Slots | None = None
    """Of sandboxes; None sets no limit."""


class Attempt:
    """One episode from the opening of its sandbox to its record.

    `open`, `act` and `conclude` are for one thread; the last two raise for no fault of the
    infrastructure. `stop` may come from any thread at any time.

    Attributes:
        observation: What the agent reads now.
        exit_code: Of the last action's command; -1 without one.
        timed_out: Whether that command was killed at its limit.
        judging: The work is captured and the sandbox closed; the tests have the word, or wait for a slot.
        queued: It waits for a room, and has no sandbox yet.
        began: When it last did not, in monotonic seconds.
    """

    def __init__(self, task: Task, limits: EpisodeLimits, rules: Rules, recorder: Recorder) -> None:
        self.task = task
        self.recorder = recorder
        self.observation = ""
        self.exit_code = -1
        self.timed_out = False
        self.judging = self.queued = False
        self.began = time.monotonic()
        self._limits = limits
        self._rules = rules
        self._slots = rules.slots or slots_by_processor()
        self._verification = Stoppable()
        self._room = contextlib.ExitStack()
        self._base_tree = Path()
        self._ends_at = 0.0
        self._sandbox: Sandbox | None = None
        self._lock = threading.Lock()

    @property
    def episode(self) -> Episode | None:
        """The record; None while it runs."""
        return self.recorder.episode

    def open(self, kind: str) -> None:
        """Open the sandbox.

        Raises:
            TaskError: If the task is broken.
        """
        started = time.monotonic()
        ready = provision(self.task, sandbox=kind)
        self._base_tree = ready.base.tree
        if self._rules.warm:
            keep_warm(kind, ready.spec, self._rules.warm)
        started += self._take_room()
        try:
            sandbox = None if self.episode is not None else open_sandbox(kind, ready.spec)
        except BaseException:
            self._close_sandbox()  # the room
            raise
        with self._lock:
            self._sandbox = sandbox
        if sandbox is None or self.episode is not None:  # stopped, maybe before there was a sandbox to close
            self._close_sandbox()
            return
        self.observation = first_observation(
            self.task,
            instructions=self._rules.action_format.instructions(),
            workdir=sandbox.workdir,
            limits=self._limits,
        )
        now = time.monotonic()
        self._ends_at = now + self._limits.episode_s
        image = ready.spec.image
        self.recorder.opened(
            observation=self.observation,
            sandbox=sandbox.kind,
            image=(image.digest or image.id) if image else "",
            reset_s=now - started,
        )

    def act(self, action: object) -> None:
        """Run one action; ends the episode where it submits or reaches a limit."""
        try:
            self._act(action)
        except Exception as error:
            self.broken("step", error)

    def conclude(self, status: EpisodeStatus, reason: str = "") -> None:
        """Capture and verify the work, and end the episode."""
        try:
            self._conclude(status, reason)
        except Exception as error:
            self.broken("end", error)

    def broken(self, where: str, error: Exception) -> None:
        """End it because the infrastructure failed (or because `stop` closed the sandbox)."""
        text = f"{where}: {type(error).__name__}: {error}"
        if self.episode is None:
            logger.warning("episode of %s: %s", self.task.id, text, exc_info=error)
        self.stop(EpisodeStatus.ERROR, text)

    def stop(self, status: EpisodeStatus, reason: str) -> Episode:
        """End it with nothing captured, unless it is over already. A running command is killed."""
        running = self.episode is None
        episode = self.recorder.finish(status, error=reason)
        if running:
            self.observation = f"[the episode is over: {episode.status.value}: {episode.error}]"
        self._close_sandbox()
        if running and self.queued and self._rules.rooms is not None:
            self._rules.rooms.wake()
        if running and self.judging:
            self._slots.wake()
            self._verification.stop()
        return episode

    def _act(self, action: object) -> None:
        answer = action if isinstance(action, Answer) else Answer()
        if answer.ends:
            self.observation = f"[the episode is over: {answer.ends}]"
            self._conclude(EpisodeStatus.POLICY_LIMIT, answer.ends)
            return
        started = time.monotonic()
        left = self._ends_at - started
        self.exit_code, self.timed_out = -1, False
        status: EpisodeStatus | None = None
        if left <= 0:
            observation, status = "The action was not run.", EpisodeStatus.TIME_LIMIT
        else:
            parsed = self._parse(action)
            if isinstance(parsed, Submit):
                observation, status = "Submitted.", EpisodeStatus.SUBMITTED
            elif isinstance(parsed, SandboxAction):
                observation = self._perform(parsed, min(self._limits.command_s, left))
            else:
                observation = clean_text(getattr(parsed, "problem", "This is no action."))
        now = time.monotonic()
        status = status or self._limit_reached(now)
        if status is EpisodeStatus.TIME_LIMIT:
            observation += f"\n[the episode is over: {self._limits.episode_s:g} seconds are used]"
        elif status is EpisodeStatus.TURN_LIMIT:
            observation += f"\n[the episode is over: {self._limits.turns} answers are used]"
        self.observation = observation
        self.recorder.turn(
            clean_text(str(action)),
            observation,
            exit_code=None if self.exit_code < 0 else self.exit_code,
            timed_out=self.timed_out,
            seconds=now - started,
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            sampled=answer.sampled,
        )
        if status is not None:
            self._conclude(status)

    def _limit_reached(self, now: float) -> EpisodeStatus | None:
        if now >= self._ends_at:
            return EpisodeStatus.TIME_LIMIT
        if self.recorder.turns + 1 >= self._limits.turns:
            return EpisodeStatus.TURN_LIMIT
        return None

    def _parse(self, action: object) -> object:
        if not isinstance(action, str):
            return BadAction(problem=f"An action is a text, not {type(action).__name__}.")
        if len(action) > MAX_ACTION_CHARS:
            size = f"The action has {len(action)} characters"
            return BadAction(problem=f"{size}; it was not run, the limit is {MAX_ACTION_CHARS}.")
        return self._rules.action_format.parse(clean_text(str(action)))

    def _perform(self, action: SandboxAction, timeout_s: float) -> str:
        result = action.perform(self._opened(), timeout_s=timeout_s, max_output_bytes=self._limits.output_bytes)
        self.exit_code, self.timed_out = result.exit_code, result.timed_out
        return show_result(result, timeout_s=timeout_s)

    def _conclude(self, status: EpisodeStatus, reason: str = "") -> None:
        work = self._work(verify=self._rules.verify_on_truncation or not status.is_truncated)
        if work.report is not None and work.report.outcome is Outcome.MASKED:
            self.recorder.finish(status, work=work, error=work.report.reason)
        elif work.report is not None and not work.report.valid:
            error = f"verification: {work.report.reason}"
            self.recorder.finish(EpisodeStatus.ERROR, work=work, error=error)
            self.observation = "[the episode is over: error: the verification did not work]"
        else:
            self.recorder.finish(status, work=work, error=reason)
        self._close_sandbox()

    def _work(self, *, verify: bool) -> Work:
        started = time.monotonic()
        report: TestReport | None = None
        capture = Capture(changes={})
        try:
            capture = self._opened().capture()
            patch = make_patch(self._base_tree, capture.changes)
        except PatchError as error:  # what the agent left is no patch: its own doing
            report, patch = TestReport(outcome=Outcome.FAILED, reason=f"patch refused: {error}"), b""
        capture_s = time.monotonic() - started
        self._close_sandbox()  # what it left running must not meet the tests
        if report is None and len(patch) > (limit := self._limits.patch_bytes):
            reason = f"patch refused: it has {len(patch)} bytes, the limit is {limit}"
            report, patch = TestReport(outcome=Outcome.FAILED, reason=reason), b""
        elif report is None and verify and self._rules.verifier is not None:
            self.judging = True
            with self._slots.taken(given_up=lambda: self.episode is not None) as mine:
                if mine:
                    with self._verification:
                        report = self._rules.verifier.verify(self.task, patch, changes=capture.changes)
        return Work(
            patch=patch,
            dropped=capture.dropped,
            report=report,
            capture_s=capture_s,
            verify_s=time.monotonic() - started - capture_s,
        )

    def _opened(self) -> Sandbox:
        if (sandbox := self._sandbox) is None:
            raise SandboxClosedError("the sandbox of this episode is closed")
        return sandbox

    def _take_room(self) -> float:
        """Wait for a room, where they are bounded, until `stop`; how many seconds that took."""
        if (rooms := self._rules.rooms) is None:
            return 0.0
        since, room = time.monotonic(), contextlib.ExitStack()
        self.queued = True
        room.enter_context(rooms.taken(given_up=lambda: self.episode is not None))
        self.began = time.monotonic()
        self.queued = False
        with self._lock:
            self._room = room
        return self.began - since

    def _close_sandbox(self) -> None:
        with self._lock:
            sandbox, self._sandbox = self._sandbox, None
            room, self._room = self._room, contextlib.ExitStack()
        if sandbox is not None:
            try:
                sandbox.close()
            except Exception as error:
                logger.warning("sandbox of %s does not close: %s", self.task.id, error)
        room.close()
