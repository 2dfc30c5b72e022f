"""LangChain and LangGraph: one middleware that brings the block, `remember` and the digest of the run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, NotRequired, cast
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, ToolCallRequest
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.runtime import Runtime
from langgraph.types import Command

from ..blocking import Blocking
from ..digest import MemoryDigest
from ..memory import Memory
from ..records import Actor
from ..remember import remember_tool
from ..scopes import ScopeContext
from .turn import WITHOUT_MEMORY, OnError, Turns, context_of, keep, kept

_NAME = remember_tool().name


class MemoryState(AgentState[Any]):
    """The state of an agent with memory; what is added stands in the checkpoint and in no input or output."""

    onfile_memory: NotRequired[Annotated[dict[str, Any] | None, PrivateStateAttr]]


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Give an agent memory: `create_agent(model, middleware=[MemoryMiddleware(memory, actor=...)])`.

    List it before middleware of yours that adds retrieval or skills, so that the block stands in
    front of theirs. With a checkpointer use `durability="sync"`.
    """

    state_schema = MemoryState

    def __init__(
        self, memory: Memory | Blocking, *, actor: Callable[[Any], Actor | ScopeContext], on_error: OnError = "fail"
    ) -> None:
        """Take a memory and say for whom a run is.

        Args:
            memory: A `Memory` for `ainvoke` and `astream`; a `Blocking` for `invoke` and `stream`.
            actor: Called with LangGraph's runtime, as `lambda runtime: runtime.context.actor`;
                a `ScopeContext` for a thread that several people read.
            on_error: What a provider's failure does: fail the run, or let it go on without memory
                and say so in an event.
        """
        super().__init__()
        self._blocking = memory if isinstance(memory, Blocking) else None
        self._turns = Turns(memory=memory.memory if isinstance(memory, Blocking) else memory, on_error=on_error)
        self._actor = actor
        offered = remember_tool()
        self.tools: Sequence[BaseTool] = [
            # Only its schema is used: `wrap_tool_call` answers the calls, and sees them as the model sent them.
            StructuredTool.from_function(
                func=_unreachable, name=offered.name, description=offered.description, args_schema=offered.json_schema
            )
        ]

    async def abefore_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Resolve the digest: a checkpoint of its own, once per invoke, not again on a resume."""
        ctx, run_id = self._context(runtime), str(uuid4())
        digest = await self._turns.offer(ctx, query=_own_text(state["messages"]), run_id=run_id)
        return {"onfile_memory": {"run": run_id, **keep(digest, ctx)}}

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Put the block behind the system prompt and leave `remember` out where it could only be refused."""
        return await handler(self._with_memory(request))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Answer `remember` by the scopes that the run recorded."""
        if request.tool_call["name"] != _NAME:
            return await handler(request)
        return _told(request, await self._remember(request))

    def before_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Do as `abefore_agent`, for `invoke`."""
        return self._door().run(self.abefore_agent(state, runtime))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Do as `awrap_model_call`, for `invoke`."""
        return handler(self._with_memory(request))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Do as `awrap_tool_call`, for `invoke`."""
        if request.tool_call["name"] != _NAME:
            return handler(request)
        return _told(request, self._door().run(self._remember(request)))

    async def _remember(self, request: ToolCallRequest) -> str:
        sent: Any = request  # its type leaves the state open
        digest, ctx, run_id = self._recorded(sent.state, sent.runtime)
        return await self._turns.remember(
            request.tool_call["args"], digest=digest, ctx=ctx, run_id=run_id, tool_call_id=request.tool_call["id"]
        )

    def _with_memory(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        digest, _, _ = self._recorded(request.state, request.runtime)
        if not digest.writable:
            tools = [tool for tool in request.tools if not (isinstance(tool, BaseTool) and tool.name == _NAME)]
            request = request.override(tools=tools)
        if not digest.block:
            return request
        base = request.system_message
        content = [] if base is None else base.content
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        block = digest.block if base is None else f"\n\n{digest.block}"
        # One more content block: the host's own stay byte for byte, their cache marks included.
        told = (base or SystemMessage(content="")).model_copy(
            update={"content": [*blocks, {"type": "text", "text": block}]}
        )
        return request.override(system_message=told)

    def _recorded(self, state: Any, runtime: Any) -> tuple[MemoryDigest, ScopeContext, str | None]:
        ctx = self._context(runtime)
        recorded = cast("dict[str, Any] | None", state.get("onfile_memory"))
        if recorded is None:
            # It was parked by an agent without memory, and finishes as it began.
            return WITHOUT_MEMORY, ctx, None
        return kept(recorded, ctx), ctx, recorded.get("run")

    def _context(self, runtime: Any) -> ScopeContext:
        thread = getattr(getattr(runtime, "execution_info", None), "thread_id", None)
        return context_of(self._actor(runtime), thread_id=thread)

    def _door(self) -> Blocking:
        if self._blocking is None:
            msg = "this agent's memory is awaited: use ainvoke, or give MemoryMiddleware an onfile.blocking.Blocking"
            raise TypeError(msg)
        return self._blocking


def _told(request: ToolCallRequest, message: str) -> ToolMessage:
    return ToolMessage(content=message, name=_NAME, tool_call_id=request.tool_call["id"])


def _unreachable(**arguments: Any) -> str:  # noqa: ARG001  # only the signature of a tool
    msg = "remember was called past the middleware that answers it; run the agent that create_agent built"
    raise RuntimeError(msg)


def _own_text(messages: Sequence[AnyMessage]) -> str:
    """Answer the user's own text of this turn."""
    last = next((message for message in reversed(messages) if isinstance(message, HumanMessage)), None)
    return "" if last is None else str(last.text)
