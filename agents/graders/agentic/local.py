"""A model in this process as the judge: any function from chat messages and tools to text. Needs the `llm` extra.

    model = local_model(lambda messages, tools: my_generate(messages, tools), name="my-judge")
    grader = AgenticGrader(model)

Calls of tools are read from the text as chat templates of the Qwen and Hermes kind write them, and as
`gagar grader export` has them for training: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from gagar_env.agents.graders.agentic.judge import as_chat
from gagar_env.grader_eval.sessions import for_template

Generate = Callable[[list[dict[str, Any]], list[dict[str, Any]]], str]
"""From messages and tools, as chat templates take them, to what the model writes."""
_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.S)


def local_model(generate: Generate, *, name: str = "local") -> FunctionModel:
    """A model for `AgenticGrader(model)`.

    Args:
        generate: Called by one thread at a time.
        name: In records.
    """
    lock = threading.Lock()

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        defined = [*info.function_tools, *info.output_tools]
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description or "",
                    "parameters": tool.parameters_json_schema,
                },
            }
            for tool in defined
        ]
        with lock:
            text = generate(for_template(as_chat(messages)), tools)
        return ModelResponse(parts=read_reply(text, {tool.name for tool in defined}))

    return FunctionModel(answer, model_name=name)


def read_reply(text: str, tools: Collection[str]) -> list[TextPart | ToolCallPart]:
    """What a model wrote as calls of tools that there are; as text where there is no such call."""
    calls: list[TextPart | ToolCallPart] = []
    for found in _CALL.findall(text):
        try:
            call = json.loads(found)
        except ValueError:
            continue
        if isinstance(call, dict) and call.get("name") in tools and isinstance(call.get("arguments"), dict):
            calls.append(ToolCallPart(tool_name=call["name"], args=call["arguments"]))
    return calls or [TextPart(content=text)]
