"""Microsoft Agent Framework: a context provider that brings the block, `remember` and the digest of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast
from uuid import uuid4

from agent_framework import (
    AgentSession,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionTool,
    Message,
    MiddlewareFailure,
    SessionContext,
    SupportsAgentRun,
)
from pydantic import BaseModel

from ..digest import MemoryDigest
from ..memory import Memory
from ..records import Actor
from ..remember import remember_tool
from ..scopes import ScopeContext
from .turn import OnError, Turns, context_of, keep, kept

_WAITING = "waiting"
_MANY = 10  # runs of one session whose approvals nobody ever answered


class MemoryContextProvider(ContextProvider):
    """Give an agent memory: `Agent(client, context_providers=[MemoryContextProvider(memory, actor=...)])`.

    List it before providers of yours that add retrieval or skills, so that the block stands in
    front of theirs. Give each conversation a session: a run that waits for a person keeps its
    digest there, and without one the answer is a new run.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        actor: Callable[[AgentSession], Actor | ScopeContext],
        on_error: OnError = "fail",
        source_id: str = "onfile_memory",
    ) -> None:
        """Take a memory and say for whom a run is.

        Args:
            memory: What to read from and write to.
            actor: Called with the run's session, as `lambda session: Actor(id=session.state["user"])`;
                a `ScopeContext` for a conversation that several people read.
            on_error: What a provider's failure does: fail the run, or let it go on without memory
                and say so in an event.
            source_id: Where in the session's state the digest of a waiting run is kept.
        """
        super().__init__(source_id)
        self._turns = Turns(memory=memory, on_error=on_error)
        self._actor = actor

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Resolve the digest, or take up that of the run which waited; add the block and the tool."""
        ctx = context_of(self._actor(session), thread_id=session.session_id, agent_name=agent.name)
        recorded = _resumed(state, context.input_messages)
        if recorded is None:
            run_id = str(uuid4())
            digest = await self._turns.offer(ctx, query=_own_text(context.input_messages), run_id=run_id)
            recorded = {"run": run_id, **keep(digest, ctx)}
        else:
            digest = kept(recorded, ctx)
        # Beside the run, not in the session: two runs of one session must not take each other's.
        context.metadata[self.source_id] = recorded
        if digest.block:
            # The framework puts one line break between instructions; a blank line is what parts them.
            context.extend_instructions(self.source_id, f"\n{digest.block}")
        if self._turns.memory.tools(digest):
            context.extend_tools(self.source_id, [_Remember(self._turns, digest, ctx, recorded["run"])])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,  # noqa: ARG002  # the framework's signature
        session: AgentSession,  # noqa: ARG002  # the framework's signature
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Keep the digest of a run that waits for a person, and drop it where nothing waits any more."""
        recorded = context.metadata.get(self.source_id)
        if recorded is None:
            return
        asked = [] if context.response is None else [_named(one) for one in context.response.user_input_requests]
        answered = _answered(context.input_messages)
        left = [request for request in recorded.get("requests", []) if request not in answered]
        waiting = [one for one in state.get(_WAITING, []) if one["run"] != recorded["run"]]
        if requests := [*left, *asked]:
            waiting.append({**recorded, "requests": requests})
        if waiting:
            state[_WAITING] = waiting[-_MANY:]
        else:
            state.pop(_WAITING, None)


class _Remember(FunctionTool):
    """`remember` for one run, its arguments judged in words by `Memory.remember` and not by the framework."""

    def __init__(self, turns: Turns, digest: MemoryDigest, ctx: ScopeContext, run_id: str) -> None:
        offered = remember_tool()
        super().__init__(
            name=offered.name, description=offered.description, input_model=offered.json_schema, func=_unreachable
        )
        self._run = (turns, digest, ctx, run_id)

    async def invoke(
        self,
        *,
        arguments: BaseModel | Mapping[str, Any] | None = None,
        context: FunctionInvocationContext | None = None,  # noqa: ARG002  # the framework's signature
        tool_call_id: str | None = None,
        skip_parsing: bool = False,
        **kwargs: Any,  # noqa: ARG002  # the framework's signature
    ) -> Any:
        """Answer one call by the scopes that the run recorded."""
        turns, digest, ctx, run_id = self._run
        try:
            message = await turns.remember(arguments, digest=digest, ctx=ctx, run_id=run_id, tool_call_id=tool_call_id)
        except Exception as error:
            # Any other exception would be told to the model as a failed tool, and to nobody else.
            raise MiddlewareFailure(str(error)) from error
        return message if skip_parsing else [Content.from_text(message)]


def _unreachable(**arguments: Any) -> str:  # noqa: ARG001  # a tool without a function is one that the host answers
    msg = "remember was called past invoke(); run it through the agent it was made for"
    raise RuntimeError(msg)


def _resumed(state: dict[str, Any], messages: Sequence[Message]) -> dict[str, Any] | None:
    """Answer what the run kept that these messages answer, or None."""
    answers = _answered(messages)
    waiting = cast("list[dict[str, Any]]", state.get(_WAITING, []))
    return next((one for one in reversed(waiting) if answers & set(one["requests"])), None)


def _answered(messages: Sequence[Message]) -> set[str]:
    """Answer the names of what the messages answer."""
    return {_named(content) for message in messages if message.role != "assistant" for content in message.contents}


def _named(content: Content) -> str:
    """Name a request as its answer does: a call of the host's by the call, an approval by an id of its own."""
    return str(content.call_id or content.id)


def _own_text(messages: Sequence[Message]) -> str:
    """Answer the user's own text of this turn."""
    last = next((message for message in reversed(messages) if message.role == "user"), None)
    return "" if last is None else last.text
