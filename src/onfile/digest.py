"""The digest: which facts one run may see, and in which order. Pure: no clock, no id, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter

from .errors import ScopeError
from .keys import fold_key
from .records import Author, MemoryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class OverriddenMemory:
    """A value that a narrower scope beat; shown, not hidden."""

    id: str
    scope: str
    text: str
    author: Author


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestEntry(MemoryRecord):
    """One line of a digest: the winning record and the values it beat."""

    # `pinned` is the question's here: true when any record at this key is pinned.
    overrides: tuple[OverriddenMemory, ...] = ()
    """Widest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDigest:
    """What one run resolved; keep it with the run and never resolve it again."""

    scopes: tuple[str, ...]
    """Most specific first, as the run recorded them: what `remember` is judged by."""
    entries: tuple[DigestEntry, ...] = ()
    """In rendering order: pinned first, then scope, then key."""
    omitted: int = 0
    """Keys that the ceiling left out."""
    pinned_omitted: int = 0
    """Those of them that were pinned: standing policies that reached no prompt."""
    recalled: bool = False
    """True when the provider was searched rather than listed."""
    block: str = ""
    """The block as it was rendered when the digest was offered."""
    writable: bool = False
    """True when `remember` is offered in this run."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)

# One question while the digest is being resolved: the winner's scope place, identity, pinned, the winner,
# and what it beat, widest last. A plain tuple, because a turn may make thousands of them and shows twenty.
_Question = tuple[int, str, bool, MemoryRecord, Sequence[MemoryRecord]]
_IDENTITY = itemgetter(1)


def resolve_memory_digest(
    *,
    records: Iterable[MemoryRecord],
    scopes: Sequence[str],
    max_memories: int | None = 20,
    ranked: bool = False,
) -> MemoryDigest:
    """Turn the records that a provider returned into the digest a run keeps.

    Args:
        records: In any order, or most relevant first when `ranked`. One at a scope outside
            `scopes` is dropped, whatever the provider says. Never changed.
        scopes: Most specific first; the order is the whole of precedence. One that is listed
            twice counts at its first place.
        max_memories: How many KEYS the digest may hold, pinned ones first; None means all.
        ranked: The records came from a search: fill up by their order, not by scope.

    Returns:
        A digest without block. The same records in any order give the same one when not ranked.

    Raises:
        ScopeError: `scopes` is one bare string.
        ValueError: `max_memories` is negative.
    """
    if isinstance(scopes, str):
        msg = "scopes is one bare string; pass a sequence of tokens, most specific first"
        raise ScopeError(msg)
    if max_memories is not None and max_memories < 0:
        msg = f"max_memories is {max_memories}; use 0 for none and None for no ceiling"
        raise ValueError(msg)
    order = tuple(dict.fromkeys(scopes))
    questions = _questions(records, order)
    pinned = [question for question in questions if question[2]]
    rest = [question for question in questions if not question[2]]
    ceiling = len(questions) if max_memories is None else max_memories
    chosen = _by_scope(pinned, ceiling)
    room = ceiling - len(chosen)
    # The questions are in the order in which the first record of each arrived.
    chosen += rest[:room] if ranked else _by_scope(rest, room)
    # Never recency, never score: a block that reshuffles on a write costs the prompt cache.
    chosen.sort(key=lambda question: (not question[2], question[0], question[1]))
    return MemoryDigest(
        scopes=order,
        entries=tuple(_entry(question) for question in chosen),
        omitted=len(questions) - len(chosen),
        pinned_omitted=max(0, len(pinned) - ceiling),
        recalled=ranked,
    )


def instant(moment: datetime) -> int:
    """Answer when it was, in microseconds since 1970, reading a time without zone as UTC."""
    # A whole number, because seconds as a float round two times into one in far years.
    return (_aware(moment) - _EPOCH) // _TICK


def _aware(moment: datetime) -> datetime:
    # A provider of somebody else's may hand out naive times; comparing the two kinds raises.
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _questions(records: Iterable[MemoryRecord], scopes: Sequence[str]) -> list[_Question]:
    """Group the records in scope by the question they answer, in order of arrival, and settle each."""
    # A blank scope is nowhere, even where a caller lists one: no scope, no reader.
    places = {scope: place for place, scope in enumerate(scopes) if scope.strip()}
    first: dict[str, MemoryRecord] = {}
    rivals: dict[str, list[MemoryRecord]] = {}
    for record in records:
        if record.scope in places:
            identity = fold_key(record.key)
            earlier = first.setdefault(identity, record)
            if earlier is not record:
                rivals.setdefault(identity, [earlier]).append(record)
    return [
        _settle(identity, rivals[identity], places)
        if identity in rivals
        else (places[record.scope], identity, record.pinned, record, ())
        for identity, record in first.items()
    ]


def _settle(identity: str, group: Sequence[MemoryRecord], places: Mapping[str, int]) -> _Question:
    """Decide which record of a question wins and which ride along."""
    # Newest first within a scope (equal dates: the greater id), so the first seen of a scope stands.
    standing: dict[int, MemoryRecord] = {}
    for record in sorted(group, key=_seniority, reverse=True):
        standing.setdefault(places[record.scope], record)
    # A pin belongs to the question: that of a dropped record still counts.
    pinned = any(record.pinned for record in group)
    winner, *beaten = sorted(standing)
    return winner, identity, pinned, standing[winner], [standing[place] for place in beaten]


def _seniority(record: MemoryRecord) -> tuple[datetime, str, str, str, str]:
    # The words come last for a provider that gives one id to two rows: arrival must not decide.
    return _aware(record.updated_at), record.id, record.text, record.key, record.origin.author


def _by_scope(questions: Iterable[_Question], room: int) -> list[_Question]:
    """Answer the first so many by narrowest scope, then newest, then key, sorting no scope that has no place left."""
    by_place: dict[int, list[_Question]] = {}
    for question in questions:
        by_place.setdefault(question[0], []).append(question)
    ordered: list[_Question] = []
    for place in sorted(by_place):
        if len(ordered) >= room:
            break
        # Two stable sorts, the last one leading.
        at_place = sorted(by_place[place], key=_IDENTITY)
        ordered += sorted(at_place, key=_moment, reverse=True)
    return ordered[:room]


def _moment(question: _Question) -> datetime:
    return _aware(question[3].updated_at)


def _entry(question: _Question) -> DigestEntry:
    winner, beaten = question[3:]
    return DigestEntry(
        id=winner.id,
        key=winner.key,
        text=winner.text,
        scope=winner.scope,
        origin=winner.origin,
        updated_at=_aware(winner.updated_at),
        pinned=question[2],
        overrides=tuple(
            OverriddenMemory(id=record.id, scope=record.scope, text=record.text, author=record.origin.author)
            for record in beaten
        ),
    )
