"""What a database's tables lack of their definitions, and how `setup()` adds it without Alembic.

A later version may add a table, an index, or a column that a row can do without: those are added
here, whatever version made the tables, and to add them twice changes nothing. What takes more than
that is a matter for `onfile db upgrade`, and said before anything is touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import inspect, text
from sqlalchemy.schema import CreateColumn

from ..errors import StoreError

if TYPE_CHECKING:
    from sqlalchemy import Column, Connection, Index, MetaData


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """What the tables that stand lack."""

    columns: tuple[Column[Any], ...]
    indexes: tuple[Index, ...]


def gaps_of(conn: Connection, metadata: MetaData) -> Gaps:
    """Compare the tables that stand with their definitions, by the names of columns and indexes."""
    if not metadata.tables:
        return Gaps(columns=(), indexes=())
    inspector = inspect(conn)
    names = set(inspector.get_table_names()) & set(metadata.tables)
    if not names:
        return Gaps(columns=(), indexes=())
    columns = {key[1]: found for key, found in inspector.get_multi_columns(filter_names=sorted(names)).items()}
    indexes = {key[1]: found for key, found in inspector.get_multi_indexes(filter_names=sorted(names)).items()}
    tables = [metadata.tables[name] for name in metadata.tables if name in names]
    return Gaps(
        columns=tuple(
            column
            for table in tables
            for column in table.columns
            if column.name not in {found["name"] for found in columns[table.name]}
        ),
        indexes=tuple(
            index
            for table in tables
            for index in sorted(table.indexes, key=lambda index: str(index.name))
            if index.name not in {found["name"] for found in indexes[table.name]}
        ),
    )


def fill(conn: Connection, metadata: MetaData) -> None:
    """Make what is missing of tables, columns and indexes.

    Raises:
        StoreError: A table lacks a column that its rows cannot be given here; nothing was changed.
    """
    gaps = gaps_of(conn, metadata)
    for column in gaps.columns:
        if column.primary_key or not (column.nullable or column.server_default is not None):
            msg = (
                f"the table {column.table.name} lacks the column {column.name}, which `setup()` cannot add to it; "
                "run `onfile db upgrade` (it takes `pip install 'onfile[cli]'`)"
            )
            raise StoreError(msg)
    metadata.create_all(conn)
    for column in gaps.columns:
        spelled = CreateColumn(column).compile(dialect=conn.dialect)
        conn.execute(text(f"ALTER TABLE {column.table.name} ADD COLUMN {spelled}".replace(":", "\\:")))
    for index in gaps.indexes:
        index.create(conn)
