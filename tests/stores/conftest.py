"""Real databases for the store's tests: one of its own for each test, empty."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from onfile.stores import SqlMemoryProvider
from tests.stores import servers
from tests.stores.desk import Desk

SERVERS = ["asyncpg", "psycopg", "mariadb"]
DATABASES = ["sqlite", "memory", *SERVERS]


async def empty_database(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    if kind == "memory":
        return "sqlite+aiosqlite://"
    if kind == "sqlite":
        return f"sqlite+aiosqlite:///{folder}/onfile.db"
    if kind == "mariadb":
        return await servers.emptied(servers.by_driver(request.getfixturevalue("mariadb_url"), "mysql+asyncmy"))
    return await servers.emptied(servers.by_driver(request.getfixturevalue("postgres_url"), f"postgresql+{kind}"))


@pytest.fixture(params=DATABASES)
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is, of each kind and driver."""
    return await empty_database(request.param, request, tmp_path)


@pytest.fixture(params=[kind for kind in DATABASES if kind != "memory"])
async def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is that several processes can use."""
    return await empty_database(request.param, request, tmp_path)


@pytest.fixture(params=SERVERS)
async def server_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database of a server is."""
    return await empty_database(request.param, request, tmp_path)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[AsyncEngine]:
    """A host's own engine, plainly built."""
    engine = create_async_engine(url)
    yield engine
    await engine.dispose()


@pytest.fixture
async def desk(engine: AsyncEngine) -> AsyncIterator[Desk]:
    """A store that is set up, on a host's engine, with a clock that moves on by itself."""
    desk = Desk(store=None)  # the store needs the desk's clock first
    desk.store = SqlMemoryProvider(engine, clock=desk.clock)
    await desk.store.setup()
    yield desk
    await desk.store.aclose()
