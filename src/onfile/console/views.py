"""What the pages show of an entry and of a turn, in words for a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ..authority import memory_forget_verdict
from ..digest import DigestEntry, OverriddenMemory
from ..records import Actor, Author, MemoryOrigin, MemoryRecord
from ..scopes import actor_scope

STATED = "stated by a person"
CONCLUDED = "concluded by the assistant"
_REACH = {"tenant": "Your organisation", "global": "Everyone", "thread": "This conversation"}
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatenView:
    """A value that the one above it beats."""

    id: str
    scope: str
    text: str
    author: str
    own: bool
    """Held at the actor's own scope, so theirs to delete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryView:
    """One entry with its origin in words."""

    id: str
    key: str
    text: str
    scope: str
    author: str
    by_person: bool
    pinned: bool
    day: str
    moment: str
    """ISO 8601, UTC."""
    thread: str
    run: str
    recorded_by: str
    """Such as "by dilan"; empty where it goes without saying."""
    own: bool
    beats: tuple[BeatenView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """The entries that are held at one scope."""

    scope: str
    reach: str
    """Whom the scope speaks about, such as "Your own"."""
    own: bool
    why_not: str
    """Why its entries are not the actor's to delete; empty when they are."""
    entries: tuple[EntryView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What a read-back comes to in numbers."""

    entries: int
    own: int
    pinned: int
    beating: int
    """Entries that beat another value."""


def grouped(entries: Sequence[DigestEntry], *, scopes: Sequence[str], actor: Actor) -> list[GroupView]:
    """Put a read-back's entries together by scope, narrowest first; within one, pinned first, then by key."""
    by_scope: dict[str, list[DigestEntry]] = {scope: [] for scope in scopes}
    for entry in entries:
        by_scope.setdefault(entry.scope, []).append(entry)
    return [_group(scope, held, actor) for scope, held in by_scope.items() if held]


def counted(entries: Sequence[DigestEntry], actor: Actor) -> Counts:
    """Count what is on file, by what a person would ask."""
    own = actor_scope(actor)
    return Counts(
        entries=len(entries),
        own=sum(entry.scope == own for entry in entries),
        pinned=sum(entry.pinned for entry in entries),
        beating=sum(bool(entry.overrides) for entry in entries),
    )


def entry_view(entry: DigestEntry, actor: Actor) -> EntryView:
    """Spell out one entry for a page."""
    own = actor_scope(actor)
    return EntryView(
        id=legible(entry.id),
        key=legible(entry.key),
        text=legible(entry.text),
        scope=legible(entry.scope),
        author=author_words(entry.origin.author),
        by_person=entry.origin.author == "human",
        pinned=entry.pinned,
        day=_day(entry.updated_at),
        moment=_utc(entry.updated_at).isoformat(timespec="seconds").replace("+00:00", "Z"),
        thread=legible(entry.origin.thread_id or ""),
        run=legible(entry.origin.run_id or ""),
        recorded_by="" if entry.scope == own and entry.origin.actor_ref == actor.id else _recorded_by(entry.origin),
        own=entry.scope == own,
        beats=tuple(beaten_view(beaten, own=own) for beaten in entry.overrides),
    )


def beaten_view(beaten: OverriddenMemory, *, own: str) -> BeatenView:
    """Spell out one beaten value for a page."""
    return BeatenView(
        id=legible(beaten.id),
        scope=legible(beaten.scope),
        text=legible(beaten.text),
        author=author_words(beaten.author),
        own=beaten.scope == own,
    )


def author_words(author: Author) -> str:
    """Say who a value is from; what is not a person's word is the assistant's."""
    return STATED if author == "human" else CONCLUDED


def legible(text: str) -> str:
    """Answer text that UTF-8 can carry; HTML escaping is the template's."""
    return _SURROGATES.sub("\ufffd", text)


def _group(scope: str, held: Sequence[DigestEntry], actor: Actor) -> GroupView:
    record: MemoryRecord = held[0]
    own = scope == actor_scope(actor)
    kind, _, _ = scope.partition(":")
    return GroupView(
        scope=legible(scope),
        reach="Your own" if own else _REACH.get(kind, legible(kind).capitalize()),
        own=own,
        why_not=legible(memory_forget_verdict(record=record, actor=actor).reason),
        entries=tuple(entry_view(entry, actor) for entry in held),
    )


def _recorded_by(origin: MemoryOrigin) -> str:
    if not origin.actor_ref:
        return ""
    # A model records for someone; a person records themselves.
    return f"{'by' if origin.author == 'human' else 'for'} {legible(origin.actor_ref)}"


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _day(moment: datetime) -> str:
    utc = _utc(moment)
    return f"{utc.day} {utc:%b %Y}"
