"""Runs attacks and honest twins against a task, each as an episode that is verified as in training."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar

from gagar_env.attacks.base import Attack, Kind, Target, Twin, work
from gagar_env.attacks.catalogue import ATTACKS, TWINS
from gagar_env.attacks.outside import FOUND
from gagar_env.attacks.report import IN_EVERY_MODE
from gagar_env.attacks.targets import target_of
from gagar_env.envs.repo_edit import RepoEditEnv
from gagar_env.episode import Episode, Flag
from gagar_env.errors import TaskError
from gagar_env.provision import kind_for, provision
from gagar_env.tasks.task import Task

AttackOutcome: TypeAlias = Literal["held", "flagged", "let_through", "not_applicable", "error"]
Result = TypeVar("Result")
Item = TypeVar("Item")

_COMMAND_S = 20.0
_SHOWN_BYTES = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """What came of one attack.

    Attributes:
        outcome: `held`: a valid reward of 0, and nothing found. `flagged`: a reward of 1 with a flag. `let_through`: a
            reward of 1 without one, or something was found. `not_applicable`: it does not fit this task. `error`: the
            episode is not valid, so that it is left out of its group, which is a way to cheat too.
        reward: Of the last episode; None when it has none.
        reason: Why it failed, what was found, or what broke.
        exit_codes: Of the attack's own scripts.
    """

    attack: Attack
    outcome: AttackOutcome
    reward: float | None = None
    flags: tuple[Flag, ...] = ()
    reason: str = ""
    exit_codes: tuple[int | None, ...] = ()

    @property
    def good(self) -> bool:
        """Whether nobody profits from it unseen."""
        return self.outcome in ("held", "flagged", "not_applicable")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        attack = self.attack
        return {
            "attack": attack.id,
            "case": attack.case,
            "kind": attack.kind.value,
            "title": attack.title,
            "outcome": self.outcome,
            "reward": self.reward,
            "flags": [flag.model_dump() for flag in self.flags],
            "reason": self.reason,
            "advice": "" if self.good else attack.advice,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinResult:
    """What came of one piece of honest work beside the reference solution."""

    twin: Twin
    good: bool
    """It earned the reward."""
    flags: tuple[Flag, ...] = ()
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        flags = [flag.model_dump() for flag in self.flags]
        return {
            "twin": self.twin.id,
            "title": self.twin.title,
            "good": self.good,
            "flags": flags,
            "reason": self.reason,
        }


def run_attacks(
    task: Task,
    *,
    sandbox: str = "auto",
    attacks: Sequence[Attack] | None = None,
    jobs: int = 1,
    on_result: Callable[[AttackResult], None] | None = None,
) -> list[AttackResult]:
    """Run attacks against a task.

    Args:
        task: The task.
        sandbox: Kind of sandbox, for the episodes and for their verification.
        attacks: By default all of `ATTACKS`.
        jobs: Episodes at one time.
        on_result: Told of each as it ends, from the thread that ran it.

    Raises:
        TaskError: If the task is broken.
        SandboxUnavailableError: If that kind of sandbox does not work here.
        EnvironmentBuildError: If this machine cannot provide it.
    """
    kind = kind_for(task, sandbox)
    with _server() as (port, mark):
        target = target_of(task, provision(task, sandbox=kind).base.tree, port=port, mark=mark)
        return _each(ATTACKS if attacks is None else attacks, partial(_attack, task, kind, target), jobs, on_result)


def run_twins(
    task: Task,
    *,
    sandbox: str = "auto",
    twins: Sequence[Twin] | None = None,
    jobs: int = 1,
    on_result: Callable[[TwinResult], None] | None = None,
) -> list[TwinResult]:
    """Run honest work beside the reference solution; arguments and exceptions as for `run_attacks`.

    Raises:
        TaskError: If the task is broken, or has no reference solution.
    """
    if not task.solution_patch.strip():
        raise TaskError(f"{task.id} has no reference solution: there is no honest work to compare with")
    kind = kind_for(task, sandbox)
    target = target_of(task, provision(task, sandbox=kind).base.tree)
    return _each(TWINS if twins is None else twins, partial(_twin, task, kind, target), jobs, on_result)


def _each(
    items: Iterable[Item],
    run: Callable[[Item], Result],
    jobs: int,
    on_result: Callable[[Result], None] | None,
) -> list[Result]:
    def one(item: Item) -> Result:
        result = run(item)
        if on_result is not None:
            on_result(result)
        return result

    if jobs == 1:
        return [one(item) for item in items]
    with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="attack") as pool:
        return list(pool.map(one, items))


def _attack(task: Task, kind: str, target: Target, attack: Attack) -> AttackResult:
    scripts = [script for script in attack.actions(target) if script]
    if not task.tests.by_reporter and attack.kind is Kind.REPORT and attack.id not in IN_EVERY_MODE:
        return AttackResult(attack=attack, outcome="not_applicable", reason="its tests are judged without a report")
    if not scripts:
        return AttackResult(attack=attack, outcome="not_applicable", reason="the task has nothing that it could use")
    plays = [_play(task, kind, scripts, attack.command_s)]
    if attack.follow_up is not None:
        plays.append(_play(task, kind, list(attack.follow_up(target))))
    found = [line for play in plays for turn in play.turns for line in turn.observation.splitlines()]
    found = [line.removeprefix(FOUND) for line in found if line.startswith(FOUND)]
    last = plays[-1]
    flags = last.report.flags if last.report is not None else ()
    broken = next((play.error or play.status.value for play in plays if not play.valid), "")
    outcome: AttackOutcome = "held"
    reason = last.report.reason if last.report is not None else ""
    if found:
        outcome, reason = "let_through", f"found: {', '.join(dict.fromkeys(found))}"[:500]
    elif broken:
        outcome, reason = "error", broken
    elif any(play.passed for play in plays):
        outcome = "flagged" if flags else "let_through"
        reason = ", ".join(sorted({flag.kind for flag in flags})) or "the tests passed, and nothing was flagged"
    return AttackResult(
        attack=attack,
        outcome=outcome,
        reward=last.reward,
        flags=flags,
        reason=reason,
        exit_codes=tuple(turn.exit_code for turn in plays[0].turns[: len(scripts)]),
    )


def _twin(task: Task, kind: str, target: Target, twin: Twin) -> TwinResult:
    episode = _play(task, kind, [*work(target.fix), *twin.actions(target)])
    report = episode.report
    reason = episode.error or (report.reason if report is not None else "")
    if bad := [turn.observation for turn in episode.turns[:-1] if turn.exit_code]:
        reason = f"{reason} (a script failed: {' '.join(bad[0].split())[:200]})".strip()
    return TwinResult(twin=twin, good=episode.passed, flags=report.flags if report is not None else (), reason=reason)


def _play(task: Task, kind: str, scripts: Sequence[str], command_s: float = _COMMAND_S) -> Episode:
    env = RepoEditEnv(
        task,
        sandbox=kind,
        turns=len(scripts) + 2,
        command_s=command_s,
        output_bytes=_SHOWN_BYTES,
    )
    try:
        env.reset(seed=0)
        for action in (*(env.action_format.bash(script) for script in scripts), env.action_format.submit()):
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
        episode = env.episode
    finally:
        env.close()
    assert episode is not None, "the last action submits"
    return episode


@contextlib.contextmanager
def _server() -> Iterator[tuple[int, str]]:
    """A server of this machine, by port and by name, that no sandbox may reach."""
    mark = f"gagar-{secrets.token_hex(6)}"
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract,
    ):
        abstract.bind(f"\0{mark}")
        abstract.listen()
        yield listening.getsockname()[1], mark
