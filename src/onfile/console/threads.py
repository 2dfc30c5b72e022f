"""The threads of one person, found by the runs in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, func, select

from ..records import Actor
from ..runs.journal import ENDED, Run, decode, dump_context, encode, load_context
from ..runs.sql import run_of
from ..runs.statements import RUN
from ..scopes import ScopeContext
from ..stores.dialects import database_of
from ..stores.journals import agent_run
from ..text import keepable_token

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

_r = agent_run.c
_OF_ACTOR = (
    select(_r.thread_id, _r.context, _r.said, _r.created_at)
    .where(func.substr(_r.context, 1, bindparam("length")) == bindparam("beginning"))
    .order_by(_r.created_at.desc(), _r.id.desc())
    .limit(bindparam("at_most"))
)
_IN_THREAD = select(*RUN).where(_r.thread_id == bindparam("of_thread")).order_by(_r.created_at, _r.id)
_RUNS_READ = 1000
"""How many of a person's newest runs are looked at for their threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadSummary:
    """One thread in a list of threads."""

    id: str
    title: str
    """The first thing that was said in it."""
    turns: int
    last: datetime


class Threads:
    """Finds a person's threads with one agent and the runs in them, and nobody else's."""

    def __init__(self, engine: AsyncEngine, *, agent_name: str) -> None:
        self._database = database_of(engine)
        self._agent_name = agent_name

    async def of(self, actor: Actor) -> list[ThreadSummary]:
        """Answer the actor's threads, the one last spoken in first."""
        context = encode("context", dump_context(ScopeContext(actor=actor)))
        # A context is kept as JSON that begins with whose it is, up to the thread.
        beginning = context[: context.index(',"thread":')]

        async def work(conn: AsyncConnection) -> list[ThreadSummary]:
            at = {"beginning": beginning, "length": len(beginning), "at_most": _RUNS_READ}
            found: dict[str, ThreadSummary] = {}
            for thread_id, kept, said, created_at in (await conn.execute(_OF_ACTOR, at)).all():
                ctx = load_context(decode(kept))
                # Compared again here: a database may take `ana` and `Ana` for the same.
                if not self._theirs(ctx, actor):
                    continue
                seen = found.get(thread_id)
                found[thread_id] = ThreadSummary(
                    id=thread_id,
                    title=decode(said),
                    turns=1 + (seen.turns if seen else 0),
                    last=seen.last if seen else created_at,
                )
            return list(found.values())

        return await self._database.read(work)

    async def runs(self, thread_id: str, actor: Actor) -> Sequence[Run] | None:
        """Answer a thread's runs in order, none for one that does not exist yet; None for one that is not theirs."""

        async def work(conn: AsyncConnection) -> list[Run]:
            return [run_of(row) for row in (await conn.execute(_IN_THREAD, {"of_thread": thread_id})).all()]

        if not keepable_token(thread_id):
            return None
        runs = await self._database.read(work)
        return runs if all(self._theirs(run.ctx, actor) for run in runs) else None

    def _theirs(self, ctx: ScopeContext, actor: Actor) -> bool:
        return (ctx.actor, ctx.agent_name, ctx.shared) == (actor, self._agent_name, False)


def open_turn(runs: Sequence[Run]) -> Run | None:
    """Answer the first turn of a thread that is still to be finished, or None.

    One that failed counts only while nothing was said after it.
    """
    for place, run in enumerate(runs):
        if run.status not in ENDED and (run.status != "failed" or place == len(runs) - 1):
            return run
    return None
