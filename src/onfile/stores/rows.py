"""Rows and records: how a fact looks on either side of the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..records import MemoryOrigin, MemoryRecord
from ..writes import key_identity
from .statements import RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy.engine import CursorResult, Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """One fact with all that a store knows of it: what an export carries and a restore puts back."""

    record: MemoryRecord
    created_at: datetime
    """When the key was first kept at its scope, timezone-aware UTC; a new text does not move it."""
    expires_at: datetime | None = None
    """From when on no read shows it; None for never."""


class _Draft:
    """A record while its fields are being set: laid out as a `MemoryRecord`, so that it can become one.

    Every turn lists what may be thousands of facts, and the constructor of a frozen dataclass takes
    three times as long for each.
    """

    __slots__ = ("id", "key", "origin", "pinned", "scope", "text", "updated_at")

    id: str
    key: str
    text: str
    scope: str
    origin: MemoryOrigin
    updated_at: datetime
    pinned: bool


def record_of(row: Sequence[Any]) -> MemoryRecord:
    """Read one row, in the order of `statements.RECORD`."""
    return records_of([row])[0]


def records_of(
    rows: Sequence[Sequence[Any]], *, time_of: Callable[[Any], datetime] | None = None
) -> list[MemoryRecord]:
    """Read many rows, sharing one origin between the records that have the same.

    Args:
        rows: In the order of `statements.RECORD`; what follows is not looked at.
        time_of: Reads a time where the rows are as the driver gave them.
    """
    if rows and len(rows[0]) > len(RECORD):
        rows = [row[: len(RECORD)] for row in rows]
    origins: dict[tuple[Any, ...], MemoryOrigin] = {}
    records: list[Any] = []
    new = object.__new__
    for id_, key, text, scope, author, thread_id, run_id, actor_ref, updated_at, pinned in rows:
        spelled = (author, thread_id, run_id, actor_ref)
        origin = origins.get(spelled)
        if origin is None:
            origin = MemoryOrigin(author=author, thread_id=thread_id, run_id=run_id, actor_ref=actor_ref)
            origins[spelled] = origin
        draft = new(_Draft)
        draft.id = id_
        draft.key = key
        draft.text = text
        draft.scope = scope
        draft.origin = origin
        draft.updated_at = updated_at if time_of is None else time_of(updated_at)
        draft.pinned = bool(pinned)
        draft.__class__ = MemoryRecord  # pyright: ignore[reportAttributeAccessIssue]  # the same slots; see _Draft
        records.append(draft)
    return records


def reader_for(dialect: Dialect) -> Callable[[CursorResult[Any]], list[MemoryRecord]]:
    """Answer how to read all rows of `statements.RECORD` on a database: past SQLAlchemy's rows where it can be.

    Making a row of each, only to take it apart, is a third of what a long list costs.
    """
    processors: dict[str, Any] = {}
    for column in RECORD:
        processor = column.type.dialect_impl(dialect).result_processor(dialect, None)
        if processor is not None:
            processors[column.name] = processor
    time_of = processors.pop("updated_at", None)
    processors.pop("pinned", None)

    def read(result: CursorResult[Any]) -> list[MemoryRecord]:
        # MySQL's text comes as bytes, and a result without a cursor has been read ahead.
        if processors or result.cursor is None:
            return records_of(result.all())
        rows = result.cursor.fetchall()
        result.close()
        return records_of(rows, time_of=time_of)

    return read


def stored_of(row: Sequence[Any]) -> StoredMemory:
    """Read one row, in the order of `statements.STORED`."""
    return StoredMemory(record=record_of(row), created_at=row[10], expires_at=row[11])


def row_of(record: MemoryRecord, *, created_at: datetime, expires_at: datetime | None = None) -> dict[str, Any]:
    """Spell out a record as the row that keeps it."""
    return {
        "id": record.id,
        "scope": record.scope,
        "key": record.key,
        "key_identity": key_identity(record.key),
        "text": record.text,
        "origin_author": record.origin.author,
        "origin_thread_id": record.origin.thread_id,
        "origin_run_id": record.origin.run_id,
        "origin_actor_ref": record.origin.actor_ref,
        "pinned": record.pinned,
        "created_at": created_at,
        "updated_at": record.updated_at,
        "expires_at": expires_at,
    }
