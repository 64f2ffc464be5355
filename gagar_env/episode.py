"""What is recorded of one episode: turns, patch, test report, status. Written once, at its end."""

from __future__ import annotations

from typing import ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from gagar_env._compat import StrEnum
from gagar_env.changes import DroppedPath
from gagar_env.tasks.fields import Blob

SCHEMA_VERSION: Final = 1


class EpisodeStatus(StrEnum):
    """How an episode ended."""

    SUBMITTED = "submitted"
    """The agent said that it is done: `terminated`."""
    TURN_LIMIT = "turn_limit"
    TIME_LIMIT = "time_limit"
    POLICY_LIMIT = "policy_limit"
    """The policy could not go on by a limit of its own: its context is full, or its budget is spent."""
    CUT = "cut"
    """Stopped from outside: a deadline of the group, or `close()`."""
    ERROR = "error"
    """The infrastructure failed. No reward; the episode is masked out of its group."""

    @property
    def is_truncated(self) -> bool:
        """Whether Gymnasium's `truncated` is set (everything but a submission)."""
        return self is not EpisodeStatus.SUBMITTED


class Outcome(StrEnum):
    """Outcomes of a verification. The last two have no reward."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """The infrastructure failed."""
    MASKED = "masked"
    """It passed, but was flagged in a way that the flag policy leaves out."""


class TestStatus(StrEnum):
    """Status of one test, as in SWE-bench's parsers."""

    __test__ = False  # pytest would take it, and the next two, for classes of tests

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Set-up or tear-down failed."""
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class TestRecord(_Record):
    """One test that ran."""

    __test__: ClassVar[bool] = False
    status: TestStatus
    seconds: float = 0.0
    message: str = ""
    """First lines of why it failed."""


class Flag(_Record):
    """Something that cannot be prevented, only seen: a line of the patch or of the run to look at."""

    kind: str
    """One of `FLAG_KINDS`, such as `always_equal`."""
    path: str = ""
    """The file; empty for what was seen while the tests ran."""
    detail: str = ""


class TestReport(_Record):
    """The result of one verification.

    Attributes:
        outcome: `passed` only when every required test has a positive record and exit code, count and sentinel agree.
        reason: One line; empty when passed.
        tests: Node id -> record, of every test that ran (not only the required ones).
        unmet: Required ids that did not pass, in the order of the task.
        exit_code: Of the test process; None when it did not end by itself.
        flags: What a reader should look at.
        ignored: Changed paths that verification replaced by the official ones.
        evidence: What the verdict rests on: the reporter's record, or what a script of the task printed, returned or
            wrote, which is weaker; `trusted` was handed in by a person and verified by nobody here.
        score: The reward that a script wrote, where that decides.
        attempts: How often it was tried; more than 1 only after infrastructure errors.
    """

    __test__: ClassVar[bool] = False
    schema_version: Literal[1] = SCHEMA_VERSION
    outcome: Outcome
    reason: str = ""
    tests: dict[str, TestRecord] = Field(default_factory=dict)
    unmet: tuple[str, ...] = ()
    exit_code: int | None = None
    timed_out: bool = False
    flags: tuple[Flag, ...] = ()
    ignored: tuple[str, ...] = ()
    evidence: Literal["reporter", "text", "exit_code", "reward_file", "trusted"] = "reporter"
    score: float | None = None
    output_tail: str = ""
    seconds: float = 0.0
    attempts: int = 1

    @property
    def passed(self) -> bool:
        """Whether the work earns the reward."""
        return self.outcome is Outcome.PASSED

    @property
    def valid(self) -> bool:
        """Whether there is a result at all."""
        return self.outcome in (Outcome.PASSED, Outcome.FAILED)


class TurnTokens(_Record):
    """The exact tokens of one turn, see `gagar_env.trajectory`.

    Attributes:
        kept: How many tokens, from the start, this prompt has in common with all of the turn before.
        prompt: Ids of the prompt after those.
        completion: Ids that were sampled.
        logprobs: Log-probabilities of the completion when it was sampled; None where unknown.
    """

    kept: int = Field(default=0, ge=0)
    prompt: tuple[int, ...] = ()
    completion: tuple[int, ...] = ()
    logprobs: tuple[float, ...] | None = None


class Turn(_Record):
    """One action and what came back."""

    action: str
    observation: str
    exit_code: int | None = None
    """Of the command, if the action ran one."""
    timed_out: bool = False
    seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: TurnTokens | None = None
    """Their ids, where the policy gave them."""


class Timings(_Record):
    """Wall-clock seconds by phase."""

    reset_s: float = 0.0
    steps_s: float = 0.0
    capture_s: float = 0.0
    verify_s: float = 0.0


class Dropped(_Record):
    """A changed path that is not part of the patch, and why."""

    path: str
    reason: str
    size_bytes: int = 0

    @classmethod
    def from_capture(cls, dropped: tuple[DroppedPath, ...]) -> tuple[Dropped, ...]:
        """The records of what a capture left out."""
        return tuple(cls(path=_shown(d.path), reason=d.reason, size_bytes=d.size_bytes) for d in dropped)


class Episode(_Record):
    """One attempt of one policy at one task, as it happened.

    Attributes:
        id: Unique.
        group_id: The group that it is compared in; never derived from the task.
        task_id: The task's id.
        status: How it ended.
        turns: Every action with its observation, in order.
        patch: A `git apply`-able patch against the base tree; empty when nothing was changed.
        dropped: Changed paths that the patch leaves out, with reasons.
        report: The verification; None when there was none (an error before it, or verification switched off).
        error: What failed, when `status` or the report's outcome is `error`; which limit, at `policy_limit`;
            why it is masked, when it is.
        first_observation: What the agent saw first.
        seed, policy, sandbox: What it was made with.
        image: The image it ran in, by its registry's digest, else by its id; empty for this machine's own system.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    id: str
    group_id: str
    task_id: str
    status: EpisodeStatus
    turns: tuple[Turn, ...] = ()
    patch: Blob = b""
    dropped: tuple[Dropped, ...] = ()
    report: TestReport | None = None
    error: str = ""
    first_observation: str = ""
    seed: int | None = None
    policy: str = ""
    sandbox: str = ""
    image: str = ""
    timings: Timings = Timings()

    @model_validator(mode="after")
    def _error_is_explained(self) -> Episode:
        if self.status is EpisodeStatus.ERROR and not self.error:
            raise ValueError("an episode with status 'error' needs `error`")
        return self

    @property
    def valid(self) -> bool:
        """Whether it has a reward. Invalid episodes enter no statistic of their group."""
        return self.status is not EpisodeStatus.ERROR and self.report is not None and self.report.valid

    @property
    def passed(self) -> bool:
        """Whether the official tests passed. False for invalid episodes; ask `valid` first."""
        return self.valid and self.report is not None and self.report.passed

    @property
    def reward(self) -> float | None:
        """1.0 or 0.0 by the tests; None when the episode is invalid."""
        return float(self.passed) if self.valid else None


def _shown(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
