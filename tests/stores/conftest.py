"""Real databases for the store's tests: one of its own for each test, empty and set up."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from onfile.stores import SqlMemoryProvider
from tests.stores.desk import Desk

DATABASES = ["sqlite", "memory"]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty database is, of each kind."""
    if request.param == "memory":
        return "sqlite+aiosqlite://"
    return f"sqlite+aiosqlite:///{tmp_path}/onfile.db"


@pytest.fixture
async def engine(url: str) -> AsyncIterator[AsyncEngine]:
    """A host's own engine, plainly built."""
    engine = create_async_engine(url)
    yield engine
    await engine.dispose()


@pytest.fixture
async def desk(engine: AsyncEngine) -> AsyncIterator[Desk]:
    """A store that is set up, on a host's engine, with a clock that moves on by itself."""
    desk = Desk(store=None)  # type: ignore[arg-type]  # the store needs the desk's clock first
    desk.store = SqlMemoryProvider(engine, clock=desk.clock)
    await desk.store.setup()
    yield desk
    await desk.store.aclose()
