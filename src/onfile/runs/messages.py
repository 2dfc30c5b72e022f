"""Messages: what is kept in JSON, as the model classes of Pydantic AI take it and answer it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import KnownModelName, Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from ..prompt import SystemPrompt
from .journal import Json, ThreadEntry

TextSink = Callable[[str], Awaitable[None] | None]
AnyModel = Model | KnownModelName | str
_response: TypeAdapter[ModelResponse] = TypeAdapter(ModelResponse)

SUMMARY = "Earlier in this conversation, in short: "


async def ask_model(
    model: AnyModel,
    messages: Sequence[ModelMessage],
    *,
    prompt: SystemPrompt,
    tools: Sequence[Mapping[str, Any]],
    settings: ModelSettings | None,
    on_text: TextSink | None,
) -> Json:
    """Make one request and answer the response as JSON, its calls under ids of their own.

    With `on_text`, its text is handed over as it comes.
    """
    parameters = ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool["name"], description=tool["description"], parameters_json_schema=tool["schema"])
            for tool in tools
        ],
        # Where the parts stop being the same for everyone, a provider's cache may end: so they are told apart.
        instruction_parts=[InstructionPart(content=part) for part in prompt.stable]
        + [InstructionPart(content=part, dynamic=True) for part in prompt.changing],
        allow_text_output=True,
    )
    sent = _with_instructions(messages, prompt)
    if on_text is None:
        response = await model_request(model, sent, model_settings=settings, model_request_parameters=parameters)
        return _apart(_response.dump_python(response, mode="json"))
    async with model_request_stream(
        model, sent, model_settings=settings, model_request_parameters=parameters
    ) as stream:
        async for event in stream:
            text = _text_of(event)
            if text:
                handed = on_text(text)
                if isawaitable(handed):
                    await handed
        return _apart(_response.dump_python(stream.get(), mode="json"))


def load_response(value: Json) -> ModelResponse:
    """Read a response back."""
    return _response.validate_python(value)


def calls_of(response: ModelResponse) -> list[tuple[str, str, Json]]:
    """Answer the response's tool calls as (id, tool, arguments); arguments that are no object stay as they are."""
    calls: list[tuple[str, str, Json]] = []
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            try:
                arguments: Json = part.args_as_dict(raise_if_invalid=True)
                json.dumps(
                    arguments, allow_nan=False
                )  # Python's parsers read NaN, which is no JSON and no journal keeps
            except (ValueError, AssertionError, TypeError):
                arguments = part.args
            calls.append((part.tool_call_id, part.tool_name, arguments))
    return calls


def user_message(text: str) -> ModelRequest:
    """Make a message of what the user said."""
    return ModelRequest(parts=[UserPromptPart(content=text)])


def results_message(results: Sequence[Json]) -> ModelRequest:
    """Make one message of the results of a step's calls, in the order of the calls."""
    return ModelRequest(parts=[_result(result) for result in results])


def call_result(
    *, tool: str, call_id: str, content: str, outcome: Literal["success", "failed", "denied"]
) -> dict[str, Json]:
    """Answer a call's result as a thread keeps it."""
    return {
        "part_kind": "tool-return",
        "tool_name": tool,
        "tool_call_id": call_id,
        "content": content,
        "outcome": outcome,
    }


def load_history(kept: Mapping[str, Json]) -> list[ModelMessage]:
    """Build the messages that `load:thread` chose."""
    messages: list[ModelMessage] = []
    if kept["summary"]:
        messages.append(user_message(SUMMARY + kept["summary"]))
    results: list[Json] = []
    for entry in kept["messages"]:
        if entry["kind"] == "tool":
            results.append(entry["content"]["message"])
            continue
        if results:
            messages.append(results_message(results))
            results = []
        if entry["kind"] == "user":
            messages.append(user_message(entry["content"]["text"]))
        else:
            messages.append(load_response(entry["content"]["message"]))
    if results:
        messages.append(results_message(results))
    return messages


def answered(turn: Sequence[ThreadEntry]) -> bool:
    """Tell whether every call of a turn has its result."""
    called = [
        part["tool_call_id"]
        for entry in turn
        if entry.kind == "assistant"
        for part in entry.content["message"]["parts"]
        if part["part_kind"] == "tool-call"
    ]
    return len(called) == sum(entry.kind == "tool" for entry in turn)


def plain_text(entry: ThreadEntry) -> str:
    """Answer what a message says, without the arguments and results of `remember`."""
    if entry.kind == "user":
        return f"User: {entry.content['text']}"
    message = entry.content["message"]
    facts: Mapping[str, Json] = entry.content.get("facts") or {}
    if entry.kind == "tool":
        return "" if message["tool_call_id"] in facts else f"Result of {message['tool_name']}: {message['content']}"
    said = [f"Assistant: {part['content']}" for part in message["parts"] if part["part_kind"] == "text"]
    called = [
        f"Called {part['tool_name']}: {part['args']}"
        for part in message["parts"]
        if part["part_kind"] == "tool-call" and part["tool_call_id"] not in facts
    ]
    return "\n".join(said + called)


def _apart(response: Json) -> Json:
    """Give a call whose id another one of the response has an id of its own: by it facts are found and results told."""
    taken = set[str]()
    for part in response["parts"]:
        if part["part_kind"] == "tool-call":
            name = first = part["tool_call_id"]
            again = 2
            while name in taken:
                name, again = f"{first}~{again}", again + 1
            taken.add(name)
            part["tool_call_id"] = name
    return response


def _result(result: Json) -> ToolReturnPart:
    return ToolReturnPart(
        tool_name=result["tool_name"],
        content=result["content"],
        tool_call_id=result["tool_call_id"],
        outcome=result["outcome"],
    )


def _with_instructions(messages: Sequence[ModelMessage], prompt: SystemPrompt) -> list[ModelMessage]:
    # On the last request as well: it is where model classes look that know no instruction parts.
    *before, last = messages
    if isinstance(last, ModelRequest):
        last = ModelRequest(parts=last.parts, instructions=prompt.text or None)
    return [*before, last]


def _text_of(event: Any) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""
