"""Every table that onfile makes, by name: for a host's own migrations, which must leave them alone."""

from __future__ import annotations

from .halfvec import halfvec_metadata
from .journals import journal_metadata
from .schema import metadata

VERSION_TABLE = "onfile_version"
"""Where the revision of a database is kept."""


def managed_tables() -> tuple[str, ...]:
    """Name the tables that onfile makes, of facts and of runs, for a host's migration differ to skip."""
    return (*metadata.tables, *halfvec_metadata.tables, *journal_metadata.tables, VERSION_TABLE)
