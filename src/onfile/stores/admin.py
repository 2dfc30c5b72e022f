"""The administration seam: what a console and an operator's commands need of a store.

Unreachable through the agent's protocols: a tool, a digest and a turn hold a `MemoryProvider`, and
nothing here is on it. Who may call what is for the caller to decide beforehand, and to audit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from ..records import Actor, Author, MemoryOrigin, MemoryRecord
from .history import MemoryChange
from .restore import RestoreReport
from .rows import StoredMemory

SortBy = Literal["updated_at", "created_at", "scope", "key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowseMemories:
    """Ask for one page of what is on file."""

    scopes: Sequence[str] | None = None
    """Only these, compared byte for byte; None means all."""
    author: Author | None = None
    pinned: bool | None = None
    run_id: str | None = None
    """Only what stands as this run recorded it."""
    actor_ref: str | None = None
    contains: str | None = None
    """Only facts whose key or text contains this, letter case aside for ASCII."""
    updated_from: datetime | None = None
    updated_before: datetime | None = None
    sort_by: SortBy = "updated_at"
    descending: bool = True
    after: str | None = None
    """The `next` of the page before. A page costs the same however far in it lies."""
    size: int = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage:
    """One page of what is on file."""

    memories: tuple[StoredMemory, ...]
    next: str | None
    """What to ask for the page after this one with; None on the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditMemory:
    """A person's new text for one record, made in view of the one that stood."""

    id: str
    text: str
    origin: MemoryOrigin
    """Of the person: its author is `human`."""
    seen_at: datetime
    """The `updated_at` of the version that the person saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOutcome:
    """What came of an edit."""

    status: Literal["edited", "unchanged", "conflict", "not_found"]
    record: MemoryRecord | None
    """What stands now; at a conflict, what somebody else wrote meanwhile; None when it is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """What a sweep deleted."""

    expired: int
    receipts: int


@runtime_checkable
class MemoryAdmin(Protocol):
    """A store that an administrator can look through and put right."""

    async def browse(self, request: BrowseMemories) -> MemoryPage:
        """Return one page, in a total order that no later write reshuffles within the page."""
        ...

    async def get(self, id: str) -> StoredMemory | None:  # noqa: A002  # the record's own field name
        """Return one record at whatever scope."""
        ...

    async def count(self) -> int:
        """Count all records."""
        ...

    async def edit(self, request: EditMemory) -> EditOutcome:
        """Give a record a new text, unless somebody changed it since it was seen."""
        ...

    async def pin(self, *, id: str, pinned: bool) -> bool:  # noqa: A002  # the record's own field name
        """Set or clear a pin."""
        ...

    async def remove(self, *, id: str) -> bool:  # noqa: A002  # the record's own field name
        """Delete one record at whatever scope, with all that was made of it."""
        ...

    async def forget_all(self, *, actor: Actor) -> int:
        """Delete all at the actor's own scope; the number is the number."""
        ...

    async def erase(self, *, scope: str, elevated: bool) -> int:
        """Delete all at one scope; the number is the number."""
        ...

    async def history(self, id: str) -> Sequence[MemoryChange]:  # noqa: A002  # the record's own field name
        """Return what a record went through, oldest first; nothing where history is off."""
        ...

    async def written_by(self, *, run_id: str) -> Sequence[StoredMemory]:
        """Return every record that stands as this run recorded it."""
        ...

    async def sweep(self) -> SweepReport:
        """Delete what has expired, and receipts too old to be asked for again."""
        ...

    def export(self, *, scopes: Sequence[str] | None = None) -> AsyncIterator[StoredMemory]:
        """Stream records, ordered by scope and key identity."""
        ...

    async def restore(
        self, memories: Sequence[StoredMemory], *, on_conflict: Literal["stop", "skip", "replace"] = "stop"
    ) -> RestoreReport:
        """Put records back exactly."""
        ...
