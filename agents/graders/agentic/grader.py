"""`AgenticGrader`: a model with tools ranks the passing episodes of a group. See docs/graders.md."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gagar_env.agents.graders.agentic import kept, looks, prompts, votes
from gagar_env.agents.graders.agentic.commands import CommandRunner
from gagar_env.agents.graders.agentic.desk import Desk
from gagar_env.agents.graders.agentic.loops import Loops
from gagar_env.agents.graders.cancelled import WHY
from gagar_env.cache import cache_root
from gagar_env.grading import FailureKind, Usage, Verdict, VerdictOutcome
from gagar_env.llm import need_llm
from gagar_env.llm.budget import Budget, Meter
from gagar_env.llm.quoting import Quoter, talks_to_judge
from gagar_env.llm.replies import is_refusal
from gagar_env.llm.secrets import public_url, redact_all, secrets_of
from gagar_env.workspace import Workspace

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from gagar_env.agents.graders.agentic.judge import Output

logger = logging.getLogger(__name__)
GROUP_BUDGET = Budget(turns=80, tokens=1_500_000, seconds=900)
_SHOWN = 0.6
"""Of the context, beyond `_FIRST` tokens, for what candidates wrote; the rest is for replies and the answer."""
_FIRST = 3_000
"""Tokens of the first prompt, about."""


class AgenticGrader:
    """Ranks with a model that reads patches, files, trajectories and tests, and runs commands in copies.

    Groups may be graded from several threads at once. A failure of the model is a `failed` verdict that says why.

    Args:
        model: With `base_url`, the name that the endpoint knows; else `provider:name` of pydantic-ai, or a model
            object of it.
        base_url: Of an OpenAI-compatible endpoint, with its `/v1`.
        api_key: For it; by default `OPENAI_API_KEY`.
        rubric: A file, or a text of several lines; None is the one of the package.
        orders: Most votes, each with another order and other labels. From two on, position cannot decide alone.
        budget: For each group, over all its votes.
        run_budget: For all groups that this grader grades, from now on.
        temperature: None for the model's own.
        seed: Of orders and labels, and for models that take one.
        send_seed: False for models that take none.
        sandbox: Kind for the judge's commands: `auto`, a name, or `none` to run nothing.
        output: `tool`, or for endpoints that cannot call tools `json_schema` or `prompted`: then patches are put into
            the prompt, within the same bounds.
        context_tokens: What the model can read at once. Bounds all that is shown.
        request_s: Seconds for one request.
        attempts: Tries of one request when the provider is busy or fails.
        tie: Mean ranks that differ by no more are tied.
        temper: Whether disagreement of the votes tempers the weights.
        cache: Whether verdicts are kept and used again, or the folder for them. Not for model objects.
        keep_sessions: Whether the record holds the conversations, as chat messages.

    Raises:
        MissingDependencyError: Without the extra `llm`.
        GradingError: If the rubric cannot be read, or there is no such model.
        ValueError: If a setting is out of range.
    """

    name = "agentic"

    def __init__(
        self,
        model: str | Model,
        *,
        base_url: str = "",
        api_key: str = "",
        rubric: Path | str | None = None,
        orders: int = 2,
        budget: Budget = GROUP_BUDGET,
        run_budget: Budget | None = None,
        temperature: float | None = 0.0,
        seed: int = 0,
        send_seed: bool = True,
        sandbox: str = "auto",
        output: Output = "tool",
        context_tokens: int = 64_000,
        request_s: float = 300.0,
        attempts: int = 5,
        tie: float = 0.5,
        temper: bool = True,
        cache: bool | Path = True,
        keep_sessions: bool = False,
    ) -> None:
        need_llm(f"the {self.name} grader")
        if output not in ("tool", "json_schema", "prompted"):
            raise ValueError(f"output must be tool, json_schema or prompted, got {output!r}")
        if orders < 1 or attempts < 1 or context_tokens < 4_000 or not request_s > 0 or not tie >= 0:
            raise ValueError("orders and attempts must be at least 1, context_tokens 4000, request_s > 0, tie >= 0")
        if sandbox == "process":
            raise ValueError("sandbox 'process' isolates nothing: the judge runs what candidates wrote; use 'none'")
        if not base_url:
            from gagar_env.llm.models import find_model

            find_model(model)  # what is wrong with it shall not come up group by group
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._rubric = prompts.read_rubric(rubric)
        self._budget = budget
        self._run_meter = Meter(run_budget, name="this run")
        self._sandbox = sandbox
        self._request_s = request_s
        self._attempts = attempts
        self._keep_sessions = keep_sessions
        self._cache = None if cache is False or not isinstance(model, str) else cache
        self._settings: dict[str, Any] = {
            "grader": self.name,
            "model": model if isinstance(model, str) else model.model_name,
            "url": public_url(base_url),
            "rubric": kept.digest(self._rubric),
            "prompt": prompts.VERSION,
            "seed": seed,
            "send_seed": send_seed,
            "orders": orders,
            "temperature": temperature,
            "output": output,
            "context_tokens": context_tokens,
            "commands": sandbox != "none",
            "tie": tie,
            "temper": temper,
        }
        self._lock = threading.Lock()
        self._loops = Loops()
        self._warned: set[str] = set()

    def __repr__(self) -> str:
        return f"AgenticGrader({self._settings['model']!r})"

    @property
    def spent(self) -> Usage:
        """What this grader has used in all."""
        return self._run_meter.usage

    def grade(self, workspace: Workspace) -> Verdict:
        """Ask for votes until they agree, and add them up."""
        if len(workspace.passing) < 2:
            return Verdict(grader=self.name, outcome=VerdictOutcome.SKIPPED)
        folder = cache_root() / "verdicts" if self._cache is True else self._cache
        asked = {
            **self._settings,
            "endpoint": self._base_url,
            "sandbox": self._sandbox,
            "keep_sessions": self._keep_sessions,
        }
        key = kept.key_of(asked, workspace) if folder else ""
        if folder and (known := kept.load(folder, key)) is not None:
            return known
        runner = CommandRunner(workspace.task, self._sandbox)
        if self._settings["output"] == "tool":
            runner.prepare()  # before the clock of the budget starts
        if self._loops.cancelled(workspace):
            return Verdict(grader=self.name, outcome=VerdictOutcome.FAILED, error=WHY, failure=FailureKind.CANCELLED)
        meter = Meter(self._budget, above=self._run_meter)
        record = self._record(workspace)
        self._loops.run(workspace, self._vote_all(workspace, record, runner, meter))
        record["usage"] = meter.usage.model_dump()
        verdict = votes.replay(record)
        whole = verdict.outcome is not VerdictOutcome.FAILED and not any(vote["failure"] for vote in record["votes"])
        if folder and whole:  # a bad moment shall not last
            kept.save(folder, key, verdict)
        return verdict

    def cancel(self, workspace: Workspace) -> None:
        """Stop grading this workspace at once; from any thread. The vote that is being cast fails."""
        self._loops.cancel(workspace)

    def _record(self, workspace: Workspace) -> dict[str, Any]:
        flagged = {
            label: found
            for label, candidate in workspace.candidates.items()
            if (found := talks_to_judge(looks.written_by(candidate)))
        }
        counts = {label: sum(looks.line_counts(workspace.candidates[label].patch)) for label in workspace.passing}
        return {
            "version": 1,
            **self._settings,
            "workspace_seed": workspace.seed,
            "passing": list(workspace.passing),
            "patch_lines": counts,
            "talks_to_judge": flagged,
            "warnings": self._own_work(workspace.policies),
            "votes": [],
        }

    def _own_work(self, policies: tuple[str, ...]) -> list[str]:
        """A warning if the model seems to judge itself; logged once for each policy."""
        bare = self._settings["model"].rpartition(":")[2].rpartition("/")[2].casefold()
        own = [policy for policy in policies if len(bare) > 2 and bare in policy.casefold()]
        found = [
            f"the judge {self._settings['model']} also acted, as policy {policy}: it may prefer its own work"
            for policy in own
        ]
        with self._lock:
            new = [line for line in found if line not in self._warned]
            self._warned.update(new)
        for line in new:
            logger.warning("%s", line)
        return found

    async def _vote_all(
        self, workspace: Workspace, record: dict[str, Any], runner: CommandRunner, meter: Meter
    ) -> None:
        from gagar_env.llm.models import find_model

        most: int = record["orders"]
        seed = f"{record['seed']} {workspace.seed} {workspace.task.id}"
        cast: list[dict[str, Any]] = record["votes"]
        async with find_model(self._model, base_url=self._base_url, api_key=self._api_key) as model:
            for number, order in enumerate(votes.orders(list(workspace.candidates), most, seed)):
                vote = votes.new_vote(order, number, seed, send_seed=record["send_seed"])
                cast.append(vote)
                await self._vote(model, workspace, record, vote, runner, meter)
                good = [vote for vote in cast if not vote["failure"]]
                if len(good) + most - len(cast) < min(2, most):
                    return  # too few can still come
                if len(good) >= 2 and votes.same([votes.own_tiers(vote) for vote in good]):
                    return

    async def _vote(
        self,
        model: Model,
        workspace: Workspace,
        record: dict[str, Any],
        vote: dict[str, Any],
        runner: CommandRunner,
        meter: Meter,
    ) -> None:
        from gagar_env.agents.graders.agentic.judge import ask
        from gagar_env.llm.models import CHARACTERS_PER_TOKEN, Metered, failure_of

        share = Meter(self._budget.share(record["orders"]), above=meter, name="this vote")
        context: int = record["context_tokens"]
        quoter = Quoter()
        vote["token"] = quoter.token
        secrets = secrets_of(self._api_key, self._base_url)
        try:
            desk = Desk(
                workspace,
                vote["labels"],
                quoter=quoter,
                runner=runner,
                meter=share,
                show_chars=int(max(1_000, context - _FIRST) * CHARACTERS_PER_TOKEN * _SHOWN),
                flagged=record["talks_to_judge"],
            )
            async with asyncio.timeout(meter.left_s()):  # type: ignore[attr-defined]  # the extra needs 3.11
                await ask(
                    Metered(model, share, attempts=self._attempts, request_s=self._request_s, context_tokens=context),
                    desk,
                    quoter,
                    statement=workspace.task.problem_statement,
                    rubric=self._rubric,
                    output=record["output"],
                    temperature=record["temperature"],
                    keep_session=self._keep_sessions,
                    vote=vote,
                )
        except Exception as error:
            kind, line = failure_of(error, secrets)
            if kind is FailureKind.MALFORMED and is_refusal(vote["raw"]):
                kind = FailureKind.REFUSED
            vote["failure"], vote["error"] = kind.value, line
        else:
            vote["failure"] = vote["error"] = ""
        finally:
            vote.update(redact_all(vote, secrets))
            vote["usage"] = share.usage.model_dump()
