"""The digest: which facts one run may see, and in which order. Pure: no clock, no id, no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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

# One record, between its place among the scopes and its place in arrival order.
_Placed = tuple[int, MemoryRecord, int]

# One question while the digest is being resolved: the winner's scope place, identity, pinned, best
# arrival, the winner's time, and its records, the winner first and what it beat by scope. A plain
# tuple, because a turn may make thousands of them and shows twenty.
_Question = tuple[int, str, bool, int, datetime, list[MemoryRecord]]
_PLACE, _IDENTITY, _ARRIVAL, _MOMENT = map(itemgetter, (0, 1, 3, 4))


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
    pinned = _by_scope(question for question in questions if question[2])
    rest = [question for question in questions if not question[2]]
    rest = sorted(rest, key=_ARRIVAL) if ranked else _by_scope(rest)
    ceiling = len(questions) if max_memories is None else max_memories
    chosen = (pinned + rest)[:ceiling]
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
    """Group the records in scope by the question they answer, and settle each."""
    # A blank scope is nowhere, even where a caller lists one: no scope, no reader.
    places = {scope: place for place, scope in enumerate(scopes) if scope.strip()}
    groups: dict[str, list[_Placed]] = {}
    for arrival, record in enumerate(records):
        place = places.get(record.scope)
        if place is None:
            continue
        identity = fold_key(record.key)
        group = groups.get(identity)
        if group is None:
            groups[identity] = [(place, record, arrival)]
        else:
            group.append((place, record, arrival))
    return [_settle(identity, group) for identity, group in groups.items()]


def _settle(identity: str, group: list[_Placed]) -> _Question:
    """Decide which record of a question wins and which ride along."""
    if len(group) == 1:
        place, record, arrival = group[0]
        return place, identity, record.pinned, arrival, _aware(record.updated_at), [record]
    # Newest first within a scope (equal dates: the greater id), so the first seen of a scope stands.
    group.sort(key=_seniority, reverse=True)
    standing: dict[int, MemoryRecord] = {}
    for place, record, _ in group:
        standing.setdefault(place, record)
    places = sorted(standing)
    records = [standing[place] for place in places]
    # A pin and a rank belong to the question: those of a dropped record still count.
    pinned = any(record.pinned for _, record, _ in group)
    arrival = min(arrival for _, _, arrival in group)
    return places[0], identity, pinned, arrival, _aware(records[0].updated_at), records


def _seniority(placed: _Placed) -> tuple[datetime, str, str, str, str]:
    # The words come last for a provider that gives one id to two rows: arrival must not decide.
    _, record, _ = placed
    return _aware(record.updated_at), record.id, record.text, record.key, record.origin.author


def _by_scope(questions: Iterable[_Question]) -> list[_Question]:
    """Order by narrowest scope, then newest, then key: three stable sorts, the last one leading."""
    ordered = sorted(questions, key=_IDENTITY)
    ordered.sort(key=_MOMENT, reverse=True)
    ordered.sort(key=_PLACE)
    return ordered


def _entry(question: _Question) -> DigestEntry:
    winner, *beaten = question[5]
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
