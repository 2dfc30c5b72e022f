"""What the clauses do with a provider, in the words of the product: an agent notes, a person states, one asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol

from ..errors import WriteRefused
from ..provider import (
    ForgetMemory,
    ListMemories,
    MemoryProvider,
    PinningMemoryProvider,
    SearchableMemoryProvider,
    SearchMemories,
    StoreMemory,
    WritableMemoryProvider,
    WriteReport,
)
from ..records import Actor, MemoryOrigin, MemoryRecord
from ..scopes import GLOBAL_SCOPE, ScopeContext, actor_scope
from .clause import ClauseFailed, expect

ANN = Actor(id="ann", tenant_ref="acme")
BOB = Actor(id="bob", tenant_ref="acme")
ANNS, BOBS, ACME = actor_scope(ANN), actor_scope(BOB), "tenant:acme"
ANNS_SCOPES = (ANNS, ACME, GLOBAL_SCOPE)

NO_STORE_KEEPS = ("nul\x00inside", "\x00", "lone \ud800 surrogate", "\udfff")
"""Texts that are refused in words on writing and simply match nothing on reading."""


class Written(WritableMemoryProvider, Protocol):
    """Writes; the clauses' short name for it."""


class Searched(WritableMemoryProvider, SearchableMemoryProvider, Protocol):
    """Writes and searches."""


class Pinned(WritableMemoryProvider, PinningMemoryProvider, Protocol):
    """Writes and pins."""


class PinnedAndSearched(Searched, PinningMemoryProvider, Protocol):
    """Writes, searches and pins."""


async def agent_notes(
    provider: WritableMemoryProvider,
    key: str,
    text: str,
    *,
    actor: Actor = ANN,
    scope: str | None = None,
    idempotency_key: str | None = None,
    origin: MemoryOrigin | None = None,
    report: WriteReport | None = None,
) -> MemoryRecord:
    """Write as the model of a run does: at the actor's own scope unless told otherwise."""
    return await provider.write(
        StoreMemory(
            key=key,
            text=text,
            scope=actor_scope(actor) if scope is None else scope,
            origin=origin or MemoryOrigin(author="agent", thread_id="thread-1", run_id="run-1", actor_ref=actor.id),
            ctx=ScopeContext(actor=actor, thread_id="thread-1"),
            idempotency_key=idempotency_key,
            report=report,
        )
    )


async def person_states(
    provider: WritableMemoryProvider,
    key: str,
    text: str,
    *,
    scope: str,
    actor: Actor = ANN,
    idempotency_key: str | None = None,
    report: WriteReport | None = None,
) -> MemoryRecord:
    """Write as a person does, at any scope: whether they may was judged before the store was asked."""
    return await provider.write(
        StoreMemory(
            key=key,
            text=text,
            scope=scope,
            origin=MemoryOrigin(author="human", actor_ref=actor.id),
            ctx=ScopeContext(actor=actor),
            idempotency_key=idempotency_key,
            report=report,
        )
    )


async def listed(provider: MemoryProvider, *scopes: str, actor: Actor = ANN) -> Sequence[MemoryRecord]:
    """Answer what the provider lists at the scopes."""
    return await provider.list(ListMemories(scopes=scopes, ctx=ScopeContext(actor=actor)))


async def searched(
    provider: SearchableMemoryProvider,
    query: str,
    *scopes: str,
    limit: int | None,
    actor: Actor = ANN,
) -> Sequence[MemoryRecord]:
    """Answer what the provider finds at the scopes, most relevant first."""
    return await provider.search(SearchMemories(scopes=scopes, query=query, limit=limit, ctx=ScopeContext(actor=actor)))


async def forgotten(provider: MemoryProvider, id: str, *, actor: Actor = ANN) -> bool:  # noqa: A002  # the record's own field name
    """Answer whether the provider says that it deleted the record for the actor."""
    return await provider.forget(ForgetMemory(id=id, ctx=ScopeContext(actor=actor)))


async def only(provider: MemoryProvider, scope: str, why: str) -> MemoryRecord:
    """Answer the one record at a scope, or fail the clause saying `why` it must be one."""
    records = await listed(provider, scope)
    expect(len(records) == 1, f"{why}; {len(records)} are listed")
    return records[0]


async def refusal(write: Awaitable[object], what: str) -> str:
    """Answer the reason in words with which a write is refused; anything else fails the clause.

    Args:
        write: The write, not yet awaited.
        what: The write as a noun phrase, for the sentence that says what went wrong.
    """
    try:
        await write
    except WriteRefused as refused:
        expect(bool(refused.reason.strip()), f"{what} is refused without a word; WriteRefused(reason) says why")
        return refused.reason
    except Exception as error:
        msg = f"{what} raised {type(error).__name__}; a store refuses with WriteRefused, on every database the same"
        raise ClauseFailed(msg) from error
    msg = f"{what} was kept; it is refused with WriteRefused"
    raise ClauseFailed(msg)


async def all_at_once(*writes: Awaitable[MemoryRecord]) -> Sequence[MemoryRecord | BaseException]:
    """Start the writes together and answer what each came to."""
    return await asyncio.gather(*writes, return_exceptions=True)


def texts(records: Sequence[MemoryRecord]) -> list[str]:
    """Answer the texts, sorted, to compare what is on file whatever its order."""
    return sorted(record.text for record in records)


def is_aware_utc(record: MemoryRecord) -> bool:
    """Tell whether the record's time is timezone-aware UTC."""
    offset = record.updated_at.utcoffset()
    return offset is not None and not offset
