"""A host's engine for a server is used as it is, whatever its isolation level."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from onfile.errors import StoreError
from onfile.stores import SqlMemoryProvider
from onfile.stores.transactions import Transaction
from tests.stores.desk import Desk

LEVELS = ["AUTOCOMMIT", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]


@pytest.fixture(params=LEVELS)
async def engine(request: pytest.FixtureRequest, server_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(server_url, isolation_level=request.param, pool_size=5, max_overflow=0)
    yield engine
    await engine.dispose()


@pytest.fixture
async def desk(engine: AsyncEngine) -> Desk:
    desk = Desk(SqlMemoryProvider(engine))
    await desk.store.setup()
    return desk


async def test_writers_at_once_lose_nothing_at_any_isolation_level(desk):
    await asyncio.gather(
        *(desk.write(f"key {number}", idempotency_key="x") for number in range(20)),
        *(desk.write("same", f"text {number}") for number in range(20)),
    )

    assert len(await desk.list()) == 21


@pytest.mark.parametrize("call", ["call-1", None], ids=["with a receipt", "without"])
async def test_a_failed_write_is_undone_whole_at_any_isolation_level(desk, engine, call):
    async def rename(table: str, name: str) -> None:
        async with engine.begin() as conn:
            await conn.execute(text(f"ALTER TABLE {table} RENAME TO {name}"))

    await rename("agent_memory_change", "away")  # the last table that a write writes to
    with pytest.raises(StoreError):
        await desk.write(idempotency_key=call)
    await rename("away", "agent_memory_change")

    assert await desk.list() == []
    assert (await desk.write(idempotency_key=call)).text == "kilometres"


async def test_a_database_that_does_not_exist_is_told_as_what_it_is(postgres_url: str):
    store = SqlMemoryProvider.from_url(make_url(postgres_url).set(database="nowhere"))

    with pytest.raises(StoreError, match=r"no such database or user.* create the database first"):
        await store.setup()

    await store.aclose()


async def test_a_connection_goes_back_with_its_isolation_level(desk, engine):
    async with engine.connect() as conn:
        before = await conn.get_isolation_level()

    await desk.forget((await desk.write()).id)

    for _ in range(5):
        async with engine.connect() as conn:
            assert await conn.get_isolation_level() == before


async def test_two_hundred_reads_on_a_pool_of_five_all_finish(desk):
    await desk.write()

    answers = await asyncio.gather(*(desk.list() for _ in range(200)))

    assert all(len(answer) == 1 for answer in answers)


async def close_others(url: str) -> None:
    """Have the server close every connection but the one that says so."""
    engine = create_async_engine(url)
    async with engine.connect() as conn:
        if engine.dialect.name == "postgresql":
            await conn.execute(
                text("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
            )
        else:
            others = text("SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND user = 'root'")
            for connection in (await conn.execute(others)).scalars().all():
                await conn.exec_driver_sql(f"KILL {connection}")
    await engine.dispose()


async def test_work_whose_connection_the_server_closed_is_begun_once_more_on_another(server_url):
    engine = create_async_engine(server_url)
    desk = Desk(SqlMemoryProvider(engine))
    await desk.store.setup()
    begun = []

    async def work(transaction: Transaction) -> None:
        begun.append(await desk_within(desk, transaction).write("drink", f"tea {len(begun)}"))
        if len(begun) == 1:
            await close_others(server_url)
            await desk_within(desk, transaction).write("van", "a lorry")

    await desk.store._database.transact(work)

    assert len(begun) == 2
    assert await desk.texts() == {"drink": "tea 1"}
    await close_others(server_url)
    assert await desk.texts() == {"drink": "tea 1"}
    await engine.dispose()


async def test_work_that_may_have_been_committed_when_its_connection_was_closed_is_not_done_again(server_url):
    engine = create_async_engine(server_url)
    desk = Desk(SqlMemoryProvider(engine))
    await desk.store.setup()
    begun = []

    async def work(transaction: Transaction) -> None:
        begun.append(await desk_within(desk, transaction).write())
        await close_others(server_url)

    with pytest.raises(DBAPIError):
        await desk.store._database.transact(work)

    assert len(begun) == 1
    assert await desk.texts() == {}
    await engine.dispose()


def desk_within(desk: Desk, transaction: Transaction) -> Desk:
    return Desk(desk.store.within(transaction))
