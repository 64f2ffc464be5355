"""The policy and the grader of `gagar run`, with what asks a model checked before any episode starts."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gagar_env.agents.graders import WITH_A_MODEL, FallbackGrader, get_grader
from gagar_env.agents.graders.fallback import fell_back
from gagar_env.agents.policies import ChatPolicy, get_policy
from gagar_env.agents.policies.chat_client import ChatClient, open_client
from gagar_env.agents.policies.chat_wire import OutOfTimeError, within
from gagar_env.episode import Episode
from gagar_env.errors import GagarError
from gagar_env.grading import Grader
from gagar_env.group import GroupResult
from gagar_env.llm.budget import Budget
from gagar_env.rollout import Policy
from gagar_env.totals import recorded_number

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Actors:
    """Who acts and who ranks."""

    policy: str
    replay: Path | None = None
    model: str = ""
    model_url: str = ""
    temperature: str = ""
    no_seed: bool = False
    context_tokens: int | None = None
    native_tools: bool = False
    grader: str = "rule"
    grader_model: str = ""
    grader_url: str = ""
    grader_output: str = ""
    grader_fallback: str = ""
    grader_sessions: bool = False
    grader_temperature: str = ""
    grader_no_seed: bool = False
    grader_orders: int | None = None
    grader_rubric: Path | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None


def make_policy(actors: Actors) -> Policy:
    """The policy.

    Raises:
        GagarError: If there is none of that name, a flag does not fit it, or its model cannot be asked.
    """
    options: dict[str, Any] = {
        "base_url": actors.model_url,
        "context_tokens": actors.context_tokens,
        "native_tools": actors.native_tools,
    }
    options = {name: value for name, value in options.items() if value not in (None, "", False)}
    if actors.temperature:
        options["temperature"] = _temperature("--temperature", actors.temperature)
    if actors.no_seed:
        options["seed"] = None
    if actors.policy == "chat" and not actors.model:
        raise GagarError("--policy chat needs --model, and --model-url if it is not one of OpenAI's")
    if actors.policy != "chat" and (actors.model or options):
        first = {"base_url": "model-url", "seed": "no-seed"}.get(name := next(iter(options), "model"), name)
        flag = "--model" if actors.model else f"--{first.replace('_', '-')}"
        raise GagarError(f"{flag} is for --policy chat, not for --policy {actors.policy}")
    _find_yours(actors.policy)
    try:
        policy = get_policy(actors.policy, file=actors.replay, model=actors.model, **options)
    except ValueError as error:
        raise error if isinstance(error, GagarError) else GagarError(f"--policy {actors.policy}: {error}") from error
    if not isinstance(policy, Policy):
        raise GagarError(
            f"policy {actors.policy!r} is no policy: it needs a `name` and `start(*, task, actions, seed)`"
        )
    if isinstance(policy, ChatPolicy):
        probe("--model", actors.model, actors.model_url)
    return policy


def make_grader(actors: Actors) -> Grader | None:
    """The grader, with the one to fall back to behind it.

    Raises:
        GagarError: If there is none of that name, a flag does not fit it, or its model cannot be asked.
    """
    names = [actors.grader, *([actors.grader_fallback] if actors.grader_fallback else [])]
    if (actors.grader_model or actors.grader_url) and not set(names) & set(WITH_A_MODEL):
        raise GagarError(f"--grader-model is for --grader {' or '.join(WITH_A_MODEL)}, not for --grader {names[0]}")
    if (extra := _of_models(actors)) and not set(names) & set(WITH_A_MODEL):
        raise GagarError(f"{extra[0]} is for --grader {' or '.join(WITH_A_MODEL)}, not for --grader {names[0]}")
    if actors.grader_rubric is not None and "agentic" not in names:
        raise GagarError("--grader-rubric is for --grader agentic")
    if actors.grader_output and "agentic" not in names:
        raise GagarError("--grader-output is for --grader agentic")
    if actors.grader_sessions and "agentic" not in names:
        raise GagarError("--grader-sessions is for --grader agentic: no other has conversations")
    asking = sum(name in WITH_A_MODEL for name in names)
    graders = [_grader(name, actors, asking) for name in names]
    first = graders[0]
    if len(graders) == 1:
        return first
    if first is None or graders[1] is None:
        raise GagarError("--grader-fallback needs a grader that can fail and one that ranks; 'none' does neither")
    return FallbackGrader(first, graders[1])


def _of_models(actors: Actors) -> list[str]:
    """The flags that were given and are for graders with a model."""
    given = {
        "--grader-temperature": actors.grader_temperature or None,
        "--grader-no-seed": actors.grader_no_seed or None,
        "--grader-orders": actors.grader_orders,
        "--budget-tokens": actors.budget_tokens,
        "--budget-usd": actors.budget_usd,
    }
    return [flag for flag, value in given.items() if value is not None]


def _temperature(flag: str, value: str) -> float | None:
    if value.casefold() == "none":
        return None
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < math.inf:
        raise GagarError(f"{flag} {value}: give a number of at least 0, or none")
    return number


def _grader(name: str, actors: Actors, asking: int) -> Grader | None:
    options: dict[str, Any] = {}
    if name in WITH_A_MODEL:
        if not actors.grader_model:
            raise GagarError(
                f"--grader {name} needs --grader-model, and --grader-url if it is not provider:name of pydantic-ai"
            )
        options = {"model": actors.grader_model, "base_url": actors.grader_url}
        if actors.budget_tokens is not None or actors.budget_usd is not None:
            try:
                budget = Budget(tokens=actors.budget_tokens, usd=actors.budget_usd)
            except ValueError as error:
                raise GagarError(f"--budget-usd: {error}") from error
            options["run_budget"] = budget.share(asking)
        if actors.grader_temperature:
            options["temperature"] = _temperature("--grader-temperature", actors.grader_temperature)
        if actors.grader_no_seed:
            options["send_seed"] = False
        if actors.grader_orders is not None:
            options["orders"] = actors.grader_orders
        if actors.grader_rubric is not None and name == "agentic":
            options["rubric"] = actors.grader_rubric
        if actors.grader_output and name == "agentic":
            options["output"] = actors.grader_output
        if actors.grader_sessions and name == "agentic":
            options.update(keep_sessions=True, cache=False)  # a verdict that was kept has no conversation
    _find_yours(name)
    grader = get_grader(name, **options)
    if grader is not None and not isinstance(grader, Grader):
        raise GagarError(f"grader {name!r} is no grader: it needs a `name` and `grade(workspace)`")
    if name in WITH_A_MODEL:
        if actors.grader_url:
            probe("--grader-model", actors.grader_model, actors.grader_url)
        else:
            from gagar_env.llm.models import connect

            connect(actors.grader_model)  # says what is missing: a provider, a package, a key
    return grader


def _find_yours(name: str) -> None:
    if ":" in name and "" not in sys.path:
        sys.path.insert(0, "")  # of yours: `module:Name` beside you, as `python -m` would find it


def probe(flag: str, model: str, base_url: str) -> None:
    """Ask an endpoint which models it has; where that does not settle it, ask the model for one token.

    Raises:
        GagarError: One line, if the endpoint cannot be reached, does not let us in or has no such model.
    """
    client = ChatClient(base_url=base_url, retries=0, deadline_s=_PATIENCE_S)
    known: list[str] = []
    try:
        with open_client(base_url, "") as plain:
            import openai  # late: it is an extra, and `open_client` says so

            try:
                listed = within(_PATIENCE_S, lambda: plain.models.list(timeout=_PATIENCE_S))
                known = [entry.id for entry in listed.data or ()]
            except (
                openai.AuthenticationError,
                openai.PermissionDeniedError,
                openai.APIConnectionError,
                OutOfTimeError,
            ) as error:
                raise GagarError(client.one_line(error)) from error
            except Exception:  # many have no such list
                known = []
        if model not in known:
            client.ask([{"role": "user", "content": "Say yes."}], model=model, max_tokens=1)
    except GagarError as error:
        has = f"; it has {', '.join(known[:5])}" if known else ""
        raise GagarError(f"{flag} {model}: {error}{has}") from error
    finally:
        client.close()


def acting_json(episodes: Iterable[Episode]) -> dict[str, int]:
    """Tokens of the policy's model in a group; 0 without one."""
    turns = [turn for episode in episodes for turn in episode.turns]
    return {
        "prompt_tokens": sum(turn.prompt_tokens for turn in turns),
        "completion_tokens": sum(turn.completion_tokens for turn in turns),
    }


def grading_json(result: GroupResult) -> dict[str, Any] | None:
    """What grading a group cost and what came of it; None where nothing was graded."""
    verdict = result.verdict
    if verdict is None:
        return None
    return {
        "grader": verdict.grader,
        "outcome": verdict.outcome.value,
        "confidence": verdict.confidence,
        "tiers": len(verdict.tiers),
        **verdict.usage.model_dump(),
        "failure": str(verdict.failure),
        "plain_because": result.fallback,
        "fell_back": fell_back(verdict),
        "cached": verdict.cached,
        "length_tau": recorded_number(verdict.record, "length_tau"),
    }
