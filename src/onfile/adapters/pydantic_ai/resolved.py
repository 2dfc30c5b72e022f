"""What a capability resolves once for a run and keeps: for its model calls, and through an approval."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeVar, cast

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import InstructionPart, ModelMessage, ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from ...records import Actor
from ...remember import MemoryTool
from ...scopes import ScopeContext
from ...skills import SkillTool
from ..turn import context_of

SelfT = TypeVar("SelfT", bound="ResolvedOnce")


@dataclass
class ResolvedOnce(AbstractCapability[Any]):
    """A capability with a block and one tool, both of which follow from what it resolved when the run began.

    With plain deferred tools an approval is answered in a new run, which must not see a changed
    block: what was resolved travels in the history, beside the calls that wait.
    """

    _: KW_ONLY
    actor: Callable[[RunContext[Any]], Actor | ScopeContext]
    """Answers for whom a run is; a `ScopeContext` for a thread that several people read."""
    _kept: dict[str, Any] | None = field(default=None, init=False, repr=False, compare=False)
    _toolset: FunctionToolset[Any] | None = field(default=None, init=False, repr=False, compare=False)

    async def for_run(self: SelfT, ctx: RunContext[Any]) -> SelfT:  # noqa: ARG002  # the framework's signature
        """Answer a copy that resolved nothing yet; it asks nothing, because engines call this again on a replay."""
        clone = copy.copy(self)  # not `replace`: the clones share one toolset, which engines register by its id
        clone._kept = None
        return clone

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Resolve before the first model request, or take up what the run which waited had resolved."""
        await self.recorded(ctx)

    async def recorded(self, ctx: RunContext[Any]) -> dict[str, Any]:
        """Answer what this run resolved, as JSON values."""
        if self._kept is None:
            waiting = self._waiting(ctx.messages)
            self._kept = waiting if waiting is not None else await self._resolve(ctx)
        return self._kept

    @abstractmethod
    async def _resolve(self, ctx: RunContext[Any]) -> dict[str, Any]:
        """Ask whoever knows, in a durable operation."""

    @abstractmethod
    async def _shown(self, ctx: RunContext[Any]) -> tuple[str, bool]:
        """Answer this run's block, and whether its tool is offered."""

    @abstractmethod
    async def _call(self, ctx: RunContext[Any], arguments: dict[str, Any]) -> str:
        """Answer one call of the tool."""

    @abstractmethod
    def _offered(self) -> MemoryTool | SkillTool:
        """Answer the tool as a model is offered it."""

    def get_instructions(self) -> Any:
        """Contribute the block as a dynamic part: after the host's own instructions."""

        # A callable on purpose: a plain string would be taken for static text and land before the contributors.
        async def block(ctx: RunContext[Any]) -> InstructionPart | None:
            shown, _ = await self._of_this_run(ctx)._shown(ctx)
            return InstructionPart(shown, name="digest") if shown else None

        return block

    def get_toolset(self) -> FunctionToolset[Any]:
        """Contribute the tool, as one toolset for all runs."""
        if self._toolset is None:
            offered = self._offered()

            async def call(ctx: RunContext[Any], **arguments: Any) -> str:
                return await self._of_this_run(ctx)._call(ctx, arguments)

            # From the schema as it is: arguments are judged in words, not by pydantic.
            tool = Tool[Any].from_schema(
                call, offered.name, offered.description, offered.json_schema, takes_ctx=True, sequential=True
            )
            # Not wrapped by durable engines: it runs in the workflow, and the durable operation inside is the step.
            tool.metadata = {"temporal": False, "prefect": False, "onfile": False}
            self._toolset = FunctionToolset[Any]([tool], id=self._place)
        return self._toolset

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Leave the tool out of a run in which it could only be refused."""
        _, offered = await self._shown(ctx)
        return tool_defs if offered else [tool for tool in tool_defs if tool.toolset_id != self._place]

    async def after_model_request(
        self,
        ctx: RunContext[Any],
        *,
        request_context: ModelRequestContext,  # noqa: ARG002  # the framework's signature
        response: ModelResponse,
    ) -> ModelResponse:
        """Keep what was resolved beside tool calls, one of which may have to wait for a person."""
        if any(isinstance(part, ToolCallPart) for part in response.parts):
            response.metadata = {**(response.metadata or {}), self._place: await self.recorded(ctx)}
        return response

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Take it out of the history again where no call waits: nothing will be resumed."""
        if not isinstance(result.output, DeferredToolRequests):
            for message in [*ctx.messages, *result.all_messages()]:
                if isinstance(message, ModelResponse) and message.metadata:
                    rest = {name: held for name, held in message.metadata.items() if name != self._place}
                    message.metadata = rest or None
        return result

    @property
    def _place(self) -> str:
        """The name under which this is known to the run, in the history and to engines."""
        return self.id or type(self).__name__

    def _of_this_run(self, ctx: RunContext[Any]) -> ResolvedOnce:
        return cast("ResolvedOnce", ctx.capabilities[self._place])

    def _context(self, ctx: RunContext[Any]) -> ScopeContext:
        agent = ctx.agent.name if ctx.agent else None
        return context_of(self.actor(ctx), thread_id=ctx.conversation_id, agent_name=agent)

    def _waiting(self, messages: Sequence[ModelMessage]) -> dict[str, Any] | None:
        """Answer what was kept with calls that are still without an answer, or None."""
        answered: set[str | None] = set()
        for message in reversed(messages):
            if isinstance(message, ModelRequest):
                # Returns and retries alike name the call that they answer; the other parts have none.
                answered |= {getattr(part, "tool_call_id", None) for part in message.parts}
                continue
            calls = {part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)}
            held = (message.metadata or {}).get(self._place)
            return cast("dict[str, Any]", held) if calls - answered and isinstance(held, dict) else None
        return None
