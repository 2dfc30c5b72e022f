"""Places to keep journals in: in memory, in SQLite, in PostgreSQL and in MariaDB, each empty."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from onfile.provider import MemoryProvider
from onfile.runs.inline import InlineJournal
from onfile.runs.journal import JournalEngine
from onfile.runs.sql import SqlJournal
from onfile.stores import SqlMemoryProvider
from onfile.testing import InMemoryMemoryProvider
from tests.stores import servers


@dataclass
class Place:
    """Where a test's facts and runs are."""

    journal: JournalEngine
    provider: MemoryProvider
    engine: AsyncEngine | None = None


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


async def sql_url(request: pytest.FixtureRequest, kind: str) -> str:
    """Where an empty database of one kind is."""
    if kind == "sqlite":
        return request.getfixturevalue("sqlite_url")
    drivers = {"postgres": "postgresql+asyncpg", "psycopg": "postgresql+psycopg"}
    if kind in drivers:
        return await servers.emptied(servers.by_driver(request.getfixturevalue("postgres_url"), drivers[kind]))
    return await servers.emptied(servers.by_driver(request.getfixturevalue("mariadb_url"), "mysql+asyncmy"))


async def without_dbos(url: str) -> str:
    """The same database, without what DBOS keeps in it."""
    engine = create_async_engine(url)
    async with engine.begin() as conn:
        await conn.execute(text("DROP SCHEMA IF EXISTS dbos CASCADE"))
    await engine.dispose()
    return url


@pytest.fixture(params=["memory", "sqlite", "postgres", "psycopg", "mariadb"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """An empty place of each kind."""
    if request.param == "memory":
        yield Place(InlineJournal(), InMemoryMemoryProvider())
        return
    async for one in sql_place(await sql_url(request, request.param)):
        yield one


@pytest.fixture(params=["sqlite", "postgres", "psycopg", "mariadb"])
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """An empty place that several processes can share."""
    async for one in sql_place(await sql_url(request, request.param)):
        yield one


@pytest.fixture
async def sqlite(sqlite_url: str) -> AsyncIterator[Place]:
    """An empty SQLite database with facts and runs."""
    async for one in sql_place(sqlite_url):
        yield one
