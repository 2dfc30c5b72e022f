"""Facts in SQL: SQLite, PostgreSQL, MySQL and MariaDB, through one provider."""

from __future__ import annotations

from .admin import BrowseMemories, EditMemory, EditOutcome, MemoryAdmin, MemoryPage, SweepReport
from .history import MemoryChange, MemoryDeletion
from .journals import journal_metadata
from .managed import managed_tables
from .memories import SqlMemoryProvider
from .restore import RestoreConflict, RestoreReport
from .rows import StoredMemory
from .schema import metadata

__all__ = [
    "BrowseMemories",
    "EditMemory",
    "EditOutcome",
    "MemoryAdmin",
    "MemoryChange",
    "MemoryDeletion",
    "MemoryPage",
    "RestoreConflict",
    "RestoreReport",
    "SqlMemoryProvider",
    "StoredMemory",
    "SweepReport",
    "journal_metadata",
    "managed_tables",
    "metadata",
]
