"""The one run-time door: offer a turn its facts, remember, read back, forget, publish, pin."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any, Literal

from . import events
from .authority import memory_forget_verdict, memory_write_verdict
from .block import build_memory_block
from .digest import DigestEntry, MemoryDigest, instant, resolve_memory_digest
from .errors import WriteRefused
from .events import EventCallback, emit, event
from .keys import fold_key
from .provider import (
    ForgetMemory,
    ListMemories,
    MemoryProvider,
    SearchMemories,
    StoreMemory,
    WritableMemoryProvider,
    WriteReport,
    can_pin,
    can_search,
    can_write,
    check_provider,
    guards_writes,
    pin_as,
)
from .records import MemoryOrigin, MemoryRecord
from .remember import (
    Fact,
    MemoryTool,
    RememberOutcome,
    check_fact,
    idempotency_key,
    placed,
    read_arguments,
    refused,
    refused_by_store,
    remember_tool,
    remembered,
)
from .scopes import ScopeContext, ScopeResolver, actor_scope, default_scopes, resolve_scopes
from .writes import changes_anything

READ_ONLY = "This memory is read-only: its provider cannot write."
UNKNOWN = "There is no such record among what is on file for this actor."


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetOutcome:
    """What a person's request to delete one record came to."""

    status: Literal["forgotten", "forbidden", "not_found"]
    """`not_found` also for a record that this actor cannot see."""
    reason: str = ""
    """In words, when it is forbidden or not found."""

    @property
    def ok(self) -> bool:
        """Whether the record is gone by this request."""
        return self.status == "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOutcome:
    """What a person's own write or pin came to."""

    ok: bool
    record: MemoryRecord | None = None
    """The record that stands now; None when the act was refused."""
    error: str | None = None
    """Why it was refused, in words."""
    unchanged: bool = False
    """True when nothing was written, because the same already stands."""
    replaced: str | None = None
    """The text that this one replaced."""


class Memory:
    """Give an assistant memory over one provider of facts.

    Safe to share between tasks: it keeps nothing about a call.
    """

    def __init__(
        self,
        provider: MemoryProvider,
        *,
        scopes: ScopeResolver = default_scopes,
        max_memories: int | None = 20,
        max_fact_chars: int = 240,
        max_key_chars: int = 64,
        on_event: EventCallback | None = None,
    ) -> None:
        """Take a provider and the limits.

        Args:
            provider: Where facts live; what it can do decides what is offered.
            scopes: From a turn's context to its scope tokens, most specific first; may be async.
                Share it with everything else that asks which scopes an actor has.
            max_memories: How many keys a block holds; 0 offers none, None has no ceiling.
            max_fact_chars: The longest fact, in code points, for people and the model alike.
            max_key_chars: The longest key, in code points.
            on_event: Called with every event; what it raises is logged by type and goes no further.

        Raises:
            TypeError: The provider is none, or the resolver cannot be called.
            ValueError: A limit is negative, or no fact could ever be kept under it.
        """
        check_provider(provider)
        if not callable(scopes):
            msg = f"scopes takes a callable that answers scope tokens for a ScopeContext, not a {type(scopes).__name__}"
            raise TypeError(msg)
        if max_memories is not None and max_memories < 0:
            msg = f"max_memories is {max_memories}; use 0 for none and None for no ceiling"
            raise ValueError(msg)
        if max_fact_chars < 1 or max_key_chars < 1:
            msg = "max_fact_chars and max_key_chars must be at least 1"
            raise ValueError(msg)
        self.provider = provider
        self.scopes = scopes
        self.max_memories = max_memories
        self.max_fact_chars = max_fact_chars
        self.max_key_chars = max_key_chars
        self.on_event = on_event

    async def offer(self, ctx: ScopeContext, query: str | None = "", run_id: str | None = None) -> MemoryDigest:
        """Resolve what this turn may see, once; keep the digest with the run.

        Args:
            ctx: Who asks, and where.
            query: The user's own text of this turn and nothing else; blank or None where they wrote none.
            run_id: Names the run in the event.

        Returns:
            The digest with its block rendered.

        Raises:
            ScopeError: No usable scope; the provider was not asked.
        """
        scopes = await resolve_scopes(self.scopes, ctx)
        asked = (query or "").strip()
        if asked and self.max_memories != 0 and can_search(self.provider):
            request = SearchMemories(scopes=scopes, query=asked, limit=self.max_memories, ctx=ctx)
            records, ranked = await self.provider.search(request), True
        else:
            records, ranked = await self.provider.list(ListMemories(scopes=scopes, ctx=ctx)), False
        resolved = resolve_memory_digest(records=records, scopes=scopes, max_memories=self.max_memories, ranked=ranked)
        writable = can_write(self.provider) and actor_scope(ctx.actor) in scopes
        partial = resolved.omitted > 0 or resolved.recalled
        block = build_memory_block(entries=resolved.entries, writable=writable, partial=partial)
        digest = replace(resolved, block=block, writable=writable)
        await self.emit(
            events.RESOLVED,
            run=run_id,
            scopes=len(scopes),
            offered=len(digest.entries),
            omitted=digest.omitted,
            pinned_omitted=digest.pinned_omitted,
            recalled=digest.recalled,
            prompt_chars=len(block),
        )
        return digest

    def block(self, digest: MemoryDigest) -> str:
        """Answer the block as the digest kept it; `""` when there is nothing to show."""
        return digest.block

    def tools(self, digest: MemoryDigest) -> tuple[MemoryTool, ...]:
        """Answer what to offer the model in this run: `remember`, or nothing."""
        return (remember_tool(),) if digest.writable else ()

    async def remember(
        self,
        arguments: object,
        *,
        digest: MemoryDigest,
        ctx: ScopeContext,
        run_id: str | None = None,
        tool_call_id: str | None = None,
    ) -> RememberOutcome:
        """Carry out one `remember` call of the model, at the actor's own scope.

        Args:
            arguments: What the model sent; anything but an object of `key` and `fact` is refused
                in words.
            digest: The digest of this run; its recorded scopes are what the call is judged by.
            ctx: The run's context.
            run_id: With `tool_call_id`, makes a retried or replayed call do nothing.
            tool_call_id: The model's id of this call.

        Returns:
            The outcome, whose `message` is the tool's result. A refusal is an outcome as well.

        Raises:
            Exception: Whatever the provider raises except `WriteRefused`; nothing is kept then.
        """
        scope = actor_scope(ctx.actor)
        if not can_write(self.provider):
            return refused(READ_ONLY, own=scope)
        sent = read_arguments(arguments, own=scope)
        if isinstance(sent, str):
            return refused(sent, own=scope)
        fact = self._check(key=sent[0], text=sent[1])
        if isinstance(fact, str):
            return refused(fact, own=scope)
        verdict = memory_write_verdict(scope=scope, actor=ctx.actor, scopes=digest.scopes, author="agent")
        if not verdict.allowed:
            return refused(verdict.reason, own=scope)
        request = StoreMemory(
            key=fact.key,
            text=fact.text,
            scope=scope,
            origin=MemoryOrigin(author="agent", thread_id=ctx.thread_id, run_id=run_id, actor_ref=ctx.actor.id),
            ctx=ctx,
            idempotency_key=idempotency_key(run_id=run_id, tool_call_id=tool_call_id),
            report=WriteReport(),
        )
        try:
            record, report = await _write(self.provider, request)
        except WriteRefused as refusal:
            return refused_by_store(refusal.reason, own=scope)
        if not report.unchanged:
            await self.emit(events.WRITTEN, run=run_id, scope=scope, chars=len(record.text))
        return remembered(record, unchanged=report.unchanged, replaced=report.replaced)

    async def read_back(self, ctx: ScopeContext) -> tuple[DigestEntry, ...]:
        """Answer every entry on file for the actor: never searched, no ceiling.

        A person must see, and so be able to delete, what the assistant may act on.

        Raises:
            ScopeError: No usable scope; the provider was not asked.
        """
        scopes = await resolve_scopes(self.scopes, ctx)
        records = await self.provider.list(ListMemories(scopes=scopes, ctx=ctx))
        return resolve_memory_digest(records=records, scopes=scopes, max_memories=None).entries

    async def forget(self, id: str, ctx: ScopeContext) -> ForgetOutcome:  # noqa: A002  # the record's own field name
        """Delete one record at the actor's own scope; a wider one is forbidden, an unseen one missing.

        Raises:
            ScopeError: No usable scope; the provider was not asked.
        """
        scopes = await resolve_scopes(self.scopes, ctx)
        record = await self._visible(id, scopes, ctx)
        if record is None:
            return ForgetOutcome(status="not_found", reason=UNKNOWN)
        verdict = memory_forget_verdict(record=record, actor=ctx.actor)
        if not verdict.allowed:
            return ForgetOutcome(status="forbidden", reason=verdict.reason)
        if not await self.provider.forget(ForgetMemory(id=id, ctx=ctx)):
            return ForgetOutcome(status="not_found", reason=UNKNOWN)
        await self.emit(events.FORGOTTEN, scope=record.scope, count=1)
        return ForgetOutcome(status="forgotten")

    async def forget_all(self, ctx: ScopeContext) -> int:
        """Delete every record at the actor's own scope, and nothing wider; answer how many there were.

        One transaction where the provider has a `forget_all` of its own. Otherwise one record after
        the other: what is gone when the provider fails stays gone.

        Raises:
            ScopeError: The actor is nobody; the provider was not asked.
        """
        own, count = actor_scope(ctx.actor), 0
        whole: Any = getattr(self.provider, "forget_all", None)
        try:
            if whole is not None:
                count = int(await whole(actor=ctx.actor))
                return count
            records = await self.provider.list(ListMemories(scopes=(own,), ctx=ctx))
            for id_ in [record.id for record in records if record.scope == own]:
                count += await self.provider.forget(ForgetMemory(id=id_, ctx=ctx))
            return count
        finally:
            if count:
                await self.emit(events.FORGOTTEN, scope=own, count=count)

    async def publish(
        self, *, scope: str, key: str, text: str, ctx: ScopeContext, elevated: bool = False
    ) -> PublishOutcome:
        """Write a fact as a person, at their own scope or, where the host says so, wider.

        Args:
            scope: Where the fact is held; one of the actor's resolved scopes.
            key: What it is about.
            text: The fact, one line.
            ctx: Who writes.
            elevated: The host's answer to "may this person administer that scope?".

        Raises:
            ScopeError: No usable scope; the provider was not asked.
        """
        scopes = await resolve_scopes(self.scopes, ctx)
        if not can_write(self.provider):
            return PublishOutcome(ok=False, error=READ_ONLY)
        if not isinstance(scope, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # hosts pass what untyped code gave them
            return PublishOutcome(ok=False, error="The scope must be a string; it is one of the actor's own scopes.")
        fact = self._check(key=key, text=text)
        if isinstance(fact, str):
            return PublishOutcome(ok=False, error=placed(fact, scope=scope))
        verdict = memory_write_verdict(scope=scope, actor=ctx.actor, scopes=scopes, author="human", elevated=elevated)
        if not verdict.allowed:
            return PublishOutcome(ok=False, error=verdict.reason)
        request = StoreMemory(
            key=fact.key,
            text=fact.text,
            scope=scope,
            origin=MemoryOrigin(author="human", thread_id=ctx.thread_id, actor_ref=ctx.actor.id),
            ctx=ctx,
            report=WriteReport(),
        )
        try:
            record, report = await _write(self.provider, request)
        except WriteRefused as refusal:
            return PublishOutcome(ok=False, error=refusal.reason)
        if not report.unchanged:
            await self.emit(events.PUBLISHED, scope=scope, chars=len(record.text))
        return PublishOutcome(ok=True, record=record, unchanged=report.unchanged, replaced=report.replaced)

    async def pin(self, id: str, *, pinned: bool, ctx: ScopeContext, elevated: bool = False) -> PublishOutcome:  # noqa: A002  # the record's own field name
        """Make a record always-on or stop that, as a person, by the same verdict as a write.

        Raises:
            ScopeError: No usable scope; the provider was not asked.
        """
        scopes = await resolve_scopes(self.scopes, ctx)
        if not can_pin(self.provider):
            return PublishOutcome(ok=False, error="This memory's provider cannot pin.")
        record = await self._visible(id, scopes, ctx)
        if record is None:
            return PublishOutcome(ok=False, error=UNKNOWN)
        verdict = memory_write_verdict(
            scope=record.scope, actor=ctx.actor, scopes=scopes, author="human", elevated=elevated
        )
        if not verdict.allowed:
            return PublishOutcome(ok=False, error=verdict.reason)
        by = MemoryOrigin(author="human", thread_id=ctx.thread_id, actor_ref=ctx.actor.id)
        if not await pin_as(self.provider, id=id, pinned=pinned, by=by):
            return PublishOutcome(ok=False, error=UNKNOWN)
        if record.pinned != pinned:
            await self.emit(events.PINNED, scope=record.scope, pinned=pinned)
        standing = replace(record, pinned=pinned)
        return PublishOutcome(ok=True, record=standing, unchanged=record.pinned == pinned)

    def _check(self, *, key: str, text: str) -> Fact | str:
        return check_fact(key=key, text=text, max_key_chars=self.max_key_chars, max_fact_chars=self.max_fact_chars)

    async def _visible(self, id: str, scopes: tuple[str, ...], ctx: ScopeContext) -> MemoryRecord | None:  # noqa: A002  # the record's own field name
        records = await self.provider.list(ListMemories(scopes=scopes, ctx=ctx))
        return next((record for record in records if record.id == id and record.scope in scopes), None)

    async def emit(self, name: str, **payload: object) -> None:
        """Send an event where this memory's own go: to `on_event`, and to OpenTelemetry if the host has loaded it."""
        happened = event(name, **payload)
        # Only where the host has loaded OpenTelemetry itself: onfile never brings it along.
        if "opentelemetry.trace" in sys.modules:
            from .telemetry.otel import record

            await emit(happened, record)
        await emit(happened, self.on_event)


async def _write(provider: WritableMemoryProvider, request: StoreMemory) -> tuple[MemoryRecord, WriteReport]:
    """Write through any provider and tell what it came to.

    A store that guards its writes decides in its own transaction. For any other, the same rules are
    held here by reading first, as far as one can without a transaction.
    """
    report = request.report or WriteReport()
    if guards_writes(provider):
        return await provider.write(request), report
    identity = fold_key(request.key)
    listed = await provider.list(ListMemories(scopes=(request.scope,), ctx=request.ctx))
    at_key = [record for record in listed if record.scope == request.scope and fold_key(record.key) == identity]
    standing = max(at_key, key=lambda record: (instant(record.updated_at), record.id), default=None)
    if not changes_anything(standing=standing, request=request) and standing is not None:
        return standing, WriteReport(unchanged=True)
    if standing is not None:
        # Under the spelling that stands, so that an upsert on the key as it is spelled finds its row.
        request = replace(request, key=standing.key)
    record = await provider.write(request)
    # What stood came back instead of what was sent: the provider took it for a retry and wrote nothing.
    if standing is not None and record.text == standing.text != request.text:
        return record, WriteReport(unchanged=True)
    # The same text in a person's name took over the authorship and replaced no text.
    replaced = standing.text if standing is not None and standing.text != record.text else None
    return record, WriteReport(replaced=replaced)
