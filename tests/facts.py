"""The one builder of the tests: a record with sane defaults."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

from onfile.records import Author, MemoryOrigin, MemoryRecord

NOON = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
_ids = count(1)


def fact(
    key: str = "units",
    text: str = "kilometres",
    *,
    scope: str = "actor:ana",
    author: Author = "agent",
    id: str | None = None,
    minutes: float = 0,
    pinned: bool = False,
    origin: MemoryOrigin | None = None,
) -> MemoryRecord:
    """A record that was last written `minutes` after noon."""
    return MemoryRecord(
        id=id if id is not None else f"mem_{next(_ids):026d}",
        key=key,
        text=text,
        scope=scope,
        origin=origin or MemoryOrigin(author=author, thread_id="t1", run_id="r1", actor_ref="ana"),
        updated_at=NOON + timedelta(minutes=minutes),
        pinned=pinned,
    )
