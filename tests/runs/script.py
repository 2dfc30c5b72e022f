"""A model that follows a script, and a short way to what a journal holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from onfile.records import Actor
from onfile.runs.journal import JournalEngine
from onfile.scopes import ScopeContext

ANA = Actor(id="ana", tenant_ref="acme")
CTX = ScopeContext(actor=ANA, thread_id="t1")


def call(tool: str, id: str = "c1", **arguments: Any) -> ToolCallPart:
    """One tool call of a model."""
    return ToolCallPart(tool_name=tool, args=arguments, tool_call_id=id)


def remember(id: str = "c1", *, key: str = "units", fact: str = "kilometres", **more: Any) -> ToolCallPart:
    """A call of `remember`."""
    return call("remember", id, key=key, fact=fact, **more)


@dataclass
class Script:
    """What the model says, one item per request: a text, the tool calls of one step, or what it raises."""

    steps: Sequence[str | list[ToolCallPart] | Exception]
    requests: list[list[ModelMessage]] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    offered: list[list[str]] = field(default_factory=list)
    parts: list[list[tuple[str, bool]]] = field(default_factory=list)

    def model(self) -> FunctionModel:
        """The script as a model."""
        return FunctionModel(self._answer, stream_function=self._stream)

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> str | list[ToolCallPart]:
        self.requests.append(list(messages))
        self.offered.append([tool.name for tool in info.function_tools])
        parts = info.model_request_parameters.instruction_parts or []
        self.parts.append([(part.content, part.dynamic) for part in parts])
        self.prompts.append("\n\n".join(part.content for part in parts))
        # By what was said since the user's last message, so that a resumed process goes on where it stopped.
        asked = [place for place, one in enumerate(messages) if any(p.part_kind == "user-prompt" for p in one.parts)]
        step = self.steps[sum(isinstance(one, ModelResponse) for one in messages[asked[-1] :])]
        if isinstance(step, Exception):
            raise step
        return step

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = self._next(messages, info)
        return ModelResponse(parts=[TextPart(step)] if isinstance(step, str) else list(step))

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        step = self._next(messages, info)
        if isinstance(step, str):
            for word in step.split(" "):
                yield word + " "
        else:
            for place, one in enumerate(step):
                yield {
                    place: DeltaToolCall(
                        name=one.tool_name, json_args=one.args_as_json_str(), tool_call_id=one.tool_call_id
                    )
                }


async def names(engine: JournalEngine, run_id: str = "r1") -> list[str]:
    """The names of a run's checkpoints in order."""
    return [checkpoint.name for checkpoint in await engine.checkpoints(run_id)]


async def value(engine: JournalEngine, name: str, run_id: str = "r1") -> Any:
    """What a checkpoint of a run holds."""
    return next(one.value for one in await engine.checkpoints(run_id) if one.name == name)
