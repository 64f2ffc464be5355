"""What a flag does to a pass: nothing, no reward, or no result.

| word | the work passed its tests and was flagged |
| --- | --- |
| `flag` | it keeps its reward; the flags are in the report. The default |
| `zero` | it failed |
| `mask` | it has no reward and is left out of every statistic of its group, and counted as invalid |

Work that failed stays failed under each of them: being flagged is no way out of a loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast, get_args

from gagar_env.episode import Episode, Flag, Outcome, TestReport
from gagar_env.source_flags import FLAG_KINDS

FlagAction: TypeAlias = Literal["flag", "zero", "mask"]
FlagPolicy: TypeAlias = FlagAction | Mapping[str, FlagAction]
"""One word for every kind, or a word by kind. `*` stands for the kinds that are not named, which else are `flag`."""

_ACTIONS: tuple[str, ...] = get_args(FlagAction)


def check_flag_policy(policy: FlagPolicy) -> dict[str, FlagAction]:
    """The policy as a plain dictionary.

    Raises:
        ValueError: If it names an unknown kind or action.
    """
    given = {"*": policy} if isinstance(policy, str) else policy
    for kind, action in given.items():
        if kind != "*" and kind not in FLAG_KINDS:
            raise ValueError(
                f"flag policy: unknown kind {kind!r}; known are {', '.join(FLAG_KINDS)}, and * for the rest"
            )
        if action not in _ACTIONS:
            raise ValueError(f"flag policy: {kind}={action!r} is none of {', '.join(_ACTIONS)}")
    return {kind: cast(FlagAction, str(action)) for kind, action in given.items()}


def read_flag_policy(text: str) -> FlagPolicy:
    """A policy as it is written on a command line: `zero`, or `always_equal=zero,exit_hook=mask,*=flag`.

    Raises:
        ValueError: If it names an unknown kind or action.
    """
    policy = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        kind, equals, action = part.partition("=")
        policy[kind if equals else "*"] = action if equals else kind
    return check_flag_policy(cast(FlagPolicy, policy))


def judge_flags(report: TestReport, policy: FlagPolicy) -> TestReport:
    """The report as the policy has it. Only a pass can change."""
    actions = check_flag_policy(policy)
    by_action: dict[str, list[Flag]] = {action: [] for action in _ACTIONS}
    for flag in report.flags:
        by_action[actions.get(flag.kind, actions.get("*", "flag"))].append(flag)
    for action, outcome, what in (("zero", Outcome.FAILED, "refuses"), ("mask", Outcome.MASKED, "masks")):
        if report.outcome is Outcome.PASSED and (found := by_action[action]):
            kinds = ", ".join(sorted({flag.kind for flag in found}))
            first = f"{found[0].path}: {found[0].detail}".strip(": ")
            reason = f"flagged as {kinds}, which the flag policy {what} ({first})"
            return report.model_copy(update={"outcome": outcome, "reason": " ".join(reason.split())[:1000]})
    return report


def judge_episode(episode: Episode, policy: FlagPolicy) -> Episode:
    """A recorded episode as the policy has it; the same object where nothing changes."""
    if episode.report is None or (report := judge_flags(episode.report, policy)) is episode.report:
        return episode
    error = report.reason if report.outcome is Outcome.MASKED else episode.error
    return episode.model_copy(update={"report": report, "error": error})
