"""Where PostgreSQL keeps vectors: in pgvector's table, or as bytes and with one line in the log where it has none."""

from __future__ import annotations

import logging
import struct

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.provider import SearchMemories
from onfile.recall import CallableEmbedder
from onfile.recall.vectors import packed
from onfile.stores import SqlMemoryProvider, halfvec
from onfile.stores.migrate import VERSION_TABLE, as_sql, state_of, upgrade
from onfile.stores.vectors import BYTES, vector_state
from tests.stores import servers
from tests.stores.conftest import empty_database
from tests.stores.desk import Desk, context

TOPICS = ("tea drink sencha beverage", "van drive lorry car", "sea swim water beach")
NOBODY = "onfile_test_nobody"
ROWS = (
    "SELECT v.memory_id, m.scope, v.model, v.dimensions, halfvec_send(embedding) FROM agent_memory_halfvec v"
    " JOIN agent_memory m ON m.id = v.memory_id AND m.scope = v.scope ORDER BY v.memory_id"
)


class Topics(CallableEmbedder):
    """Vectors of three topics; counts the facts that it was asked to embed."""

    def __init__(self, model="topics"):
        super().__init__(self._by_topic, model=model, dimensions=3)
        self.asked = []

    def _by_topic(self, texts):
        self.asked += texts
        return [[0.1 + sum(word in one.lower() for word in topic.split()) for topic in TOPICS] for one in texts]


@pytest.fixture(params=["asyncpg", "psycopg"])
async def url(request, tmp_path):
    """An empty database."""
    return await empty_database(request.param, request, tmp_path)


@pytest.fixture
async def plain(url):
    """A database without the extension, for a role that may not make it; and its administrator's engine."""
    admin = create_async_engine(url, isolation_level="AUTOCOMMIT")
    named = make_url(url).set(database="onfile_without_pgvector")
    async with admin.connect() as conn:
        await conn.exec_driver_sql("DROP DATABASE IF EXISTS onfile_without_pgvector WITH (FORCE)")
        await conn.exec_driver_sql("CREATE DATABASE onfile_without_pgvector")
        await conn.exec_driver_sql(
            f"DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{NOBODY}')"
            f" THEN CREATE ROLE {NOBODY} LOGIN; END IF; END $$"
        )
    there = create_async_engine(named, isolation_level="AUTOCOMMIT")
    async with there.connect() as conn:
        await conn.exec_driver_sql(f"GRANT ALL ON SCHEMA public TO {NOBODY}")
    yield named.set(username=NOBODY), there
    await there.dispose()
    async with admin.connect() as conn:
        await conn.exec_driver_sql("DROP DATABASE onfile_without_pgvector WITH (FORCE)")
    await admin.dispose()


@pytest.fixture
async def engine(url):
    engine = create_async_engine(url)
    yield engine
    await engine.dispose()


async def desk_of(place, embedder=None):
    desk = Desk(store=None)
    desk.store = SqlMemoryProvider.from_url(place, embedder or Topics())
    await desk.store.setup()
    return desk


async def found(store, query):
    asked = SearchMemories(scopes=["actor:ana"], query=query, limit=1, ctx=context("ana"))
    return [record.key for record in await store.search(asked)]


async def rows(engine, statement):
    async with engine.connect() as conn:
        return [tuple(row) for row in await conn.execute(text(statement))]


async def counts(engine):
    return [(await rows(engine, f"SELECT count(*) FROM agent_memory_{name}"))[0][0] for name in ("vector", "halfvec")]


async def test_without_the_extension_everything_works_and_one_line_says_so(plain, caplog):
    url, there = plain
    with caplog.at_level(logging.INFO, logger="onfile"):
        desk = await desk_of(url)
        await upgrade(desk.store.engine)
        await desk.write("morning", "has sencha")
        await desk.write("work", "uses a lorry")
        assert await found(desk.store, "which beverage?") == ["morning"]
        await desk.write("morning", "takes the van")
        assert [step.total async for step in desk.store.reindex()] == [0]

    [line] = [record.getMessage() for record in caplog.records if record.name.startswith("onfile")]
    assert "pgvector" in line
    assert "kept as bytes" in line
    assert "CREATE EXTENSION vector" in line
    async with there.connect() as conn:
        state = await vector_state(conn)
    assert (state.place, state.counts, state.without) == (BYTES, {"topics": 2}, 0)
    assert state.missing in line
    await desk.store.aclose()


async def test_words_alone_need_no_extension_and_no_line(plain, caplog):
    url, _ = plain
    store = SqlMemoryProvider.from_url(url)
    with caplog.at_level(logging.INFO, logger="onfile"):
        await store.setup()
        await Desk(store).write("morning", "has sencha")
        assert await found(store, "sencha") == ["morning"]

    assert not [record for record in caplog.records if record.name.startswith("onfile")]
    await store.aclose()


async def test_when_the_extension_comes_later_vectors_move_and_a_running_process_goes_with_them(plain):
    url, there = plain
    running = await desk_of(url)
    await running.write("morning", "has sencha")
    await running.write("work", "uses a lorry")
    assert await found(running.store, "which beverage?") == ["morning"]

    async with there.connect() as conn:
        await conn.exec_driver_sql("CREATE EXTENSION vector")
    operator = SqlMemoryProvider.from_url(url)
    await upgrade(operator.engine)
    assert await counts(there) == [0, 2]

    await running.write("morning", "is at the beach")
    await running.write("evening", "has a drink")
    assert await counts(there) == [0, 3]
    assert await found(running.store, "where to swim?") == ["morning"]
    await running.forget((await running.list())[0].id)
    assert await counts(there) == [0, 2]
    await operator.aclose()
    await running.store.aclose()


async def test_bytes_of_the_first_released_schema_are_moved_as_they_are_and_nothing_is_embedded_again(url, engine):
    await upgrade(engine)
    async with engine.begin() as conn:
        await conn.execute(text("DROP TABLE agent_memory_halfvec"))
        await conn.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0001'"))
    words = SqlMemoryProvider(engine)
    kept = [await Desk(words).write(f"k{n}", f"fact {n}") for n in range(3)]
    # 0.1 and its like are no halves, the largest and smallest ones are; and one of another model.
    vectors = [[0.6, -0.8, 0.0], [1.0, 2**-24, -(2**-14)], [0.1, 0.2, 0.3]]
    blobs = [packed(vectors[0]), struct.pack("<3e", *vectors[1]), packed(vectors[2])]
    async with engine.begin() as conn:
        await conn.execute(
            text("INSERT INTO agent_memory_vector VALUES (:id, :model, 3, :blob)"),
            [
                {"id": record.id, "model": model, "blob": blob}
                for record, model, blob in zip(kept, ("topics", "topics", "other"), blobs, strict=True)
            ],
        )

    await upgrade(engine)

    assert not (await state_of(engine)).pending
    assert await counts(engine) == [0, 3]
    moved = {row[0]: (row[2], row[3], halfvec.from_sent(bytes(row[4]))) for row in await rows(engine, ROWS)}
    assert moved == {
        record.id: (model, 3, blob)
        for record, model, blob in zip(kept, ("topics", "topics", "other"), blobs, strict=True)
    }
    embedder = Topics()
    store = SqlMemoryProvider(engine, embedder)
    assert [step.total async for step in store.reindex()] == [1, 1]
    assert embedder.asked == ["k2: fact 2"]


async def test_a_change_of_model_replaces_vectors_and_never_compares_the_old(engine):
    old, new = SqlMemoryProvider(engine, Topics("old")), SqlMemoryProvider(engine, Topics("new"))
    await old.setup()
    await Desk(old).write("morning", "has sencha")

    [key] = await new.explain(scopes=["actor:ana"], query="beverage")
    assert key.cosine is None
    assert await found(new, "beverage") == ["morning"]
    await new._embedding._mending
    [key] = await new.explain(scopes=["actor:ana"], query="beverage")

    assert key.cosine == pytest.approx(1, abs=1e-3)
    assert [(row[1], row[2]) for row in await rows(engine, ROWS)] == [("actor:ana", "new")]


async def test_a_vector_goes_with_its_fact_whichever_way_that_goes(url):
    desk = await desk_of(url)
    engine = desk.store.engine
    records = [await desk.write(f"k{n}", f"sencha {n}") for n in range(5)]
    assert await counts(engine) == [0, 5]

    await desk.forget(records[0].id)
    await desk.store.expire(id=records[1].id, expires_at=desk.now)
    await desk.store.sweep()
    assert await counts(engine) == [0, 3]
    async with engine.begin() as conn:
        await conn.execute(text("DELETE FROM agent_memory WHERE id = :id"), {"id": records[2].id})
    assert await counts(engine) == [0, 2]
    await desk.store.erase(scope="actor:ana", elevated=True)
    assert await counts(engine) == [0, 0]
    await desk.store.aclose()


async def test_a_vacuum_leaves_no_byte_of_a_forgotten_vector(url):
    from onfile.stores.health import vacuum

    desk = await desk_of(url)
    record = await desk.write("morning", "has sencha")
    [row] = await rows(desk.store.engine, ROWS)
    halves = halfvec.from_sent(bytes(row[4])).hex()
    page = "SELECT encode(get_raw_page('agent_memory_halfvec', 0), 'hex')"
    async with desk.store.engine.begin() as conn:
        await conn.execute(text("CREATE EXTENSION IF NOT EXISTS pageinspect"))
    assert halves in (await rows(desk.store.engine, page))[0][0]

    await desk.forget(record.id)
    await vacuum(desk.store.engine)

    async with desk.store.engine.connect() as conn:
        empty = (await conn.execute(text("SELECT pg_relation_size('agent_memory_halfvec')"))).scalar_one() == 0
    assert empty or halves not in (await rows(desk.store.engine, page))[0][0]
    await desk.store.aclose()


async def test_setup_and_the_printed_statements_make_the_same_table(url, engine):
    shape = (
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, c.reloptions, co.collname"
        " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
        " LEFT JOIN pg_collation co ON co.oid = a.attcollation"
        " WHERE c.relname = 'agent_memory_halfvec' AND a.attnum > 0 ORDER BY a.attnum"
    )
    indexes = "SELECT indexdef FROM pg_indexes WHERE tablename = 'agent_memory_halfvec' ORDER BY 1"
    keys = (
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = 'agent_memory_halfvec'::regclass AND contype <> 'n' ORDER BY 1"
    )
    await SqlMemoryProvider(engine).setup()
    made = [await rows(engine, one) for one in (shape, indexes, keys)]
    assert len(made[0]) == 5

    await servers.emptied(url)
    raw = create_async_engine(servers.by_driver(url, "postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    async with raw.connect() as conn:
        await (await conn.get_raw_connection()).driver_connection.execute(as_sql("postgresql://"))
    await raw.dispose()

    assert [await rows(engine, one) for one in (shape, indexes, keys)] == made
    assert not (await state_of(engine)).pending


async def test_vectors_longer_than_pgvector_keeps_stay_bytes(url):
    wide = CallableEmbedder(lambda texts: [[1.0] * 16_001 for _ in texts], model="wide", dimensions=16_001)
    desk = await desk_of(url, wide)
    await desk.write("morning", "has sencha")

    [key] = await desk.store.explain(scopes=["actor:ana"], query="beverage")

    assert await counts(desk.store.engine) == [1, 0]
    assert key.cosine == pytest.approx(1, abs=1e-2)
    await desk.store.aclose()
