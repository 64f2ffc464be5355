"""`ListwiseGrader`: one call, no tools, everything in the prompt, a score for each candidate.

The shape of RULER, with what it leaves out: only passing candidates, in an order and under labels drawn for each call,
each with the same room, quoted as data. It is the baseline that a grader with tools has to beat.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gagar_env.agents.graders.agentic import looks, votes
from gagar_env.agents.graders.agentic.loops import Loops
from gagar_env.agents.graders.listwise_prompt import VERSION, instructions, question
from gagar_env.agents.graders.tiers import tiers_of
from gagar_env.grading import FailureKind, Usage, Verdict, VerdictOutcome
from gagar_env.llm import need_llm
from gagar_env.llm.budget import Budget, Meter
from gagar_env.llm.quoting import Quoter, cut, talks_to_judge
from gagar_env.llm.replies import NoJSONError, find_object, is_refusal
from gagar_env.llm.secrets import public_url, secrets_of
from gagar_env.workspace import Workspace

if TYPE_CHECKING:
    from pydantic_ai.models import Model

GROUP_BUDGET = Budget(turns=40, tokens=1_000_000, seconds=600)
_MAX_RAW = 20_000
_FRAME = 1_500
"""Characters for what is around the texts, and for what is said when a reply does not fit."""


class _Score(BaseModel):
    model_config = ConfigDict(strict=True)
    id: str
    score: float = Field(ge=0.0, le=1.0, allow_inf_nan=False)
    explanation: str = ""


class _Scores(BaseModel):
    model_config = ConfigDict(strict=True)
    scores: list[_Score]


class ListwiseGrader:
    """Ranks by scores in [0, 1] that a model gives all candidates in one call; equal scores are a tie.

    What a candidate wrote is cut in its middle so that all fit, for each in the same way and counted before the call.
    A reply that does not fit is answered once with what is wrong; then the verdict is `failed`. One order says nothing
    on agreement, so its confidence is 1/2, as with one vote of the agentic grader; `temper=False` makes it 1.

    Args:
        model: With `base_url`, the name that the endpoint knows; else `provider:name` of pydantic-ai, or a model
            object of it.
        base_url: Of an OpenAI-compatible endpoint, with its `/v1`.
        api_key: For it; by default `OPENAI_API_KEY`.
        orders: So many calls, each with another order and other labels; mean ranks count.
        budget: For each group.
        run_budget: For all groups that this grader grades, from now on.
        temperature: None for the model's own.
        seed: Of orders and labels, and for models that take one.
        send_seed: False for models that take none.
        context_tokens: What the model can read at once.
        reply_tokens: Of that, for the answer; as much again is kept free for a second one.
        request_s: Seconds for one request.
        attempts: Tries of one request when the provider is busy or fails.
        tie: Mean ranks that differ by no more are tied.
        temper: Whether few or disagreeing orders temper the weights.

    Raises:
        MissingDependencyError: Without the extra `llm`.
        ValueError: If a setting is out of range.
    """

    name = "listwise"

    def __init__(
        self,
        model: str | Model,
        *,
        base_url: str = "",
        api_key: str = "",
        orders: int = 1,
        budget: Budget = GROUP_BUDGET,
        run_budget: Budget | None = None,
        temperature: float | None = 0.0,
        seed: int = 0,
        send_seed: bool = True,
        context_tokens: int = 32_000,
        reply_tokens: int = 2_000,
        request_s: float = 300.0,
        attempts: int = 5,
        tie: float = 0.5,
        temper: bool = True,
    ) -> None:
        need_llm(f"the {self.name} grader")
        if orders < 1 or attempts < 1 or not request_s > 0 or not tie >= 0:
            raise ValueError("orders and attempts must be at least 1, request_s > 0, tie >= 0")
        if reply_tokens < 1 or context_tokens < 2 * reply_tokens + 1_000:
            raise ValueError(f"context_tokens must be at least twice reply_tokens and 1000 more, got {context_tokens}")
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._budget = budget
        self._run_meter = Meter(run_budget, name="this run")
        self._request_s = request_s
        self._attempts = attempts
        self._settings: dict[str, Any] = {
            "grader": self.name,
            "model": model if isinstance(model, str) else model.model_name,
            "url": public_url(base_url),
            "prompt": VERSION,
            "seed": seed,
            "send_seed": send_seed,
            "orders": orders,
            "temperature": temperature,
            "context_tokens": context_tokens,
            "reply_tokens": reply_tokens,
            "tie": tie,
            "temper": temper,
        }
        self._loops = Loops()

    def __repr__(self) -> str:
        return f"ListwiseGrader({self._settings['model']!r})"

    @property
    def spent(self) -> Usage:
        """What this grader has used in all."""
        return self._run_meter.usage

    def grade(self, workspace: Workspace) -> Verdict:
        """Ask for scores in each order, and add them up."""
        if len(workspace.passing) < 2:
            return Verdict(grader=self.name, outcome=VerdictOutcome.SKIPPED)
        meter = Meter(self._budget, above=self._run_meter)
        passing = [workspace.candidates[label] for label in workspace.passing]
        flagged = {c.label: found for c in passing if (found := talks_to_judge(looks.written_by(c)))}
        record: dict[str, Any] = {
            "version": 1,
            **self._settings,
            "workspace_seed": workspace.seed,
            "passing": list(workspace.passing),
            "patch_lines": {c.label: sum(looks.line_counts(c.patch)) for c in passing},
            "talks_to_judge": flagged,
            "warnings": [],
            "votes": [],
        }
        self._loops.run(workspace, self._ask_all(workspace, record, meter))
        record["usage"] = meter.usage.model_dump()
        return votes.replay(record)

    def cancel(self, workspace: Workspace) -> None:
        """Stop grading this workspace at once; from any thread."""
        self._loops.cancel(workspace)

    async def _ask_all(self, workspace: Workspace, record: dict[str, Any], meter: Meter) -> None:
        seed = f"listwise {record['seed']} {workspace.seed} {workspace.task.id}"
        for number, order in enumerate(votes.orders(list(workspace.passing), record["orders"], seed)):
            vote: dict[str, Any] = {
                "labels": votes.fresh_labels(order, number, seed),
                "seed": votes.model_seed(number, seed),
                "token": "",
                "raw": "",
                "replies": [],
                "evidence": {},
                "marks": [],
                "failure": FailureKind.CANCELLED.value,
                "error": "cancelled",
            }
            record["votes"].append(vote)
            before = meter.usage
            await self._vote(workspace, record, vote, meter)
            after = meter.usage
            vote["usage"] = {name: getattr(after, name) - getattr(before, name) for name in ("calls", "failed_calls")}

    async def _vote(self, workspace: Workspace, record: dict[str, Any], vote: dict[str, Any], meter: Meter) -> None:
        from gagar_env.llm.models import connect, failure_of

        try:
            model = connect(
                self._model,
                base_url=self._base_url,
                api_key=self._api_key,
                meter=meter,
                attempts=self._attempts,
                request_s=self._request_s,
                context_tokens=record["context_tokens"],
            )
            async with asyncio.timeout(meter.left_s()), model:  # type: ignore[attr-defined]  # the extra needs 3.11
                await self._score(model, workspace, record, vote)
        except Exception as error:
            kind, line = failure_of(error, secrets_of(self._api_key, self._base_url))
            if isinstance(error, NoJSONError):
                kind = FailureKind.MALFORMED
            if kind is FailureKind.TIMEOUT and not str(error):
                line = "no answer in the time that there was"
            vote["failure"], vote["error"] = kind.value, line
        else:
            vote["failure"] = vote["error"] = ""

    async def _score(self, model: Model, workspace: Workspace, record: dict[str, Any], vote: dict[str, Any]) -> None:
        from pydantic_ai.messages import (
            ModelMessage,
            ModelRequest,
            ModelResponse,
            SystemPromptPart,
            TextPart,
            UserPromptPart,
        )
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.settings import ModelSettings

        from gagar_env.llm.models import CHARACTERS_PER_TOKEN, RefusedError

        quoter = Quoter()
        vote["token"] = quoter.token
        labels: dict[str, str] = vote["labels"]
        reply = record["reply_tokens"] * CHARACTERS_PER_TOKEN
        room = record["context_tokens"] * CHARACTERS_PER_TOKEN - 2 * reply - _FRAME  # two: one may be repaired
        system = instructions(quoter.token, list(labels))
        asked = question(workspace, labels, quoter, room - len(json.dumps(system)))
        vote["prompt_hash"] = hashlib.sha256(f"{system}\n{asked}".encode()).hexdigest()
        settings = ModelSettings(max_tokens=record["reply_tokens"])
        if record["send_seed"]:
            settings["seed"] = vote["seed"]
        if record["temperature"] is not None:
            settings["temperature"] = record["temperature"]
        messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(system), UserPromptPart(asked)])]
        for repair in (False, True):
            response = await model.request(messages, settings, ModelRequestParameters())
            text = response.text or ""
            vote["raw"] = text[:_MAX_RAW]
            vote["replies"].append(vote["raw"])
            if response.finish_reason == "content_filter" or is_refusal(text):
                raise RefusedError(f"the model declined: {text[:200]!r}")
            try:
                scores = read_scores(text, list(labels))
            except NoJSONError as fault:
                if repair:
                    raise
                again = f"{fault}. Answer again, with one JSON object for all of {', '.join(labels)}."
                said = ModelResponse(parts=[TextPart(cut(text, reply // 2) or "(no text)")])
                messages += [said, ModelRequest(parts=[UserPromptPart(again)])]
                continue
            vote["scores"] = {score.id: score.score for score in scores}
            vote["tiers"] = [list(tier) for tier in tiers_of({score.id: -score.score for score in scores})]
            vote["reasons"] = {score.id: _one_line(f"{score.score:g}: {score.explanation}") for score in scores}
            return


def read_scores(text: str, labels: list[str]) -> list[_Score]:
    """The scores in a reply.

    Raises:
        NoJSONError: One line for the model, if there are none, or not exactly one for each label.
    """
    try:
        scores = _Scores.model_validate(find_object(text, keys=frozenset({"scores"}))).scores
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise NoJSONError(
            f"the JSON object does not fit: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from error
    named = [score.id for score in scores]
    faults = [
        f"{what}: {', '.join(name[:40] for name in names[:20])}"
        for what, names in (
            ("missing", [label for label in labels if label not in named]),
            ("not among them", sorted(set(named) - set(labels))),
            ("repeated", sorted({name for name in named if named.count(name) > 1})),
        )
        if names
    ]
    if faults:
        raise NoJSONError(f"`scores` must hold each of {', '.join(labels)} exactly once; {'; '.join(faults)}")
    return scores


def _one_line(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").decode().split())[:2_000]
