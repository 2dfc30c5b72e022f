"""A PostgreSQL database whose rows are held to scopes, and the roles that work with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import make_url
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from onfile.runs.sql import SqlJournal
from onfile.stores import SqlMemoryProvider
from onfile.stores.dialects import database_of
from onfile.stores.row_security import change, installing, row_security_of
from onfile.stores.sight import see

OWNER, APP, DESK = "onfile_test_owner", "onfile_test_app", "onfile_test_desk"
"""The tables' owner; what an application connects as; who may see every scope."""


@dataclass
class Guarded:
    """A database whose rows are held to scopes."""

    url: str
    engines: list[AsyncEngine] = field(default_factory=list)

    def url_of(self, role: str) -> URL:
        return make_url(self.url).set(username=role)

    def engine(self, role: str | None = None, **options: Any) -> AsyncEngine:
        """An engine that connects as the role, or as the server's superuser."""
        engine = create_async_engine(self.url_of(role) if role else self.url, **options)
        self.engines.append(engine)
        return engine

    def store(self, role: str, *parts: Any, options: dict[str, Any] | None = None, **more: Any) -> SqlMemoryProvider:
        return SqlMemoryProvider(self.engine(role, **(options or {})), *parts, row_level_security=True, **more)

    async def run(self, *statements: str) -> None:
        """As the server's superuser, whom nothing holds."""
        engine = self.engine()
        async with engine.begin() as conn:
            for statement in statements:
                await conn.exec_driver_sql(statement)
        await engine.dispose()

    async def all_of(self, statement: str) -> list[Any]:
        """What the server's superuser sees."""
        engine = self.engine()
        async with engine.connect() as conn:
            rows = [tuple(row) for row in await conn.exec_driver_sql(statement)]
        await engine.dispose()
        return rows

    async def tables(self) -> list[str]:
        """The tables that are to be guarded, of those that this server can have."""
        async with self.engine(OWNER).connect() as conn:
            return list((await row_security_of(conn)).guarded)

    async def empty(self) -> None:
        await self.run(
            "TRUNCATE agent_memory, agent_memory_receipt, agent_memory_revision, agent_memory_change CASCADE"
        )


@asynccontextmanager
async def held_to(engine: AsyncEngine, *scopes: str) -> AsyncIterator[AsyncConnection]:
    """A transaction that sees these scopes, for statements without any WHERE."""
    async with engine.connect() as conn:
        if scopes:
            await see(conn, scopes)
        yield conn


@asynccontextmanager
async def guarded(url: str) -> AsyncIterator[Guarded]:
    """Make the tables as their owner, and hold the others to scopes."""
    place = Guarded(url)
    for role in (OWNER, APP, DESK):
        made = f"IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN CREATE ROLE {role} LOGIN"
        await place.run(f"DO $$ BEGIN {made}; END IF; END $$")
    # pgvector where the server has it: its side table is to be guarded as well
    available = "IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector')"
    await place.run(f"DO $$ BEGIN {available} THEN CREATE EXTENSION IF NOT EXISTS vector; END IF; END $$")
    await place.run(f"GRANT ALL ON SCHEMA public TO {OWNER}", f"REVOKE {DESK} FROM {APP}")
    owner = place.engine(OWNER)
    await SqlMemoryProvider(owner).setup()
    await SqlJournal(owner).setup()
    await change(database_of(owner), lambda conn: installing(conn, role=APP, operators=[DESK]))
    try:
        yield place
    finally:
        for engine in place.engines:
            await engine.dispose()
        await place.run("DROP TABLE IF EXISTS agent_memory CASCADE")  # and the policies that look into it
