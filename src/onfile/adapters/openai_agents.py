"""OpenAI Agents SDK: a model input filter that brings the block, a tool, and the digest in the run's context."""

from __future__ import annotations

import json
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4
from weakref import WeakSet

from agents import AgentBase, FunctionTool, RunContextWrapper
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext

from ..digest import MemoryDigest
from ..memory import Memory
from ..records import Actor
from ..remember import remember_tool
from ..scopes import ScopeContext
from .turn import OnError, Turns, context_of, keep, kept

_PLACE = "onfile_memory"


@dataclass(kw_only=True)
class MemoryContext:
    """Inherit your run's context from this, so that the digest has its place in it.

    A context that is a dict needs no place: the digest is kept under `onfile_memory`.
    """

    onfile_memory: dict[str, Any] | None = None
    """The digest as JSON values. It travels with the context, through `RunState` as well."""


class AgentsMemory:
    """Give agents memory: `tools=[memory.tool]` and `RunConfig(call_model_input_filter=memory.filter)`.

    The filter serves every agent of a run, handoffs included. Give the tool at least to the agent
    that a run starts with, and each run a context of its own.
    """

    def __init__(
        self, memory: Memory, *, actor: Callable[[Any], Actor | ScopeContext], on_error: OnError = "fail"
    ) -> None:
        """Take a memory and say for whom a run is.

        Args:
            memory: What to read from and write to.
            actor: Called with the run's context, as `lambda context: context.actor`; a
                `ScopeContext` to name the conversation, or for one that several people read.
            on_error: What a provider's failure does: fail the run, or let it go on without memory
                and say so in an event.
        """
        self._turns = Turns(memory=memory, on_error=on_error)
        self._actor = actor
        self._begun: WeakSet[RunContextWrapper[Any]] = WeakSet()
        offered = remember_tool()
        self.tool = FunctionTool(
            name=offered.name,
            description=offered.description,
            params_json_schema=offered.json_schema,
            on_invoke_tool=self._remember,
            # The schema is strict as it is; the provider's strict mode does not know all of its words.
            strict_json_schema=False,
            is_enabled=self._is_offered,
        )

    async def filter(self, data: CallModelData[Any]) -> ModelInputData:
        """Append the block to the instructions of whichever agent is about to call the model."""
        sent = data.model_data
        digest = await self._digest(data.context, sent.input)
        if not digest.block:
            return sent
        instructions = f"{sent.instructions}\n\n{digest.block}" if sent.instructions else digest.block
        return ModelInputData(input=sent.input, instructions=instructions)

    async def _is_offered(self, run: RunContextWrapper[Any], agent: AgentBase) -> bool:  # noqa: ARG002  # the framework's signature
        # The SDK asks this before every model call, and it is the first that a run lets us know of
        # itself: a context that served an earlier run still holds that one's digest.
        if run.usage.requests == 0 and run not in self._begun:
            self._begun.add(run)
            _put(run.context, None)
        digest = await self._digest(run.context, run.turn_input)
        return bool(self._turns.memory.tools(digest))

    async def _remember(self, run: ToolContext[Any], arguments: str) -> str:
        sent: object = arguments
        with suppress(ValueError):  # what is no JSON is refused in words, as it is
            sent = json.loads(arguments)
        ctx = self._context(run.context)
        recorded = _got(run.context)
        if recorded is None:
            return "Not recorded. This run has no memory."
        return await self._turns.remember(
            sent, digest=kept(recorded, ctx), ctx=ctx, run_id=recorded.get("run"), tool_call_id=run.tool_call_id
        )

    async def _digest(self, context: Any, items: Sequence[Any]) -> MemoryDigest:
        ctx = self._context(context)
        recorded = _got(context)
        if recorded is None:
            run_id = str(uuid4())
            digest = await self._turns.offer(ctx, query=_own_text(items), run_id=run_id)
            recorded = {"run": run_id, **keep(digest, ctx)}
            _put(context, recorded)
        return kept(recorded, ctx)

    def _context(self, context: Any) -> ScopeContext:
        return context_of(self._actor(context))


def _got(context: Any) -> dict[str, Any] | None:
    if isinstance(context, MutableMapping):
        return cast("MutableMapping[str, Any]", context).get(_PLACE)
    return getattr(context, _PLACE, None)


def _put(context: Any, recorded: dict[str, Any] | None) -> None:
    if isinstance(context, MutableMapping):
        cast("MutableMapping[str, Any]", context)[_PLACE] = recorded
        return
    if not hasattr(context, _PLACE):
        msg = (
            f"the run's context is a {type(context).__name__} with no place for the digest: "
            "inherit it from onfile.adapters.openai_agents.MemoryContext, or use a dict"
        )
        raise TypeError(msg)
    setattr(context, _PLACE, recorded)


def _own_text(items: Sequence[Any]) -> str:
    """Answer the user's own text of this turn: what stands in the last message of theirs."""
    for item in reversed(items):
        message = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        if message.get("role") != "user":
            continue
        content: Any = message.get("content")
        if isinstance(content, str):
            return content
        parts = cast("list[Any]", content if isinstance(content, list) else [])
        texts = [cast("dict[str, Any]", part).get("text") for part in parts if isinstance(part, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))
    return ""
