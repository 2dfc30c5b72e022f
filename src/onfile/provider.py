"""The seam to where facts live: one protocol per capability; having the method is the claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

from .records import MemoryOrigin, MemoryRecord
from .scopes import ScopeContext


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMemories:
    """Ask for every record at these scopes."""

    scopes: Sequence[str]
    """Compared byte for byte: no prefix, no pattern."""
    ctx: ScopeContext


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMemories:
    """Ask for the records of the keys that matter most to a turn."""

    scopes: Sequence[str]
    query: str
    """The user's own text of this turn, trimmed, never blank."""
    limit: int | None
    """How many unpinned KEYS at most; None means all of them, ranked."""
    ctx: ScopeContext


@dataclass(slots=True, kw_only=True)
class WriteReport:
    """What a write came to, filled in by a store inside the transaction that decided it."""

    replaced: str | None = None
    """The text that the write replaced, or None."""
    unchanged: bool = False
    """True when nothing was written: the same text stood there, or the write was a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMemory:
    """Ask for one fact to be kept at one scope, in place of what stands at the same key."""

    key: str
    text: str
    scope: str
    origin: MemoryOrigin
    ctx: ScopeContext
    idempotency_key: str | None = None
    """The same key, scope and idempotency key again is a retry: it changes nothing."""
    report: WriteReport | None = None
    """Filled in by a store that claims `guards_writes`; others leave it alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetMemory:
    """Ask for one record at the caller's own scope to be deleted."""

    id: str
    ctx: ScopeContext


@runtime_checkable
class MemoryProvider(Protocol):
    """Implement these two to keep facts where you already keep data."""

    async def list(self, request: ListMemories) -> Sequence[MemoryRecord]:
        """Return every record at the scopes, in any order."""
        ...

    async def forget(self, request: ForgetMemory) -> bool:
        """Delete the record and all that was derived from it; False when there was none to delete.

        Only at the scope of `request.ctx.actor`: a record that is held wider is left alone.
        """
        ...


@runtime_checkable
class WritableMemoryProvider(MemoryProvider, Protocol):
    """Implement `write` and the model is offered `remember`."""

    async def write(self, request: StoreMemory) -> MemoryRecord:
        """Keep the fact and return the record that now stands at its scope and key.

        One transaction: an earlier write with the same idempotency key answers first (the record
        that stands there now, or `WriteRefused` when it was forgotten since); then the author and
        scope guard; then the same text, which changes nothing; then the upsert, which leaves id,
        key spelling, pin and creation date alone.

        Raises:
            WriteRefused: The fact may not be kept there; `.reason` says why in words.
        """
        ...


@runtime_checkable
class SearchableMemoryProvider(MemoryProvider, Protocol):
    """Implement `search` and a turn's block is filled by relevance."""

    async def search(self, request: SearchMemories) -> Sequence[MemoryRecord]:
        """Return the records of the best keys, most relevant first.

        Filter to the scopes first. Then rank keys and take the best `limit` of them, in a total
        order. Return every in-scope record of each, and every pinned record at those scopes with
        all in-scope records of its key; pinned ones without a match last.
        """
        ...


@runtime_checkable
class PinningMemoryProvider(MemoryProvider, Protocol):
    """Implement `pin` and a person can make a fact always-on through `Memory.pin`."""

    async def pin(self, *, id: str, pinned: bool) -> bool:  # noqa: A002  # the record's own field name
        """Set or clear a pin without moving `updated_at`; False for an unknown id."""
        ...


async def pin_as(provider: PinningMemoryProvider, *, id: str, pinned: bool, by: MemoryOrigin) -> bool:  # noqa: A002  # the record's own field name
    """Pin or unpin, and say who did to a provider that has `notes_who_pins`: its `pin` takes `by` as well."""
    if getattr(provider, "notes_who_pins", False) is True:
        noting: Any = provider
        return await noting.pin(id=id, pinned=pinned, by=by)
    return await provider.pin(id=id, pinned=pinned)


def check_provider(provider: object) -> None:
    """Raise a `TypeError` for what is no provider: better where `Memory` is built than in somebody's turn."""
    wanted = "Memory takes a provider of facts, such as SqlMemoryProvider.from_url(url)"
    if isinstance(provider, type):
        msg = f"{wanted}, and not the class {provider.__name__} itself"
        raise TypeError(msg)
    lacking = [name for name in ("list", "forget") if not callable(getattr(provider, name, None))]
    if lacking:
        msg = f"{wanted}; this {type(provider).__name__} has no method {' and no method '.join(lacking)}"
        raise TypeError(msg)


def can_write(provider: MemoryProvider) -> TypeGuard[WritableMemoryProvider]:
    """Tell whether the provider claims to write."""
    return callable(getattr(provider, "write", None))


def can_search(provider: MemoryProvider) -> TypeGuard[SearchableMemoryProvider]:
    """Tell whether the provider claims to search."""
    return callable(getattr(provider, "search", None))


def can_pin(provider: MemoryProvider) -> TypeGuard[PinningMemoryProvider]:
    """Tell whether the provider claims to pin."""
    return callable(getattr(provider, "pin", None))


def guards_writes(provider: MemoryProvider) -> bool:
    """Tell whether the provider itself refuses what may not be written and fills in the report.

    A store says so with a class attribute `guards_writes = True`. For any other, `Memory` reads
    before it writes and guards by itself, which two writers at once can race.
    """
    return getattr(provider, "guards_writes", False) is True
