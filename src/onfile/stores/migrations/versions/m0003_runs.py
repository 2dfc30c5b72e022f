"""The tables of runs, their journals and threads, which `SqlJournal.setup()` made alone until now.

A copy of the definitions and no import of them: what this revision makes must never change.
"""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, String, Table

from onfile.stores.gaps import fill
from onfile.stores.schema import exact_text, long_text, utc_time

revision = "0003"
down_revision = "0002"

_INNODB: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mariadb_engine": "InnoDB",
    "mariadb_charset": "utf8mb4",
}
_tables = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

Table(
    "agent_run",
    _tables,
    Column("id", exact_text(), primary_key=True),
    Column("thread_id", exact_text(), nullable=False),
    Column("format", Integer, nullable=False),
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
    Column("seen_at", utc_time()),
    Index(None, "thread_id"),
    Index(None, "status", "created_at"),
    **_INNODB,
)

Table(
    "agent_run_checkpoint",
    _tables,
    Column("run_id", exact_text(), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", exact_text(), nullable=False),
    Column("value", long_text(), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("created_at", utc_time(), nullable=False),
    **_INNODB,
)

Table(
    "agent_run_signal",
    _tables,
    Column("run_id", exact_text(), primary_key=True),
    Column("name", exact_text(), primary_key=True),
    Column("value", long_text(), nullable=False),
    Column("created_at", utc_time(), nullable=False),
    **_INNODB,
)

Table(
    "agent_run_fact",
    _tables,
    Column("mark", exact_text(64), primary_key=True),
    Column("run_id", exact_text(), primary_key=True),
    Index(None, "run_id"),
    **_INNODB,
)

Table(
    "agent_run_erasure",
    _tables,
    Column("run_id", exact_text(), primary_key=True),
    Column("mark", exact_text(64), primary_key=True),
    Column("record_id", exact_text(), nullable=False),
    Column("created_at", utc_time(), nullable=False),
    **_INNODB,
)

Table(
    "agent_thread_message",
    _tables,
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


def upgrade() -> None:
    """Make the tables that are missing; those that stand are taken over, with the column they may lack."""
    context = op.get_context()
    if not context.as_sql:
        fill(op.get_bind(), _tables)
        return
    for table in _tables.sorted_tables:
        context.impl.create_table(table)
