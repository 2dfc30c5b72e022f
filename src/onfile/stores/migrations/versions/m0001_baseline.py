"""The tables as they were first released.

A copy of the definitions and no import of them: what this revision makes must never change, while
the definitions go on. A test holds that all revisions together come to the definitions.
"""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    false,
    inspect,
)
from sqlalchemy.dialects import mysql

from onfile.errors import StoreError
from onfile.stores.schema import exact_text, long_text, utc_time

revision = "0001"
down_revision = None

_TABLE: dict[str, Any] = {"mysql_engine": "InnoDB", "mariadb_engine": "InnoDB"}
_tables = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

Table(
    "agent_memory",
    _tables,
    Column("id", exact_text(), primary_key=True),
    Column("scope", exact_text(), nullable=False),
    Column("key", exact_text(), nullable=False),
    Column("key_identity", exact_text(), nullable=False),
    Column("text", long_text(), nullable=False),
    Column("origin_author", String(8), nullable=False),
    Column("origin_thread_id", long_text()),
    Column("origin_run_id", long_text()),
    Column("origin_actor_ref", long_text()),
    Column("pinned", Boolean, nullable=False, server_default=false()),
    Column("created_at", utc_time(), nullable=False),
    Column("updated_at", utc_time(), nullable=False),
    Column("expires_at", utc_time()),
    UniqueConstraint("scope", "key_identity"),
    Index(None, "updated_at", "id"),
    Index(None, "created_at", "id"),
    Index(None, "key_identity", "id"),
    Index(None, "expires_at"),
    Index(None, "origin_run_id", postgresql_using="hash", mysql_length=191, mariadb_length=191),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
    mysql_row_format="DYNAMIC",
    mariadb_engine="InnoDB",
    mariadb_charset="utf8mb4",
    mariadb_row_format="DYNAMIC",
)

Table(
    "agent_memory_receipt",
    _tables,
    Column("digest", exact_text(64), primary_key=True),
    Column("created_at", utc_time(), nullable=False, index=True),
    mysql_engine="InnoDB",
    mariadb_engine="InnoDB",
)

Table(
    "agent_memory_revision",
    _tables,
    Column("scope", exact_text(), primary_key=True),
    Column("revision", BigInteger, nullable=False),
    **_TABLE,
)

Table(
    "agent_memory_change",
    _tables,
    Column("scope", exact_text(), primary_key=True),
    Column("revision", BigInteger, primary_key=True, autoincrement=False),
    Column("memory_id", exact_text(), nullable=False),
    **_TABLE,
)

Table(
    "agent_memory_vector",
    _tables,
    Column("memory_id", exact_text(), ForeignKey("agent_memory.id", ondelete="CASCADE"), primary_key=True),
    Column("model", exact_text(), nullable=False),
    Column("dimensions", Integer, nullable=False),
    Column(
        "vector",
        LargeBinary().with_variant(mysql.MEDIUMBLOB(), "mysql", "mariadb"),
        nullable=False,
    ),
    **_TABLE,
)

Table(
    "agent_memory_history",
    _tables,
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
    **_TABLE,
)

Table(
    "agent_memory_deletion",
    _tables,
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("memory_id", exact_text(), nullable=False),
    Column("deletion", String(16), nullable=False),
    Column("deleted_at", utc_time(), nullable=False),
    **_TABLE,
)


def upgrade() -> None:
    """Make the tables that are missing; those that `setup()` made are taken over as they stand.

    Raises:
        StoreError: A table stands that lacks a column, so that it is of no released version.
    """
    context = op.get_context()
    standing = _columns_standing(_tables) if not context.as_sql else {}
    for table in _tables.sorted_tables:
        if table.name not in standing:
            context.impl.create_table(table)
        elif not {column.name for column in table.columns} <= standing[table.name]:
            msg = (
                f"the table {table.name} lacks columns of the first released version; "
                "export its facts, move it out of the way, upgrade, and import them"
            )
            raise StoreError(msg)


def _columns_standing(tables: MetaData) -> dict[str, set[str]]:
    inspector = inspect(op.get_bind())
    return {
        name: {column["name"] for column in inspector.get_columns(name)}
        for name in tables.tables
        if inspector.has_table(name)
    }
