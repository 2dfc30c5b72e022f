"""Where journals and threads are kept beside the facts, and how a forgotten fact is taken out of them.

The tables are here and not with the runs, because `forget` reaches into them in its own transaction,
in whatever process it is called.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    bindparam,
    delete,
    insert,
    inspect,
    select,
    update,
)

from ..wire.redaction import Erasure, record_mark, redact
from .schema import exact_text, long_text, utc_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Engine
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from .transactions import Transaction

ENDED = ("done", "cancelled")

journal_metadata = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
"""The tables that `SqlJournal.setup()` makes; add it to your own migrations, or leave it to that."""

_INNODB: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
}

agent_run = Table(
    "agent_run",
    journal_metadata,
    Column("id", exact_text(), primary_key=True),
    Column("thread_id", exact_text(), nullable=False),
    Column("format", Integer, nullable=False),
    # JSON in ASCII, as everything that a person or a model said: it may hold what no database can keep.
    Column("context", long_text(), nullable=False),
    Column("said", long_text(), nullable=False),
    Column("status", String(16), nullable=False),
    Column("waits_for", exact_text()),
    Column("owner", exact_text()),
    Column("epoch", Integer, nullable=False),
    Column("output", long_text()),
    Column("error", String(255)),
    Column("created_at", utc_time(), nullable=False),
    Column("updated_at", utc_time(), nullable=False),
    # By the database's clock, so that machines whose clocks differ agree on who was not seen.
    Column("seen_at", utc_time()),
    Index(None, "thread_id"),
    Index(None, "status", "created_at"),
    **_INNODB,
)
"""One row per run."""

agent_run_checkpoint = Table(
    "agent_run_checkpoint",
    journal_metadata,
    Column("run_id", exact_text(), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", exact_text(), nullable=False),
    Column("value", long_text(), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("created_at", utc_time(), nullable=False),
    **_INNODB,
)
"""One row per checkpoint: the journal."""

agent_run_signal = Table(
    "agent_run_signal",
    journal_metadata,
    Column("run_id", exact_text(), primary_key=True),
    Column("name", exact_text(), primary_key=True),
    Column("value", long_text(), nullable=False),
    Column("created_at", utc_time(), nullable=False),
    **_INNODB,
)
"""One row per answer of a person."""

agent_run_fact = Table(
    "agent_run_fact",
    journal_metadata,
    Column("mark", exact_text(64), primary_key=True),
    Column("run_id", exact_text(), primary_key=True),
    Index(None, "run_id"),
    **_INNODB,
)
"""Which runs hold which facts, by digest: it must not tell what a fact was about."""

agent_run_erasure = Table(
    "agent_run_erasure",
    journal_metadata,
    Column("run_id", exact_text(), primary_key=True),
    Column("mark", exact_text(64), primary_key=True),
    Column("record_id", exact_text(), nullable=False),
    Column("created_at", utc_time(), nullable=False),
    **_INNODB,
)
"""What is still to be redacted from a run that was under way when a fact was forgotten."""

agent_thread_message = Table(
    "agent_thread_message",
    journal_metadata,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("thread_id", exact_text(), nullable=False),
    Column("run_id", exact_text(), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("content", long_text(), nullable=False),
    Column("created_at", utc_time(), nullable=False),
    Index(None, "thread_id", "position"),
    Index(None, "run_id"),
    **_INNODB,
)
"""One row per message, call result included."""

_r, _c, _f, _e, _t = (
    table.c for table in (agent_run, agent_run_checkpoint, agent_run_fact, agent_run_erasure, agent_thread_message)
)

HOLDERS = (
    select(_r.id, _r.status)
    .where(_r.id.in_(select(_f.run_id).where(_f.mark.in_(bindparam("marks", expanding=True)))))
    .order_by(_r.id)
    .with_for_update()
)
"""The runs that hold a fact, held themselves: one that is just ending would keep the fact if it seemed under way."""
CHECKPOINTS_OF = select(_c.position, _c.value).where(_c.run_id == bindparam("of_run"))
MESSAGES_OF = select(_t.position, _t.content).where(_t.run_id == bindparam("of_run"))
REWRITE_CHECKPOINT = (
    update(agent_run_checkpoint)
    .where(_c.run_id == bindparam("of_run"), _c.position == bindparam("at_position"))
    .values(value=bindparam("new_text"))
)
"""A checkpoint redacted. Its position, name, epoch and time are absent from SET on purpose."""
REWRITE_MESSAGE = (
    update(agent_thread_message).where(_t.position == bindparam("at_position")).values(content=bindparam("new_text"))
)
UNMARK = delete(agent_run_fact).where(_f.run_id == bindparam("of_run"), _f.mark.in_(bindparam("marks", expanding=True)))
PENDING_OF = select(_e.record_id, _e.mark).where(_e.run_id == bindparam("of_run"))
SETTLED = delete(agent_run_erasure).where(_e.run_id == bindparam("of_run"))
POSTPONE = insert(agent_run_erasure)
PENDING = select(_e.run_id).distinct().order_by(_e.run_id)
"""The runs under way from which something is still to be taken: what `onfile db doctor` names."""

_known: WeakSet[Engine] = WeakSet()


async def erase_from_journals(transaction: Transaction, erasure: Erasure, *, now: datetime) -> int:
    """Take a fact that is being forgotten out of every journal and thread, in the same transaction.

    A run under way keeps the digest it resolved until it ends, and is redacted then.

    Returns:
        In how many places the fact stood in runs that have ended.
    """
    conn = transaction.conn
    if not await _has_journals(conn):
        return 0
    marks = [erasure.mark, record_mark(erasure.record_id)]
    erased = 0
    for run_id, status in (await conn.execute(HOLDERS, {"marks": marks})).all():
        if status in ENDED:
            erased += await redact_run(transaction, run_id, [erasure])
        else:
            await postpone(transaction, run_id, [erasure], now=now)
    return erased


async def postpone(transaction: Transaction, run_id: str, erasures: Sequence[Erasure], *, now: datetime) -> None:
    """Note what is to be redacted from a run when it ends."""
    conn = transaction.conn
    pending = {mark: record_id for record_id, mark in (await conn.execute(PENDING_OF, {"of_run": run_id})).all()}
    for erasure in erasures:
        # The question may have been forgotten before, and answered anew: its calls are to be redacted
        # already, and this record is named by itself.
        before = pending.get(erasure.mark, erasure.record_id)
        mark = erasure.mark if before == erasure.record_id else record_mark(erasure.record_id)
        if mark not in pending:
            row = {"run_id": run_id, "mark": mark, "record_id": erasure.record_id, "created_at": now}
            await conn.execute(POSTPONE, row)
            pending[mark] = erasure.record_id


async def redact_pending(transaction: Transaction, run_id: str) -> int:
    """Redact from a run that has just ended what was forgotten while it was under way."""
    rows = (await transaction.conn.execute(PENDING_OF, {"of_run": run_id})).all()
    if not rows:
        return 0
    erasures = [Erasure(record_id=record_id, mark=mark) for record_id, mark in rows]
    erased = await redact_run(transaction, run_id, erasures)
    await transaction.conn.execute(SETTLED, {"of_run": run_id})
    return erased


async def redact_run(transaction: Transaction, run_id: str, erasures: Sequence[Erasure]) -> int:
    """Redact forgotten facts from one run's journal and messages; answer in how many places they stood."""
    conn, erased = transaction.conn, 0
    for kept, rewrite in ((CHECKPOINTS_OF, REWRITE_CHECKPOINT), (MESSAGES_OF, REWRITE_MESSAGE)):
        for position, text in (await conn.execute(kept, {"of_run": run_id})).all():
            value, count = redact(json.loads(text), erasures)
            if count:
                new = {"at_position": position, "new_text": json.dumps(value, separators=(",", ":"))}
                await conn.execute(rewrite, new if rewrite is REWRITE_MESSAGE else {**new, "of_run": run_id})
                erased += count
    marks = [mark for one in erasures for mark in (one.mark, record_mark(one.record_id))]
    await conn.execute(UNMARK, {"of_run": run_id, "marks": marks})
    if erased:
        transaction.removed_text = True
    return erased


async def pending_erasures(engine: AsyncEngine) -> list[str]:
    """Name the runs under way from which something forgotten is still to be taken, for `onfile db doctor`."""
    async with engine.connect() as conn:
        return await pending_erasures_on(conn)


async def pending_erasures_on(conn: AsyncConnection) -> list[str]:
    """Do what `pending_erasures` does, on a connection under way."""
    return list((await conn.execute(PENDING)).scalars()) if await _has_journals(conn) else []


async def _has_journals(conn: AsyncConnection) -> bool:
    """Tell whether this database keeps runs at all; most that hold facts do not."""
    engine = conn.engine.sync_engine
    if engine not in _known:
        if not await conn.run_sync(lambda sync: inspect(sync).has_table(agent_run_erasure.name)):
            return False
        _known.add(engine)
    return True
