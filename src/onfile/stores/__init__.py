"""Facts in SQL: SQLite, PostgreSQL, MySQL and MariaDB, through one provider."""

from __future__ import annotations

from .memories import SqlMemoryProvider
from .restore import RestoreConflict, RestoreReport
from .rows import StoredMemory
from .schema import managed_tables, metadata

__all__ = ["RestoreConflict", "RestoreReport", "SqlMemoryProvider", "StoredMemory", "managed_tables", "metadata"]
