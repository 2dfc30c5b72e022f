"""What every adapter does for a turn, whatever the framework: name the actor, offer once, keep, remember."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from ..digest import MemoryDigest
from ..errors import OnfileError, ScopeError
from ..events import UNAVAILABLE
from ..memory import Memory
from ..records import Actor
from ..scopes import ScopeContext
from ..wire.digests import dump_digest, load_digest

OnError = Literal["fail", "continue"]
"""What a provider's failure does to a run: fail it loudly, or let it go on without memory."""

WITHOUT_MEMORY = MemoryDigest(scopes=())
NOT_REACHED = "Not recorded. Memory cannot be reached right now; do not tell the user that it was recorded."


class ActorChanged(OnfileError):  # noqa: N818  # named for what happened, as WriteRefused is
    """A run was resumed for another actor than it was started for; neither may see the other's facts."""

    def __init__(self) -> None:
        super().__init__("this run was started for another actor; resume it for the actor it belongs to")


def context_of(answer: object, *, thread_id: str | None = None, agent_name: str | None = None) -> ScopeContext:
    """Answer the context of a turn from what the host's `actor` callable answered.

    Args:
        answer: An `Actor`, or a `ScopeContext` where the host knows more (a shared thread).
        thread_id: The framework's own name of the conversation, for a host that names none.
        agent_name: The framework's own name of the agent.

    Raises:
        TypeError: It is neither: nobody is signed in, or the callable is wrong.
    """
    if isinstance(answer, ScopeContext):
        return replace(
            answer, thread_id=answer.thread_id or thread_id or None, agent_name=answer.agent_name or agent_name
        )
    if isinstance(answer, Actor):
        return ScopeContext(actor=answer, thread_id=thread_id or None, agent_name=agent_name)
    msg = f"the actor callable answered {type(answer).__name__}; it must answer an onfile.Actor or a ScopeContext"
    raise TypeError(msg)


def keep(digest: MemoryDigest, ctx: ScopeContext) -> dict[str, Any]:
    """Answer a digest as JSON values for a framework's durable state, with whose it is."""
    return {**whose(ctx), "digest": dump_digest(digest)}


def kept(data: dict[str, Any], ctx: ScopeContext) -> MemoryDigest:
    """Read back what `keep` answered.

    Raises:
        ActorChanged: It was kept for another actor.
    """
    same_actor(data, ctx)
    return load_digest(data.get("digest"))


def whose(ctx: ScopeContext) -> dict[str, Any]:
    """Answer as JSON values for whom a run is, to be kept with whatever it resolved."""
    return {"actor": ctx.actor.id, "tenant": ctx.actor.tenant_ref}


def same_actor(data: dict[str, Any], ctx: ScopeContext) -> None:
    """Hold what `whose` answered against who the run is for now.

    Raises:
        ActorChanged: It was kept for another actor.
    """
    if (data.get("actor"), data.get("tenant")) != (ctx.actor.id, ctx.actor.tenant_ref):
        raise ActorChanged


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """A memory and what its failures do to a run."""

    memory: Memory
    on_error: OnError = "fail"

    async def offer(self, ctx: ScopeContext, *, query: str, run_id: str | None) -> MemoryDigest:
        """Resolve the digest of one run; without memory where the provider failed and the host said so.

        Raises:
            ScopeError: No usable scope, whatever `on_error` says: not knowing who asks is no outage.
        """
        try:
            return await self.memory.offer(ctx, query=query, run_id=run_id)
        except ScopeError:
            raise
        except Exception as error:
            if self.on_error == "fail":
                raise
            await self._unavailable("offer", run_id, error)
            return WITHOUT_MEMORY

    async def remember(
        self,
        arguments: object,
        *,
        digest: MemoryDigest,
        ctx: ScopeContext,
        run_id: str | None,
        tool_call_id: str | None,
    ) -> str:
        """Carry out one `remember` call and answer what the model is told; a refusal is words as well."""
        try:
            outcome = await self.memory.remember(
                arguments, digest=digest, ctx=ctx, run_id=run_id, tool_call_id=tool_call_id
            )
        except ScopeError:
            raise
        except Exception as error:
            if self.on_error == "fail":
                raise
            await self._unavailable("remember", run_id, error)
            return NOT_REACHED
        return outcome.message

    async def _unavailable(self, act: str, run_id: str | None, error: Exception) -> None:
        # Only the type: what a driver says may quote the row.
        await self.memory.emit(UNAVAILABLE, run=run_id, act=act, error=type(error).__name__)
