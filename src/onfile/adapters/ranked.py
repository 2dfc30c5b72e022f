"""Relevance for a store that has no index of its own: rank what it lists, by words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ..provider import SearchMemories
from ..recall.index import Indexed, ScopeIndex
from ..recall.ranking import Question, rank
from ..recall.tokens import tokenise
from ..records import MemoryRecord
from ..writes import key_identity

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def ranked(records: Sequence[MemoryRecord], request: SearchMemories) -> list[MemoryRecord]:
    """Answer the records of the best keys as `search` owes them, from all that are at the scopes.

    It reads every record for each question, which is right for the hundreds of facts that a person
    and their organisation have, and not for ten thousand.
    """
    scopes = list(dict.fromkeys(request.scopes))
    indexes = {scope: ScopeIndex(revision=0) for scope in scopes}
    by_key: dict[str, list[MemoryRecord]] = {}
    place = {scope: rank for rank, scope in enumerate(scopes)}
    for record in sorted((record for record in records if record.scope in place), key=lambda r: place[r.scope]):
        identity = key_identity(record.key)
        by_key.setdefault(identity, []).append(record)
        indexes[record.scope].put(
            [
                Indexed(
                    id=record.id,
                    identity=identity,
                    key=record.key,
                    text=record.text,
                    pinned=record.pinned,
                    updated_us=(record.updated_at - _EPOCH) // _MICROSECOND,
                )
            ]
        )
    question = Question(terms=tokenise(request.query), limit=request.limit)
    keys = rank([indexes[scope] for scope in scopes], question, numpy=None)
    return [record for key in keys for record in by_key[key.identity]]
