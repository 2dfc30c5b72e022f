"""PostgreSQL itself refuses what is outside a transaction's scopes, whatever a statement forgets to ask."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.errors import StoreError
from onfile.memory import Memory
from onfile.provider import SearchMemories
from onfile.records import Actor
from onfile.runs.assistant import Assistant
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.stores import BrowseMemories, SqlMemoryProvider, StoredMemory, halfvec, hnsw
from onfile.stores.dialects import database_of
from onfile.stores.row_security import GUARDED, change, removing, row_security_of
from onfile.testing import conform
from tests.facts import fact
from tests.runs.script import CTX, Script, remember
from tests.stores import servers
from tests.stores.desk import Desk, context
from tests.stores.guarded import APP, DESK, OWNER, Guarded, guarded, held_to
from tests.stores.test_search import Topics

ANA, BOB = "actor:ana", "actor:bob"


@pytest.fixture(params=["asyncpg", "psycopg"])
async def place(request, postgres_url):
    """A database of each driver whose rows are held to scopes."""
    url = await servers.emptied(servers.by_driver(postgres_url, f"postgresql+{request.param}"))
    async with guarded(url) as place:
        yield place


@pytest.fixture
async def app(place: Guarded):
    """The application's store, which keeps all that a store can keep."""
    store = place.store(APP, Topics(), options={"pool_size": 2, "max_overflow": 0}, history=True, audit=True)
    await store.setup()
    yield Desk(store)
    await store.aclose()


async def put_everywhere(app: Desk) -> None:
    """Rows in every table, of ana, and of bob, who has forgotten one."""
    for actor in ("ana", "bob"):
        for said in ("tea", "sencha"):
            await app.write("drink", f"{said} of {actor}", actor=actor, idempotency_key=f"{said} {actor}")
    await app.forget((await app.write("van", "a lorry", actor="bob")).id, actor="bob")


def without_where(table: str) -> str:
    return f"SELECT * FROM {table}"


async def test_statements_without_their_where_see_nothing_foreign_in_any_table(place, app):
    await put_everywhere(app)
    [[bobs]] = await place.all_of(f"SELECT id FROM agent_memory WHERE scope = '{BOB}'")
    engine = place.engine(APP)

    async with held_to(engine, ANA) as conn:
        seen = {}
        for table in ("agent_memory", "agent_memory_revision", "agent_memory_change", "agent_memory_history"):
            seen[table] = [dict(row._mapping) for row in await conn.execute(text(without_where(table)))]
        vectors = [
            row.memory_id
            for table in await place.tables()
            if table.endswith(("vec", "vector"))
            for row in await conn.execute(text(without_where(table)))
        ]

    assert all(seen.values())
    assert vectors == [seen["agent_memory"][0]["id"]]
    assert BOB not in str(seen)
    assert bobs not in str(seen)
    assert "bob" not in str(seen)


async def test_without_scopes_every_table_is_empty_also_where_a_transaction_before_had_some(place, app):
    await put_everywhere(app)
    engine = place.engine(APP, pool_size=1, max_overflow=0)
    tables = [name for name in await place.tables() if name != "agent_memory_deletion"]

    for scopes in ((), (ANA,), ()):
        async with held_to(engine, *scopes) as conn:
            counts = {name: (await conn.execute(text(f"SELECT count(*) FROM {name}"))).scalar_one() for name in tables}
            assert any(counts.values()) == bool(scopes), counts


async def test_a_transaction_cannot_put_a_row_into_a_foreign_scope_or_reach_one_there(place, app):
    await put_everywhere(app)
    before = await place.all_of("SELECT * FROM agent_memory ORDER BY id")
    engine = place.engine(APP)
    columns = "key, key_identity, text, origin_author, pinned, created_at, updated_at"
    moved = f"INSERT INTO agent_memory (id, scope, {columns}) SELECT 'mem_x', '{BOB}', 'x', 'x', {columns[19:]}"

    for statement in (
        f"{moved} FROM agent_memory LIMIT 1",
        f"UPDATE agent_memory SET scope = '{BOB}'",
        f"INSERT INTO agent_memory_revision VALUES ('{BOB} too', 1)",
        f"INSERT INTO agent_memory_change VALUES ('{BOB}', 99, 'mem_x')",
    ):
        async with held_to(engine, ANA) as conn:
            with pytest.raises(DBAPIError, match="row-level security"):
                await conn.execute(text(statement))
    async with held_to(engine, ANA) as conn:
        for statement in ("UPDATE agent_memory SET text = 'mine'", "DELETE FROM agent_memory_history"):
            await conn.execute(text(f"{statement} WHERE true"))
        deleted = await conn.execute(text(f"DELETE FROM agent_memory WHERE scope = '{BOB}'"))
        assert deleted.rowcount == 0
        # and then nothing of it is kept

    assert await place.all_of("SELECT * FROM agent_memory ORDER BY id") == before


async def test_the_setting_of_an_operator_shows_the_application_nothing(place, app):
    await put_everywhere(app)
    engine, desk = place.engine(APP), place.engine(DESK)
    counted = text("SELECT count(*) FROM agent_memory")

    async with engine.connect() as conn:
        await conn.exec_driver_sql("SELECT set_config('onfile.scopes', '*', true)")
        assert (await conn.execute(counted)).scalar_one() == 0
    async with held_to(desk) as conn:
        assert (await conn.execute(counted)).scalar_one() == 0
    async with held_to(desk, ANA) as conn:
        assert (await conn.execute(counted)).scalar_one() == 1


@pytest.mark.parametrize(
    "scope",
    [
        'actor:a,b"c\\d',
        "actor:{x,'y'}",
        "actor:дмитрий 😀 é",
        "*",
        "[]",
        "",
        "null",
        "actor:%_\t\n\x01\u2028",
        "a" * 255,
    ],
)
async def test_a_scope_of_any_text_is_that_scope_and_no_other(place, scope):
    store = place.store(APP)
    desk = Desk(store)
    for other in ("actor:a", "actor:ana", "x"):
        await desk.write(scope=other, author="human")

    if scope:
        record = await desk.write(scope=scope, author="human")
        assert [one.id for one in await desk.list(scope)] == [record.id]
    async with held_to(store.engine, scope) as conn:
        seen = [row.scope for row in await conn.execute(text("SELECT scope FROM agent_memory"))]
    assert seen == [scope] * bool(scope)


class Agents:
    """Only what an agent is given: to list, to search, to write and to forget."""

    guards_writes = True

    def __init__(self, store: SqlMemoryProvider) -> None:
        self.list, self.search, self.write, self.forget = store.list, store.search, store.write, store.forget


@pytest.mark.parametrize("whose", ["the application's", "one that may see all"])
async def test_the_whole_contract_is_kept_under_row_level_security(place, whose):
    if whose == "one that may see all":
        await place.run(f"GRANT {DESK} TO {APP}")
    engine = place.engine(APP)

    @asynccontextmanager
    async def opened():
        await place.empty()
        store = SqlMemoryProvider(engine, row_level_security=True)
        yield store if whose == "one that may see all" else Agents(store)

    report = await conform(opened)

    assert [result for result in report.results if result.status == "failed"] == []
    assert report.passed > 60
    skipped = [result for result in report.results if result.status == "skipped"]
    assert all("pin" in result.reason for result in skipped)
    assert bool(skipped) == (whose == "the application's")


async def test_two_tenants_on_two_connections_never_see_each_others(app):
    async def one_turn(actor: str, number: int) -> None:
        own = f"actor:{actor}"
        await app.write(f"key {number}", f"of {actor}", actor=actor)
        listed = await app.list(own)
        found = await app.store.search(
            SearchMemories(scopes=(own,), query=f"key {number}", limit=50, ctx=context(actor))
        )
        for records in (listed, found):
            assert f"key {number}" in {record.key for record in records}
            assert {(record.scope, record.text) for record in records} == {(own, f"of {actor}")}

    await asyncio.gather(*(one_turn(actor, number) for number in range(12) for actor in ("ana", "bob")))

    assert len(await app.list(ANA)) == len(await app.list(BOB)) == 12


async def test_what_is_replaced_expired_forgotten_and_erased_goes_with_all_that_was_made_of_it(place, app):
    desk = place.store(DESK, history=True, audit=True)
    first = await app.write("drink", "tea")
    await app.write("drink", "sencha")
    expiring = await app.write("sea", "a beach")
    await desk.expire(id=expiring.id, expires_at=expiring.updated_at)
    fresh = await app.write("sea", "water")

    assert [change.text for change in await desk.history(first.id)] == ["tea", "sencha"]
    assert [change.text for change in await desk.history(fresh.id)] == ["water"]
    assert await app.forget(first.id)
    assert not await app.forget(first.id)
    assert await app.store.forget_all(actor=Actor(id="ana")) == 1
    await app.write("van", "lorry", actor="bob")
    assert await app.store.erase(scope=BOB, elevated=True) == 1

    assert [one.deletion for one in await desk.deletions()] == ["expired", "forgotten", "forgotten", "erased"]
    for table in await place.tables():
        if table.endswith(("_receipt", "_revision", "_change", "_deletion")):
            continue  # digests, numbers, and ids
        assert await place.all_of(f"SELECT * FROM {table}") == []


async def test_a_vector_is_kept_and_mended_by_the_application_and_all_are_by_an_operator(place, app):
    embedder = Topics()
    store = place.store(APP, embedder)
    embedder.down = True
    await Desk(store).write("drink", "tea")
    embedder.down = False
    desk = place.store(DESK, Topics())
    counted = [one async for one in desk.reindex()]

    assert (counted[-1].done, counted[-1].total) == (1, 1)
    assert [one async for one in desk.reindex()][-1].total == 0
    found = await app.store.search(SearchMemories(scopes=(ANA,), query="beverage", limit=1, ctx=context("ana")))
    assert [record.text for record in found] == ["tea"]


async def test_an_operators_act_by_the_application_is_refused_in_words_and_not_answered_from_nothing(app):
    record = await app.write()

    for act in (
        app.store.count,
        lambda: app.store.get(record.id),
        lambda: app.store.pin(id=record.id, pinned=True),
        lambda: app.store.browse(BrowseMemories()),
        app.store.sweep,
        lambda: app.store.restore([StoredMemory(record=fact(), created_at=record.updated_at)]),
    ):
        with pytest.raises(StoreError, match="onfile db rls --operator"):
            await act()
    exported = [memory.record async for memory in app.store.export(scopes=[ANA])]
    page = await app.store.browse(BrowseMemories(scopes=[ANA]))
    assert exported == [memory.record for memory in page.memories] == [record]


@pytest.mark.parametrize("role", [OWNER, DESK])
async def test_the_owner_and_an_operator_do_what_operators_do(place, app, role):
    record = await app.write()
    store = place.store(role)

    assert await store.pin(id=record.id, pinned=True)
    assert [memory.record.pinned async for memory in store.export()] == [True]
    assert (await store.restore([StoredMemory(record=fact(scope=BOB), created_at=record.updated_at)])).inserted == 1
    assert await store.count() == 2
    assert await store.remove(id=record.id)


async def test_a_run_and_its_fact_are_one_transaction_also_here(place, app):
    journal = SqlJournal(app.store.engine)
    await journal.setup()
    await app.write(actor="bob")
    script = Script([[remember(key="drink", fact="tea")], "Noted."])
    turns = TurnRunner(Assistant(model=script.model(), base_prompt="BASE", memory=Memory(app.store)), journal)

    result = await turns.start("hello", ctx=CTX, run_id="r1")

    assert result.text == "Noted."
    assert await app.texts(f"actor:{CTX.actor.id}") == {"drink": "tea"}
    # forgetting reaches into the journal as well
    [record] = await app.list(f"actor:{CTX.actor.id}")
    assert await app.forget(record.id, actor=CTX.actor.id)
    assert "tea" not in json.dumps([one.value for one in await journal.checkpoints("r1")])


async def test_within_anothers_transaction_each_act_sees_its_own_scopes(app):
    await app.write(actor="bob")

    async with app.store.engine.begin() as conn:
        from onfile.stores.transactions import Transaction

        joined = Desk(app.store.within(Transaction(conn=conn)))
        record = await joined.write("drink", "tea")
        assert await joined.texts(ANA) == {"drink": "tea"}
        assert set(await joined.texts(BOB)) == {"units"}
        assert not await joined.forget(record.id, actor="bob")

    assert await app.texts(ANA) == {"drink": "tea"}


async def test_an_engine_in_autocommit_is_held_as_well(place):
    store = place.store(APP, options={"isolation_level": "AUTOCOMMIT"})
    desk = Desk(store)
    record = await desk.write()

    assert await desk.list(ANA) == [record]
    assert await store.search(SearchMemories(scopes=(ANA,), query="units", limit=1, ctx=context("ana"))) == [record]
    assert await desk.forget(record.id)


async def test_a_store_that_would_see_nothing_says_so_when_it_is_set_up(place):
    with pytest.raises(StoreError, match="row_level_security=True"):
        await SqlMemoryProvider(place.engine(APP)).setup()


async def test_a_store_whose_role_nothing_holds_says_so_when_it_is_set_up(place, caplog):
    await SqlMemoryProvider(place.engine(), row_level_security=True).setup()

    assert "onfile db rls" in caplog.text


async def test_a_table_that_comes_later_is_guarded_and_granted_as_the_others_are(place, app):
    record = await app.write()
    await place.run("DROP TABLE agent_memory_history, agent_memory_vector")

    await SqlMemoryProvider(place.engine(OWNER), row_level_security=True).setup()

    async with place.engine(OWNER).connect() as conn:
        state = await row_security_of(conn)
    assert (state.unguarded, set(state.operators), state.held) == ((), {DESK}, True)
    assert {"agent_memory_history", "agent_memory_vector"} < set(state.guarded) <= set(GUARDED)
    await app.write(text="miles")
    assert await app.forget(record.id)


async def test_an_index_of_all_vectors_is_made_also_by_an_owner_whom_it_holds(place, app):
    await app.write("drink", "tea")
    owner = place.engine(OWNER)
    async with owner.connect() as conn:
        if not await halfvec.stands(conn):
            pytest.skip("this server has no pgvector")

    [indexed] = await hnsw.build(owner, tell=lambda *_: None)

    assert (indexed.model, indexed.vectors, indexed.refused) == ("topics", 1, None)
    assert await hnsw.drop(owner) == 1


async def test_a_role_that_lacks_a_right_is_told_so_and_not_that_the_tables_are_wrong(place):
    await place.run(f"REVOKE ALL ON agent_memory FROM {APP}")

    with pytest.raises(StoreError, match="the database role may not do this"):
        await Desk(place.store(APP)).list(ANA)


async def test_an_older_schema_is_the_owners_to_bring_up_to_date(place):
    await place.run("ALTER TABLE agent_memory DROP COLUMN expires_at")

    with pytest.raises(StoreError, match="onfile db upgrade"):
        await place.store(APP).setup()


async def test_it_is_installed_twice_and_removed_twice(place, app):
    await app.write(actor="bob")
    owner = database_of(place.engine(OWNER))

    for _ in range(2):
        await change(owner, removing)

    async with held_to(place.engine(APP)) as conn:
        assert (await conn.execute(text("SELECT count(*) FROM agent_memory"))).scalar_one() == 1
        state = await row_security_of(conn)
    assert (state.guarded, state.held) == ((), False)
    # and a store that still sets scopes goes on
    assert await app.texts(BOB) == {"units": "kilometres"}


async def test_another_database_has_no_such_thing_and_says_so(tmp_path):
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/a.db")

    with pytest.raises(ValueError, match="PostgreSQL"):
        SqlMemoryProvider(engine, row_level_security=True)
    await engine.dispose()
