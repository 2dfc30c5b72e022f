"""The state of a database is told alike on every kind, and a vacuum loses nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.errors import StoreError
from onfile.recall import CallableEmbedder
from onfile.records import Actor
from onfile.stores import SqlMemoryProvider, StoredMemory
from onfile.stores.health import health_of, vacuum
from tests.facts import fact
from tests.stores.conftest import empty_database


async def test_every_database_counts_code_points_and_exact_scopes_alike(desk, engine):
    kept = [
        fact("ключ" * 16, "é" * 240),
        fact("k" * 65, "x" * 241, scope="Actor:a"),
        fact(scope="tenant:a", pinned=True),
    ]
    await desk.store.restore([StoredMemory(record=one, created_at=one.updated_at) for one in kept])
    await vacuum(engine)

    now = datetime(2027, 1, 1, tzinfo=UTC)
    health = await health_of(engine, now=now, receipts_before=now, max_fact=240, max_key=64, max_memories=0)

    assert health.rows == {"actor": 1, "other": 1, "tenant": 1}
    assert (health.long_facts, health.long_keys, health.overpinned_scopes, health.without_vector) == (1, 1, 1, 3)
    assert await desk.store.count() == 3


async def test_a_fact_with_another_models_vector_lacks_one_of_the_model_that_is_asked_about(desk, engine):
    before, now = (
        CallableEmbedder(lambda texts: [[1.0, 0.0]] * len(texts), model=model, dimensions=2) for model in "ab"
    )
    store = SqlMemoryProvider(engine, before, clock=desk.clock)
    await desk.store.restore([StoredMemory(record=one, created_at=one.updated_at) for one in (fact("a"), fact("b"))])
    async for _ in store.reindex():
        pass
    asked = {"now": desk.now, "receipts_before": desk.now, "max_fact": 240, "max_key": 64, "max_memories": 20}

    lacking = [(await health_of(engine, embedder=embedder, **asked)).without_vector for embedder in (None, before, now)]

    assert lacking == [0, 0, 2]
    await store.aclose()


@pytest.fixture(params=["asyncpg", "psycopg"])
async def postgresql(request, tmp_path):
    engine = create_async_engine(await empty_database(request.param, request, tmp_path))
    yield engine
    await engine.dispose()


async def bytes_of_every_page(engine) -> bytes:
    """What stands in the files of the database's tables and indexes."""
    pages = (
        "SELECT get_raw_page(CAST(c.oid AS regclass)::text, CAST(n AS int)) FROM pg_class c,"
        " generate_series(0, pg_relation_size(c.oid) / 8192 - 1) n"
        " WHERE c.relkind IN ('r', 'i', 't') AND c.oid >= 16384"
    )
    async with engine.begin() as conn:
        await conn.execute(text("CREATE EXTENSION IF NOT EXISTS pageinspect"))
        return b"".join((await conn.execute(text(pages))).scalars().all())


async def test_a_full_vacuum_of_postgresql_leaves_no_byte_of_200_forgotten_facts(postgresql):
    store = SqlMemoryProvider(postgresql, history=True)
    await store.setup()
    kept = [fact(f"key {n}", f"{who} said {n} " + "x" * 200, scope=f"actor:{who}") for n in range(200) for who in "ab"]
    await store.restore([StoredMemory(record=one, created_at=one.updated_at) for one in kept])
    assert (await bytes_of_every_page(postgresql)).count(b"a said") >= 400

    assert await store.forget_all(actor=Actor(id="a")) == 200
    await vacuum(postgresql, full=True)

    left = await bytes_of_every_page(postgresql)
    assert b"a said" not in left
    assert left.count(b"b said") == 400


async def test_a_role_that_may_not_vacuum_is_told_so(postgresql):
    await SqlMemoryProvider(postgresql).setup()
    async with postgresql.begin() as conn:
        made = "IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'onfile_app') THEN CREATE ROLE onfile_app LOGIN"
        await conn.execute(text(f"DO $$ BEGIN {made}; END IF; END $$"))
    app = create_async_engine(make_url(postgresql.url).set(username="onfile_app"))

    with pytest.raises(StoreError, match="only the owner of the table"):
        await vacuum(app)
    await app.dispose()


async def test_a_vacuum_does_not_wait_for_ever_for_who_keeps_a_table(server_url, monkeypatch):
    monkeypatch.setattr("onfile.stores.health._LOCK_SECONDS", 1)
    engine = create_async_engine(server_url)
    await SqlMemoryProvider(engine).setup()

    async with engine.connect() as conn:
        await conn.execute(text("SELECT count(*) FROM agent_memory"))
        with pytest.raises(StoreError, match="kept"):
            await vacuum(engine, full=True)
    await vacuum(engine, full=True)
    await engine.dispose()
