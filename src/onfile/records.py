"""What is on file: a record, where it came from, and who it was recorded for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

Author = Literal["agent", "human"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The person a turn runs for."""

    id: str
    """Any non-empty text: an e-mail address, a database id, a name in any script."""
    tenant_ref: str | None = None
    """The organisation they act in, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryOrigin:
    """Who recorded a fact and in which conversation; the conversation may be gone since."""

    author: Author
    """`human` when a person stated it, `agent` when the model concluded it."""
    thread_id: str | None = None
    run_id: str | None = None
    actor_ref: str | None = None
    """The id of the actor it was recorded by or for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One fact as it is stored: the answer to one question, held at one scope."""

    id: str
    key: str
    """What the fact is about, as first spelled."""
    text: str
    scope: str
    origin: MemoryOrigin
    updated_at: datetime
    """When the text was last written, timezone-aware UTC."""
    pinned: bool = False
    """Always on: in the block whatever the turn is about."""
