"""The turns that were tried in the console, kept in this process so that a page can be read again."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass, replace

from ..digest import MemoryDigest
from ..ids import new_id
from ..memory import Memory
from ..provider import ListMemories, SearchMemories, can_search
from ..records import Actor
from ..remember import RememberOutcome
from ..scopes import ScopeContext
from ..wire.why import WhyLine, explain_digest

KEPT_TURNS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One `remember` call and what the model was told."""

    arguments: str
    """As JSON, the way a model sends them."""
    outcome: RememberOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message, the digest it was answered from, and what was recorded in it."""

    id: str
    actor: Actor
    message: str
    digest: MemoryDigest
    why: tuple[WhyLine, ...]
    calls: tuple[Call, ...] = ()


class Turns:
    """The last turns, oldest dropped first: a turn's digest is resolved once and then stands."""

    def __init__(self, memory: Memory) -> None:
        """Take turns on `memory`."""
        self._memory = memory
        self._kept: OrderedDict[str, Turn] = OrderedDict()

    def get(self, id: str) -> Turn | None:  # noqa: A002  # a turn's own field name
        """Answer a turn that is still kept."""
        return self._kept.get(id)

    async def take(self, actor: Actor, message: str) -> Turn:
        """Offer the actor's memory for a message, as a run would.

        Raises:
            ScopeError: No usable scope.
        """
        run_id = new_id("run_")
        ctx = ScopeContext(actor=actor)
        digest = await self._memory.offer(ctx, message, run_id=run_id)
        why = await self._explain(digest, message, ctx)
        return self._keep(Turn(id=run_id, actor=actor, message=message, digest=digest, why=why))

    async def remember(self, turn: Turn, *, key: str, fact: str, call_id: str) -> Turn:
        """Record a fact as the model would, in the turn's own run; the same call again does nothing."""
        arguments = {"key": key, "fact": fact}
        outcome = await self._memory.remember(
            arguments, digest=turn.digest, ctx=ScopeContext(actor=turn.actor), run_id=turn.id, tool_call_id=call_id
        )
        call = Call(arguments=json.dumps(arguments, ensure_ascii=False), outcome=outcome)
        return self._keep(replace(turn, calls=(*turn.calls, call)))

    async def _explain(self, digest: MemoryDigest, message: str, ctx: ScopeContext) -> tuple[WhyLine, ...]:
        provider, ceiling = self._memory.provider, self._memory.max_memories
        on_file = await provider.list(ListMemories(scopes=digest.scopes, ctx=ctx))
        answered = on_file
        if digest.recalled and can_search(provider):
            # Asked a second time on purpose: the digest keeps what was chosen, not in which order it came.
            query = message.strip()
            answered = await provider.search(SearchMemories(scopes=digest.scopes, query=query, limit=ceiling, ctx=ctx))
        lines = explain_digest(
            records=answered, scopes=digest.scopes, max_memories=ceiling, ranked=digest.recalled, on_file=on_file
        )
        return tuple(lines)

    def _keep(self, turn: Turn) -> Turn:
        self._kept[turn.id] = turn
        self._kept.move_to_end(turn.id)
        while len(self._kept) > KEPT_TURNS:
            self._kept.popitem(last=False)
        return turn
