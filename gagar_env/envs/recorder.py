"""Keeps the books of one running episode and closes them once."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass

from gagar_env.changes import DroppedPath
from gagar_env.envs.observation import clean_text
from gagar_env.episode import Dropped, Episode, EpisodeStatus, TestReport, Timings, Turn
from gagar_env.trajectory import SampledTokens, TokenRecorder

MAX_RECORDED_CHARS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an episode left behind: its patch and the report on it."""

    patch: bytes = b""
    dropped: tuple[DroppedPath, ...] = ()
    report: TestReport | None = None
    capture_s: float = 0.0
    verify_s: float = 0.0


class Recorder:
    """The turns of one episode, and in the end its `Episode`.

    Any thread may end it, the first one wins, and what comes later is not recorded.
    """

    def __init__(self, *, task_id: str, group_id: str, seed: int | None, policy: str, sandbox: str) -> None:
        self.task_id = task_id
        self.group_id = group_id
        self.first_observation = ""
        self._seed = seed
        self._policy = policy
        self._sandbox = sandbox
        self._image = ""
        self._reset_s = 0.0
        self._turns: list[Turn] = []
        self._tokens = TokenRecorder()
        self._episode: Episode | None = None
        self._lock = threading.Lock()

    @property
    def episode(self) -> Episode | None:
        """The record; None while the episode runs."""
        return self._episode

    @property
    def turns(self) -> int:
        """Number of turns so far."""
        return len(self._turns)

    def opened(self, *, observation: str, sandbox: str, image: str, reset_s: float) -> None:
        """The sandbox stands and the agent has read its task."""
        with self._lock:
            self.first_observation = observation
            self._sandbox = sandbox
            self._image = image
            self._reset_s = reset_s

    def turn(
        self,
        action: str,
        observation: str,
        *,
        exit_code: int | None = None,
        timed_out: bool = False,
        seconds: float = 0.0,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        sampled: SampledTokens | None = None,
    ) -> None:
        """Record one action and its observation.

        Raises:
            ValueError: If the sampled tokens are none.
        """
        turn = Turn(
            action=_cut(action),
            observation=observation,
            exit_code=exit_code,
            timed_out=timed_out,
            seconds=seconds,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            tokens=None if sampled is None else self._tokens.turn(sampled),
        )
        with self._lock:
            if self._episode is None:
                self._turns.append(turn)

    def finish(self, status: EpisodeStatus, *, work: Work | None = None, error: str = "") -> Episode:
        """End the episode, if nobody did before, and return its record."""
        work = work or Work()
        with self._lock:
            if self._episode is None:
                self._episode = Episode(
                    id=uuid.uuid4().hex,
                    group_id=self.group_id,
                    task_id=self.task_id,
                    status=status,
                    turns=tuple(self._turns),
                    patch=work.patch,
                    dropped=Dropped.from_capture(work.dropped),
                    report=work.report,
                    error=clean_text(error),
                    first_observation=self.first_observation,
                    seed=self._seed,
                    policy=self._policy,
                    sandbox=self._sandbox,
                    image=self._image,
                    timings=Timings(
                        reset_s=self._reset_s,
                        steps_s=sum(turn.seconds for turn in self._turns),
                        capture_s=work.capture_s,
                        verify_s=work.verify_s,
                    ),
                )
            return self._episode

    def transcript(self) -> str:
        """Everything so far as one text, for `render`."""
        with self._lock:
            parts = [self.first_observation]
            for number, turn in enumerate(self._turns, 1):
                parts += [f"==== action {number}", turn.action, "==== observation"]
                parts.append(turn.observation)
            if self._episode is not None:
                report = self._episode.report
                verdict = "not verified" if report is None else f"tests {report.outcome.value}"
                parts.append(f"==== {self._episode.status.value}, {verdict}")
        return "\n".join(parts)


def _cut(action: str) -> str:
    if len(action) <= MAX_RECORDED_CHARS:
        return action
    return f"{action[:1000]}\n[{len(action) - 1000} characters are not recorded]"
