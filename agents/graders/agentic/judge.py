"""One vote: a model with tools at a desk, until it submits. Needs the `llm` extra."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic_ai import Agent, ModelRetry, NativeOutput, TextOutput, ToolOutput, capture_run_messages
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from gagar_env.agents.graders.agentic import prompts
from gagar_env.agents.graders.agentic.desk import Desk
from gagar_env.agents.graders.agentic.submission import Submission, bounded, fault_of, read_text
from gagar_env.llm.models import RefusedError
from gagar_env.llm.quoting import Quoter
from gagar_env.llm.replies import NoJSONError, is_refusal

Output = Literal["tool", "json_schema", "prompted"]
_MAX_RAW = 20_000
_TOOL_FAULTS = 8
"""So often in a row may arguments of one tool be wrong."""
_MOST_CALLS = 400
"""Of tools in one vote, however many a reply holds."""


async def ask(
    model: Model,
    desk: Desk,
    quoter: Quoter,
    *,
    statement: str,
    rubric: str,
    output: Output,
    temperature: float | None,
    keep_session: bool,
    vote: dict[str, Any],
) -> None:
    """Fill in `vote` with what the model submits, and with its raw reply whatever it is.

    Raises:
        Exception: Whatever goes wrong; `gagar_env.llm.models.failure_of` knows what it is.
    """
    tools = output == "tool"
    settings = ModelSettings()
    if vote["seed"] is not None:
        settings["seed"] = vote["seed"]
    if temperature is not None:
        settings["temperature"] = temperature

    def read(text: str) -> Submission:
        if is_refusal(text):
            raise RefusedError(f"the model declined: {text[:200]!r}")
        try:
            return read_text(text)
        except NoJSONError as fault:
            raise ModelRetry(f"{fault}. {'Call `submit`.' if tools else 'Answer with one JSON object.'}") from fault

    choices: dict[str, Any] = {
        "tool": [ToolOutput(Submission, name="submit", description="Submit the ranking."), TextOutput(read)],
        "json_schema": NativeOutput(Submission, template=False),
        "prompted": TextOutput(read),
    }
    agent: Agent[None, Submission] = Agent(
        model,
        output_type=choices[output],
        instructions=prompts.instructions(rubric, quoter.token, tools=tools),
        tools=desk.tools if tools else (),
        deps_type=type(None),
        name="gagar-judge",
        model_settings=settings,
        retries={"tools": _TOOL_FAULTS, "output": 1},
        end_strategy="early",
    )

    @agent.output_validator
    def check(submission: Submission) -> Submission:
        if fault := fault_of(submission.tiers, desk.passing):
            raise ModelRetry(fault)
        return submission

    with capture_run_messages() as messages:
        try:
            result = await agent.run(
                prompts.question(statement, desk, quoter, tools=tools),
                usage_limits=UsageLimits(request_limit=None, tool_calls_limit=_MOST_CALLS),
            )
        finally:
            vote["raw"] = _raw(messages)
            vote["looked_at"] = _looked_at(messages)
            if keep_session:
                vote["session"] = as_chat(messages)
                vote["tools"] = tool_schemas(desk) if tools else []
    submission = bounded(result.output)
    vote["tiers"] = submission.tiers
    vote["reasons"] = submission.reasons
    vote["evidence"] = submission.evidence
    vote["marks"] = [
        [mark.label, mark.turn, mark.mark] for mark in submission.marks if desk.has_turn(mark.label, mark.turn)
    ]


def _raw(messages: Sequence[ModelMessage]) -> str:
    """The last reply as it came: text and calls."""
    last = next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)
    parts = [] if last is None else last.parts
    said = [
        part.content if isinstance(part, TextPart) else _call(part)
        for part in parts
        if isinstance(part, (TextPart, ToolCallPart))
    ]
    return "\n".join(said)[:_MAX_RAW]


def _call(part: ToolCallPart) -> str:
    return f"{part.tool_name}({part.args_as_json_str()})"


def _looked_at(messages: Sequence[ModelMessage]) -> list[str]:
    """The calls of tools, each on one line."""
    return [
        _call(part)[:500]
        for message in messages
        if isinstance(message, ModelResponse)
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.tool_name != "submit"
    ]


def as_chat(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """A conversation as messages of the chat-completions protocol, tools and all."""
    chat: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            if not chat and message.instructions:
                chat.append({"role": "system", "content": message.instructions})
            for part in message.parts:
                match part:
                    case SystemPromptPart(content=content):
                        chat.append({"role": "system", "content": content})
                    case UserPromptPart(content=content):
                        chat.append({"role": "user", "content": content if isinstance(content, str) else str(content)})
                    case ToolReturnPart():
                        chat.append(_tool(part.tool_call_id, part.tool_name, part.model_response_str()))
                    case RetryPromptPart() if part.tool_name is not None:
                        chat.append(_tool(part.tool_call_id, part.tool_name, part.model_response()))
                    case RetryPromptPart():
                        chat.append({"role": "user", "content": part.model_response()})
        else:
            text = "".join(part.content for part in message.parts if isinstance(part, TextPart))
            calls = [
                {
                    "id": part.tool_call_id,
                    "type": "function",
                    "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
                }
                for part in message.parts
                if isinstance(part, ToolCallPart)
            ]
            chat.append({"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})})
    return chat


def _tool(call_id: str, name: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": content}


def tool_schemas(desk: Desk) -> list[dict[str, Any]]:
    """The tools as a request names them, `submit` among them."""
    from pydantic_ai import Tool

    made = [Tool(function).tool_def for function in desk.tools]
    listed = [(tool.name, tool.description or "", tool.parameters_json_schema) for tool in made]
    listed.append(("submit", "Submit the ranking.", Submission.model_json_schema()))
    return [
        json.loads(json.dumps({"type": "function", "function": {"name": n, "description": d, "parameters": p}}))
        for n, d, p in listed
    ]
