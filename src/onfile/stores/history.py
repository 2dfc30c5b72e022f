"""Who changed what when: a record's earlier texts and the bare fact of each deletion, both only if asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from sqlalchemy import BigInteger, Column, Index, Integer, String, Table, bindparam, delete, insert, select

from .schema import exact_text, long_text, metadata, utc_time
from .steps import Ask

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy.ext.asyncio import AsyncConnection

    from ..records import Author, MemoryOrigin, MemoryRecord
    from .steps import Steps

Change = Literal["written", "replaced", "pinned", "unpinned", "expiry set", "expiry cleared"]
Deletion = Literal["forgotten", "erased", "removed", "expired"]

_INNODB: dict[str, Any] = {"mysql_engine": "InnoDB", "mariadb_engine": "InnoDB"}

agent_memory_history = Table(
    "agent_memory_history",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("memory_id", exact_text(), nullable=False),
    Column("change", String(16), nullable=False),
    Column("text", long_text(), nullable=False),
    Column("origin_author", String(8), nullable=False),
    Column("origin_thread_id", long_text()),
    Column("origin_run_id", long_text()),
    Column("origin_actor_ref", long_text()),
    Column("changed_at", utc_time(), nullable=False),
    Index(None, "memory_id", "position"),
    **_INNODB,
)
"""One row per change of a record, with the text that it had from then on. It goes when the record goes."""

agent_memory_deletion = Table(
    "agent_memory_deletion",
    metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    # Neither key nor text nor scope: an audit of deletions must not be what was deleted.
    Column("memory_id", exact_text(), nullable=False),
    Column("deletion", String(16), nullable=False),
    Column("deleted_at", utc_time(), nullable=False),
    **_INNODB,
)
"""One row per deleted record."""

_h, _d = agent_memory_history.c, agent_memory_deletion.c

# Without asking for the new position: whoever may add to these may not be one who reads them.
NOTE = insert(agent_memory_history).inline()
HISTORY_OF = (
    select(
        _h.change,
        _h.text,
        _h.origin_author,
        _h.origin_thread_id,
        _h.origin_run_id,
        _h.origin_actor_ref,
        _h.changed_at,
    )
    .where(_h.memory_id == bindparam("of_id"))
    .order_by(_h.position)
)
"""What one record went through, oldest first."""
ERASE_HISTORY = delete(agent_memory_history).where(_h.memory_id.in_(bindparam("ids", expanding=True)))
"""All earlier texts of some records. Run also where history is off now: it may have been on."""
AUDIT = insert(agent_memory_deletion).inline()
DELETIONS = (
    select(_d.position, _d.memory_id, _d.deletion, _d.deleted_at)
    .where(_d.position > bindparam("after"))
    .order_by(_d.position)
    .limit(bindparam("size"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One change of a record."""

    change: Change
    text: str
    """The text that the record had from then on."""
    author: Author
    """Who made the change."""
    thread_id: str | None
    run_id: str | None
    actor_ref: str | None
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDeletion:
    """The bare fact that a record was deleted."""

    position: int
    """Rises; ask for what comes after it."""
    memory_id: str
    deletion: Deletion
    deleted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What a store writes down about its changes, within the transaction that makes them."""

    history: bool = False
    audit: bool = False

    def changed(
        self, record: MemoryRecord, change: Change, *, at: datetime, by: MemoryOrigin | None = None
    ) -> Steps[None]:
        """Write down what became of a record, and who did it: unless told otherwise whoever its text is by."""
        if not self.history:
            return
        origin = by or record.origin
        row = {
            "memory_id": record.id,
            "change": change,
            "text": record.text,
            "origin_author": origin.author,
            "origin_thread_id": origin.thread_id,
            "origin_run_id": origin.run_id,
            "origin_actor_ref": origin.actor_ref,
            "changed_at": at,
        }
        yield Ask(statement=NOTE, values=row)

    async def deleted(self, conn: AsyncConnection, ids: Sequence[str], deletion: Deletion, *, at: datetime) -> None:
        """Erase the records' history and, if asked for, write down that they were deleted."""
        await conn.execute(ERASE_HISTORY, {"ids": ids})
        if self.audit and ids:
            await conn.execute(AUDIT, [{"memory_id": id_, "deletion": deletion, "deleted_at": at} for id_ in ids])

    async def replaced(self, conn: AsyncConnection, ids: Sequence[str], gone: Sequence[str], *, at: datetime) -> None:
        """Erase the history of records that a restore put others in place of; `gone` are the ids that went."""
        await conn.execute(ERASE_HISTORY, {"ids": ids})
        await self.deleted(conn, gone, "removed", at=at)


async def history_of(conn: AsyncConnection, id_: str) -> list[MemoryChange]:
    """Read what a record went through, oldest first."""
    return [
        MemoryChange(
            change=cast("Change", change),
            text=text,
            author=cast("Author", author),
            thread_id=thread_id,
            run_id=run_id,
            actor_ref=actor_ref,
            changed_at=changed_at,
        )
        for change, text, author, thread_id, run_id, actor_ref, changed_at in (
            await conn.execute(HISTORY_OF, {"of_id": id_})
        ).all()
    ]


async def deletions_after(conn: AsyncConnection, position: int, *, size: int) -> list[MemoryDeletion]:
    """Read the next deletions, oldest first."""
    rows = (await conn.execute(DELETIONS, {"after": position, "size": size})).all()
    return [
        MemoryDeletion(position=place, memory_id=id_, deletion=cast("Deletion", deletion), deleted_at=at)
        for place, id_, deletion, at in rows
    ]
