"""Deleting facts with all that was ever made of them, in one transaction, and counting truly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, delete, select

from ..wire.redaction import erasure_of
from . import statements
from .derived import after_text_removed
from .journals import erase_from_journals
from .rows import records_of
from .schema import agent_memory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ..records import MemoryRecord
    from .history import Deletion, Ledger
    from .transactions import Transaction

_BATCH = 500
_IDS = agent_memory.c.id


async def erase_where(
    transaction: Transaction, condition: ColumnElement[bool], *, deletion: Deletion, ledger: Ledger, now: datetime
) -> int:
    """Delete every row that meets the condition: row, vector, history, and its traces in journals.

    Receipts stay. They are digests that tell nothing, and without them a replayed run would bring
    back what was deleted.

    Returns:
        How many rows there were. 0 is 0.
    """
    erased = 0
    while True:
        # Held first, so that what is counted is what is deleted, whoever else deletes meanwhile; and before
        # the journals are asked who holds a fact, so that a run which is just recording it sees us, or we it.
        page = select(*statements.RECORD).where(condition).order_by(_IDS).limit(_BATCH).with_for_update()
        records = records_of((await transaction.conn.execute(page)).all())
        if not records:
            return erased
        await _erase(transaction, records, deletion=deletion, ledger=ledger, now=now)
        erased += len(records)


async def _erase(
    transaction: Transaction, records: Sequence[MemoryRecord], *, deletion: Deletion, ledger: Ledger, now: datetime
) -> None:
    conn, ids = transaction.conn, [record.id for record in records]
    for record in records:
        erasure = erasure_of(record_id=record.id, scope=record.scope, key=record.key)
        await erase_from_journals(transaction, erasure, now=now)
    # Before the rows: where row-level security holds us to scopes, a history is in sight by its row.
    await ledger.deleted(conn, ids, deletion, at=now)
    await conn.execute(delete(agent_memory).where(_IDS.in_(ids)))
    await after_text_removed(transaction, [(record.id, record.scope) for record in records])
    transaction.removed_text = transaction.deleted_fact = True


def expired_by(now: datetime) -> ColumnElement[bool]:
    """The rows that no read shows any more."""
    return agent_memory.c.expires_at <= now


def at_scope(scope: str) -> ColumnElement[bool]:
    """The rows at one scope."""
    return agent_memory.c.scope == scope


def with_id(id_: str, *, scope: str | None = None) -> ColumnElement[bool]:
    """One row, if given only at that scope."""
    one: Any = agent_memory.c.id == id_
    return one if scope is None else one & at_scope(scope)
