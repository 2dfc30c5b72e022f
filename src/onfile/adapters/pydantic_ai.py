"""Pydantic AI: one capability that brings the block, `remember` and the digest of the run."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, cast

from pydantic_ai.capabilities import AbstractCapability, durable_operation
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    ToolCallPart,
    UserContent,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from ..digest import MemoryDigest
from ..memory import Memory
from ..records import Actor
from ..remember import remember_tool
from ..scopes import ScopeContext
from .turn import OnError, Turns, context_of, keep, kept

_KEPT = "onfile_memory"
"""Where a response of a run that waits for an approval keeps the digest, beside the calls that wait."""


@dataclass
class MemoryCapability(AbstractCapability[Any]):
    """Give an agent memory: `Agent(model, capabilities=[MemoryCapability(memory, actor=lambda ctx: ctx.deps.actor)])`.

    List it before retrieval and skills, so that the block stands in front of theirs.
    """

    memory: Memory
    _: KW_ONLY
    actor: Callable[[RunContext[Any]], Actor | ScopeContext]
    """Answers for whom a run is; a `ScopeContext` for a thread that several people read."""
    on_error: OnError = "fail"
    """What a provider's failure does: fail the run, or let it go on without memory and say so in an event."""
    id: str | None = "onfile_memory"  # pyright: ignore[reportIncompatibleVariableOverride]  # as the framework's own capabilities declare it
    """Part of the names of the durable steps and of the instructions; change it never."""
    _kept: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)
    _toolset: FunctionToolset[Any] | None = field(default=None, init=False, repr=False, compare=False)

    async def for_run(self, ctx: RunContext[Any]) -> MemoryCapability:  # noqa: ARG002  # the framework's signature
        """Answer a copy with no digest yet; it asks nothing, because engines call this again on a replay."""
        clone = copy.copy(self)  # not `replace`: the clones share one toolset, which engines register by its id
        clone._kept = None
        return clone

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Resolve the digest before the first model request, or take up that of the run which waited."""
        await self.digest(ctx)

    async def digest(self, ctx: RunContext[Any]) -> MemoryDigest:
        """Answer this run's digest, resolved once."""
        who = self._context(ctx)
        if self._kept is None:
            # With plain deferred tools an approval is answered in a new run, which must not see a
            # changed block: the digest travels in the history, with the calls that waited.
            waiting = _waiting(ctx.messages)
            self._kept = waiting if waiting is not None else await self._offer(ctx, _own_text(ctx.prompt))
        return kept(self._kept, who)

    def get_instructions(self) -> Any:
        """Contribute the block as a dynamic part: after the host's own instructions."""
        mine = self.id or _KEPT

        # A callable on purpose: a plain string would be taken for static text and land before the contributors.
        async def block(ctx: RunContext[Any]) -> InstructionPart | None:
            capability: Any = ctx.capabilities[mine]
            digest: MemoryDigest = await capability.digest(ctx)
            return InstructionPart(digest.block, name="digest") if digest.block else None

        return block

    def get_toolset(self) -> FunctionToolset[Any]:
        """Contribute `remember`, as one toolset for all runs."""
        if self._toolset is None:
            mine, offered = self.id or _KEPT, remember_tool()

            async def remember(ctx: RunContext[Any], **arguments: Any) -> str:
                capability: Any = ctx.capabilities[mine]  # this run's own copy
                digest: MemoryDigest = await capability.digest(ctx)
                kept_now = keep(digest, capability._context(ctx))
                return await capability._write(ctx, kept_now, arguments, ctx.tool_call_id or "")

            # From the schema as it is: arguments are judged in words by `Memory.remember`, not by pydantic.
            tool = Tool[Any].from_schema(
                remember, offered.name, offered.description, offered.json_schema, takes_ctx=True, sequential=True
            )
            # Not wrapped by durable engines: it runs in the workflow, and the durable operation inside is the step.
            tool.metadata = {"temporal": False, "prefect": False, "onfile": False}
            self._toolset = FunctionToolset[Any]([tool], id=mine)
        return self._toolset

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Leave `remember` out of a run in which it could only be refused."""
        if self.memory.tools(await self.digest(ctx)):
            return tool_defs
        return [tool for tool in tool_defs if tool.toolset_id != self.id]

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,  # noqa: ARG002  # the framework's signature
        response: ModelResponse,
    ) -> ModelResponse:
        """Keep the digest beside tool calls, one of which may have to wait for a person."""
        if any(isinstance(part, ToolCallPart) for part in response.parts):
            kept_now = keep(await self.digest(ctx), self._context(ctx))
            response.metadata = {**(response.metadata or {}), _KEPT: kept_now}
        return response

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Take the digest out of the history again where no call waits: nothing will be resumed."""
        if not isinstance(result.output, DeferredToolRequests):
            for message in [*ctx.messages, *result.all_messages()]:
                if isinstance(message, ModelResponse) and message.metadata:
                    message.metadata = {name: held for name, held in message.metadata.items() if name != _KEPT} or None
        return result

    @durable_operation("digest")
    async def _offer(self, ctx: RunContext[Any], query: str) -> dict[str, Any]:
        who = self._context(ctx)
        return keep(await self._turns().offer(who, query=query, run_id=ctx.run_id), who)

    @durable_operation("remember")
    async def _write(
        self, ctx: RunContext[Any], recorded: dict[str, Any], arguments: dict[str, Any], tool_call_id: str
    ) -> str:
        # The digest is an argument: an engine may run this where the run's own copy does not exist.
        who = self._context(ctx)
        return await self._turns().remember(
            arguments, digest=kept(recorded, who), ctx=who, run_id=ctx.run_id, tool_call_id=tool_call_id or None
        )

    def _context(self, ctx: RunContext[Any]) -> ScopeContext:
        agent = ctx.agent.name if ctx.agent else None
        return context_of(self.actor(ctx), thread_id=ctx.conversation_id, agent_name=agent)

    def _turns(self) -> Turns:
        return Turns(memory=self.memory, on_error=self.on_error)


def _own_text(prompt: str | Sequence[UserContent] | None) -> str:
    """Answer the user's own text of this turn: no images, no files."""
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    texts = [part.content if isinstance(part, TextContent) else part for part in prompt]
    return "\n".join(text for text in texts if isinstance(text, str))


def _waiting(messages: Sequence[ModelMessage]) -> dict[str, Any] | None:
    """Answer the digest kept with calls that are still without an answer, or None."""
    answered: set[str | None] = set()
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            # Returns and retries alike name the call that they answer; the other parts have none.
            answered |= {getattr(part, "tool_call_id", None) for part in message.parts}
            continue
        calls = {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
        held = (message.metadata or {}).get(_KEPT)
        return cast("dict[str, Any]", held) if calls - answered and isinstance(held, dict) else None
    return None
