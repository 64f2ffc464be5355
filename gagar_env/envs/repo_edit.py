"""`RepoEditEnv`: one episode of editing a repository, text in and text out."""

from __future__ import annotations

import functools
import uuid
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.error import ResetNeeded

from gagar_env.actions import ActionFormat, get_format
from gagar_env.checked import warn_if_unchecked
from gagar_env.envs.attempt import Attempt, Rules
from gagar_env.envs.recorder import Recorder
from gagar_env.envs.slots import Slots
from gagar_env.episode import Episode, EpisodeStatus
from gagar_env.errors import SandboxUnavailableError, TaskError
from gagar_env.flag_policy import FlagAction, FlagPolicy, check_flag_policy
from gagar_env.provision import kind_for
from gagar_env.spaces import UnicodeText
from gagar_env.tasks.registry import load_task
from gagar_env.tasks.task import EpisodeLimits, Task
from gagar_env.verify import Verifier

DEFAULT_TASK = "ledger-rounding"
EPISODE_KEY = "episode_record"
"""Where `info` holds the `Episode`. Not "episode": RecordEpisodeStatistics of Gymnasium owns it."""
_REMEMBERED = 65_536
"""Reports that are kept with `reuse_reports`, of tasks all together."""


class RepoEditEnv(gym.Env[str, str]):
    """The agent reads a problem statement, runs commands in a sandbox, and submits.

    - Observation: what the agent reads next. Action: what it wrote, in `action_format`.
    - Reward: 1.0 at the end if the official tests pass on the captured patch, else 0.0.
    - `terminated`: the agent submitted. `truncated`: a limit of turns or seconds, or the
      infrastructure failed. The work is captured in both cases and verified, after a limit only
      with `verify_on_truncation`. The seconds of an episode count from the end of `reset`, thinking
      included, and they also end a running command.
    - No fault of the infrastructure raises out of `step`: the episode ends `truncated`, with reward
      0.0 and `info["valid"]` False. If `reset` cannot open a sandbox, its observation says why and
      the first `step` ends the episode.
    - `step` after the end changes nothing: same observation and flags, reward 0.0.

    `info` always has `task_id`, `group_id`, `turn`, `exit_code` (of this step's command, -1 without
    one), `timed_out`, `status` ("running" or an `EpisodeStatus`), `valid` (False: there is no
    reward, leave the episode out of every statistic), `passed`, and `episode_record`: the `Episode`
    once it is over, else None.

    `reset` takes the options `task` (id or `Task`), `group_id` (a new one if left out) and `policy`
    (a name to record). Bound the turns by `turns`: after a cut by the `TimeLimit` wrapper
    (`max_episode_steps`) nothing is verified.

    Args:
        task: Id of a registered task, or a `Task` (the spec is then no longer JSON).
        sandbox: `auto`, `process`, `bwrap` or another registered kind. Opened by `reset`.
        action_format: `bash`, `tools` or another registered format.
        verify: Whether to run the official tests. Without, no episode has a reward or is valid.
        verify_on_truncation: Whether to run them after a limit too.
        flag_policy: What a flag does to a pass: `flag` (nothing), `zero` (no reward) or `mask` (the episode is not
            valid), for all or by kind: `{"always_equal": "zero", "*": "flag"}`.
        turns: Most turns; None for the limit of the task, as for the next three.
        command_s: Seconds for one command.
        episode_s: Seconds for the episode.
        output_bytes: Most output of one command that the agent sees.
        reuse_reports: Whether equal work on a task gets, in this process, the report of the first of them in place of
            a run of its own. It saves most of the time of a policy that repeats itself; a test that passes only
            sometimes then always says the same.
        warm: How many containers this process keeps started ahead for the tasks last reset; for `docker` only. A
            verification takes one too, so as many as episodes run at one time is a good number.
        slots: Verifications wait for one of these (the spec is then no longer JSON); by default for one of those that
            all environments of this process share, as many as it has processors.
        rooms: `reset` waits for one of these before it opens a sandbox, and it is free again when that is closed.
        render_mode: None, or `ansi` for the transcript.

    Raises:
        TaskError: If there is no such task or it is broken.
        ValueError: If an argument is not one of the above.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        task: str | Task = DEFAULT_TASK,
        *,
        sandbox: str = "auto",
        action_format: str = "bash",
        verify: bool = True,
        verify_on_truncation: bool = True,
        flag_policy: FlagPolicy = "flag",
        turns: int | None = None,
        command_s: float | None = None,
        episode_s: float | None = None,
        output_bytes: int | None = None,
        reuse_reports: bool = False,
        warm: int = 0,
        slots: Slots | None = None,
        rooms: Slots | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be None or 'ansi', got {render_mode!r}")
        limits = {
            "turns": turns,
            "command_s": command_s,
            "episode_s": episode_s,
            "output_bytes": output_bytes,
        }
        self._overrides = {name: value for name, value in limits.items() if value is not None}
        self._default_task = _as_task(task)
        _limits(self._default_task, self._overrides)
        self._sandbox_kind = sandbox
        self._verify = verify
        self._reuse_reports = reuse_reports
        self._warm = warm
        self._slots, self._rooms = slots, rooms
        self._verify_on_truncation = verify_on_truncation
        self._flag_policy = tuple(sorted(check_flag_policy(flag_policy).items()))
        self._attempt: Attempt | None = None
        self.action_format: ActionFormat = get_format(action_format)
        self.render_mode = render_mode
        self.observation_space = UnicodeText()
        self.action_space = UnicodeText()

    @property
    def task(self) -> Task:
        """The task of this episode. Holds secrets: for policies and graders, not for a model."""
        return self._attempt.task if self._attempt else self._default_task

    @property
    def limits(self) -> EpisodeLimits:
        """The limits of this episode: those of its task, but for those that the environment was given."""
        return _limits(self.task, self._overrides)

    @property
    def episode(self) -> Episode | None:
        """The record of the last episode; None while it runs and before the first `reset`."""
        return self._attempt.episode if self._attempt else None

    @property
    def judging(self) -> bool:
        """Whether the agent has ended and its captured work waits for its tests, or is in them."""
        attempt = self._attempt
        return attempt is not None and attempt.judging and attempt.episode is None

    @property
    def queued(self) -> bool:
        """Whether `reset` waits for a room."""
        return self._attempt is not None and self._attempt.queued

    @property
    def began(self) -> float:
        """When the last episode began, waits for a room not counted, in monotonic seconds; 0.0 before the first."""
        return self._attempt.began if self._attempt is not None else 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode; one that still runs is cut.

        Raises:
            TaskError: If the task is unknown or broken.
            SandboxUnavailableError: If this kind of sandbox does not work on this machine at all.
            ValueError: If `options` holds an unknown key.

        Warns:
            UncheckedTaskWarning: Once in a process, for a task that `gagar check` did not find good here.
        """
        super().reset(seed=seed)
        wanted = _check_options(options)
        task = _as_task(wanted.get("task") or self._default_task)
        limits = _limits(task, self._overrides)
        kind = kind_for(task, self._sandbox_kind)
        if self._verify:
            warn_if_unchecked(task, kind)
        self.cut("reset")
        recorder = Recorder(
            task_id=task.id,
            group_id=str(wanted.get("group_id") or uuid.uuid4().hex),
            seed=seed,
            policy=str(wanted.get("policy") or ""),
            sandbox=kind,
        )
        rules = Rules(
            action_format=self.action_format,
            verifier=_verifier(kind, self._flag_policy, self._reuse_reports) if self._verify else None,
            verify_on_truncation=self._verify_on_truncation,
            warm=self._warm,
            slots=self._slots,
            rooms=self._rooms,
        )
        attempt = Attempt(task, limits, rules, recorder)
        self._attempt = attempt
        try:
            attempt.open(kind)
        except (TaskError, SandboxUnavailableError):
            self._attempt = None
            raise
        except Exception as error:
            attempt.broken("reset", error)
        return attempt.observation, _info(attempt)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Run one action.

        Raises:
            ResetNeeded: Before the first `reset`.
        """
        if (attempt := self._attempt) is None:
            raise ResetNeeded("call reset() before step()")
        reward = 0.0
        if attempt.episode is None:
            attempt.act(action)
            reward = float(attempt.episode is not None and attempt.episode.passed)
        status = attempt.episode.status if attempt.episode else None
        terminated = status is EpisodeStatus.SUBMITTED
        truncated = status is not None and status.is_truncated
        return attempt.observation, reward, terminated, truncated, _info(attempt)

    def render(self) -> str | None:
        """The transcript so far with `render_mode="ansi"`, else None."""
        if self.render_mode is None:
            return None
        return self._attempt.recorder.transcript() if self._attempt else ""

    def close(self) -> None:
        """Cut a running episode and close its sandbox. Again and from any thread, if you like."""
        self.cut("close")

    def cut(self, reason: str) -> Episode | None:
        """End the episode from outside, from any thread: status `cut`, nothing captured.

        Returns:
            Its record; an older one if it was over already, None before the first `reset`.
        """
        return self._attempt.stop(EpisodeStatus.CUT, reason) if self._attempt else None

    def fail(self, error: str) -> Episode | None:
        """End the episode as `error`, for a fault outside of it such as a policy that raised."""
        return self._attempt.stop(EpisodeStatus.ERROR, error) if self._attempt else None

    def end(self, status: EpisodeStatus) -> Episode | None:
        """Capture and verify now, as at a limit, for a caller that has a limit of its own."""
        if self._attempt is not None and self._attempt.episode is None:
            self._attempt.conclude(status)
        return self._attempt.episode if self._attempt else None


def _info(attempt: Attempt) -> dict[str, Any]:
    episode = attempt.episode
    return {
        "task_id": attempt.recorder.task_id,
        "group_id": attempt.recorder.group_id,
        "turn": attempt.recorder.turns,
        "exit_code": attempt.exit_code,
        "timed_out": attempt.timed_out,
        "status": "running" if episode is None else episode.status.value,
        "valid": episode is None or episode.valid,
        "passed": episode is not None and episode.passed,
        EPISODE_KEY: episode,
    }


@functools.cache
def _verifier(kind: str, flag_policy: tuple[tuple[str, FlagAction], ...], reuse: bool) -> Verifier:
    """One for all environments of this process: it remembers the official part of each task."""
    return Verifier(sandbox=kind, flag_policy=dict(flag_policy), remember=_REMEMBERED if reuse else 0)


def _as_task(task: str | Task) -> Task:
    return task if isinstance(task, Task) else load_task(task)


def _limits(task: Task, overrides: Mapping[str, Any]) -> EpisodeLimits:
    try:
        return EpisodeLimits(**{**task.limits.model_dump(), **overrides})
    except ValueError as error:
        given = ", ".join(f"{name}={value!r}" for name, value in overrides.items())
        reason = " ".join(" ".join(str(error).splitlines()[1:3]).split())
        raise ValueError(f"no such limits: {given}: {reason}") from error


def _check_options(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    known = ("task", "group_id", "policy")
    if unknown := sorted(set(options or ()) - set(known)):
        raise ValueError(f"unknown reset option {', '.join(unknown)}; known are {', '.join(known)}")
    return options or {}
