"""The tables that facts are kept in: one for the facts, one for the receipts of their writes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Boolean, Column, DateTime, Index, MetaData, String, Table, Text, UniqueConstraint, false
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeDecorator, UserDefinedType

from ..text import LONGEST_TOKEN

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect

_UTF8_BYTES = 4


class _ExactBytes(TypeDecorator[str]):
    """Text as its UTF-8 bytes: MySQL's collations disagree on case, accents and trailing blanks."""

    impl = mysql.VARBINARY
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        del dialect
        return None if value is None else value.encode()

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:
        del dialect
        return None if value is None else bytes(value).decode()


def _iso_of(value: datetime | None) -> str | None:
    return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")


def _time_of(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


class _SqliteTime(UserDefinedType[datetime]):
    """A time as ISO text with microseconds and offset, which sorts and reads well in any SQLite shell."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "TEXT"

    def bind_processor(self, dialect: Dialect) -> Any:
        del dialect
        return _iso_of

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        del dialect, coltype
        return _time_of


class _MysqlTime(TypeDecorator[datetime]):
    """A time as DATETIME(6) in UTC: MySQL keeps no offset, and without the 6 no microseconds."""

    impl = mysql.DATETIME
    cache_ok = True

    def __init__(self) -> None:
        super().__init__(fsp=6)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        del dialect
        return None if value is None else value.replace(tzinfo=UTC)


def exact_text(length: int = LONGEST_TOKEN) -> String:
    """A short text column that compares byte for byte on every database, trailing blanks included."""
    return (
        String(length)
        .with_variant(postgresql.VARCHAR(length, collation="C"), "postgresql")
        .with_variant(_ExactBytes(length * _UTF8_BYTES), "mysql", "mariadb")
    )


def utc_time() -> DateTime:
    """A time column that gives back the same microsecond, timezone-aware in UTC, on every database."""
    return DateTime(timezone=True).with_variant(_SqliteTime(), "sqlite").with_variant(_MysqlTime(), "mysql", "mariadb")


def long_text() -> Text:
    """A text column without a limit of its own; MySQL's plain TEXT would end at 64 kilobytes."""
    return Text().with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")


metadata = MetaData(
    naming_convention={
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
"""Add this to your own migrations' target metadata, or leave the tables to `setup()`."""

agent_memory = Table(
    "agent_memory",
    metadata,
    Column("id", exact_text(), primary_key=True),
    Column("scope", exact_text(), nullable=False),
    Column("key", exact_text(), nullable=False),
    Column("key_identity", exact_text(), nullable=False),
    Column("text", long_text(), nullable=False),
    Column("origin_author", String(8), nullable=False),
    # Without a limit: a thread, a run and an actor are the host's to name, and may be gone since.
    Column("origin_thread_id", long_text()),
    Column("origin_run_id", long_text()),
    Column("origin_actor_ref", long_text()),
    Column("pinned", Boolean, nullable=False, server_default=false()),
    Column("created_at", utc_time(), nullable=False),
    Column("updated_at", utc_time(), nullable=False),
    Column("expires_at", utc_time()),
    UniqueConstraint("scope", "key_identity"),
    # What a console sorts by, through millions.
    Index(None, "updated_at", "id"),
    Index(None, "created_at", "id"),
    Index(None, "key_identity", "id"),
    Index(None, "expires_at"),
    # By hash, where there is one: a run's id may be longer than a tree's page.
    Index(None, "origin_run_id", postgresql_using="hash", mysql_length=191, mariadb_length=191),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
    mysql_row_format="DYNAMIC",
    mariadb_engine="InnoDB",
    mariadb_charset="utf8mb4",
    mariadb_row_format="DYNAMIC",
)
"""One row per fact."""

agent_memory_receipt = Table(
    "agent_memory_receipt",
    metadata,
    # SHA-256 of idempotency key, scope and key identity: a receipt outlives the fact (or a replay
    # would bring a forgotten one back), so it must not tell what the fact was about.
    Column("digest", exact_text(64), primary_key=True),
    Column("created_at", utc_time(), nullable=False, index=True),
    mysql_engine="InnoDB",
    mariadb_engine="InnoDB",
)
"""One row per write that carried an idempotency key, so that a retry does nothing."""
