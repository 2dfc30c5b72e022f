"""A database comes to the same tables by revisions as by `setup()`, from wherever it stands."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, inspect, text
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.errors import StoreError
from onfile.runs import SqlJournal
from onfile.stores import SqlMemoryProvider, StoredMemory, managed_tables, metadata
from onfile.stores.migrate import VERSION_TABLE, as_sql, include_object, state_of, upgrade
from tests.facts import fact

pytest.importorskip("alembic")


async def tables(engine) -> set[str]:
    async with engine.connect() as conn:
        return set(await conn.run_sync(lambda sync: inspect(sync).get_table_names()))


async def test_revisions_make_exactly_the_tables_that_are_defined(engine):
    await upgrade(engine)

    state = await state_of(engine)

    elsewhere = set() if engine.dialect.name == "postgresql" else {"agent_memory_halfvec"}
    assert await tables(engine) == {*managed_tables()} - elsewhere
    assert (state.differences, state.pending) == ((), False)


async def test_setup_makes_exactly_the_tables_that_are_defined(engine):
    await SqlMemoryProvider(engine).setup()

    state = await state_of(engine)

    assert (state.current, state.differences, state.pending) == (None, (), True)


async def test_an_upgrade_takes_over_what_setup_made_with_every_fact_in_it(engine):
    store = SqlMemoryProvider(engine)
    await store.setup()
    kept = fact()
    await store.restore([StoredMemory(record=kept, created_at=kept.updated_at)])

    await upgrade(engine)
    await upgrade(engine)

    assert not (await state_of(engine)).pending
    assert [memory.record async for memory in store.export()] == [kept]
    await store.aclose()


@pytest.mark.parametrize("released", ["0001", "0002"])
async def test_setup_brings_every_released_schema_up_to_date_with_every_fact_in_it(engine, released):
    await upgrade(engine, revision=released)
    store = SqlMemoryProvider(engine)
    kept = fact()
    await store.restore([StoredMemory(record=kept, created_at=kept.updated_at)])

    for _ in range(2):
        await store.setup()
        await SqlJournal(engine).setup()

    assert (await state_of(engine)).differences == ()
    assert [memory.record async for memory in store.export()] == [kept]
    await upgrade(engine)
    assert not (await state_of(engine)).pending
    await store.aclose()


async def test_four_processes_set_up_an_older_schema_at_once_and_none_fails(shared_url):
    engine = create_async_engine(shared_url)
    await upgrade(engine, revision="0001")
    async with engine.begin() as conn:
        on = " ON agent_memory" if engine.dialect.name in {"mysql", "mariadb"} else ""
        await conn.execute(text(f"DROP INDEX ix_agent_memory_expires_at{on}"))
        await conn.execute(text("ALTER TABLE agent_memory DROP COLUMN expires_at"))
    program = (
        "import asyncio, sys\n"
        "from sqlalchemy.ext.asyncio import create_async_engine\n"
        "from onfile.runs import SqlJournal\n"
        "from onfile.stores import SqlMemoryProvider\n"
        "async def run():\n"
        "    engine = create_async_engine(sys.argv[1])\n"
        "    await SqlMemoryProvider(engine).setup()\n"
        "    await SqlJournal(engine).setup()\n"
        "    await engine.dispose()\n"
        "asyncio.run(run())\n"
    )

    running = [subprocess.Popen([sys.executable, "-c", program, shared_url]) for _ in range(4)]
    codes = await asyncio.gather(*(asyncio.to_thread(one.wait, 60) for one in running))

    assert codes == [0, 0, 0, 0]
    assert (await state_of(engine)).differences == ()
    await engine.dispose()


async def test_setup_adds_the_column_and_the_index_that_older_tables_lack(tmp_path: Path):
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/old.db")
    await SqlJournal(engine).setup()
    async with engine.begin() as conn:
        await conn.execute(text("DROP INDEX ix_agent_run_thread_id"))
        await conn.execute(text("ALTER TABLE agent_run DROP COLUMN seen_at"))

    await SqlJournal(engine).setup()
    await SqlMemoryProvider(engine).setup()

    assert (await state_of(engine)).differences == ()
    await engine.dispose()


async def test_setup_changes_nothing_where_a_column_is_missing_that_no_row_can_do_without(tmp_path: Path):
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/old.db")
    async with engine.begin() as conn:
        await conn.execute(text("CREATE TABLE agent_memory (id TEXT PRIMARY KEY, scope TEXT NOT NULL)"))

    with pytest.raises(StoreError, match=r"lacks the column .*onfile db upgrade"):
        await SqlMemoryProvider(engine).setup()

    assert await tables(engine) == {"agent_memory"}
    await engine.dispose()


async def test_a_database_of_a_newer_version_is_left_alone(engine):
    await upgrade(engine)
    async with engine.begin() as conn:
        await conn.execute(text("UPDATE onfile_version SET version_num = '9999'"))

    with pytest.raises(StoreError, match="newer version of onfile"):
        await upgrade(engine)


async def test_a_missing_column_is_told_as_a_difference_and_not_taken_over(tmp_path: Path):
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/old.db")
    await SqlMemoryProvider(engine).setup()
    async with engine.begin() as conn:
        await conn.execute(text("DROP INDEX ix_agent_memory_expires_at"))
        await conn.execute(text("ALTER TABLE agent_memory DROP COLUMN expires_at"))

    assert any("expires_at" in difference for difference in (await state_of(engine)).differences)
    with pytest.raises(StoreError, match="lacks columns"):
        await upgrade(engine)
    assert VERSION_TABLE not in await tables(engine)
    await engine.dispose()


async def test_four_processes_upgrade_at_once_and_none_fails(shared_url):
    program = (
        "import asyncio, sys\n"
        "from sqlalchemy.ext.asyncio import create_async_engine\n"
        "from onfile.stores.migrate import upgrade\n"
        "async def run():\n"
        "    engine = create_async_engine(sys.argv[1])\n"
        "    await upgrade(engine)\n"
        "    await engine.dispose()\n"
        "asyncio.run(run())\n"
    )

    running = [subprocess.Popen([sys.executable, "-c", program, shared_url]) for _ in range(4)]
    codes = await asyncio.gather(*(asyncio.to_thread(one.wait, 60) for one in running))

    assert codes == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mysql"])
def test_the_statements_can_be_written_out_without_a_database(kind):
    written = as_sql(f"{kind}://")

    elsewhere = set() if kind == "postgresql" else {"agent_memory_halfvec"}
    for name in {*managed_tables()} - elsewhere:
        assert f"CREATE TABLE {name}" in written


def test_a_hosts_differ_skips_our_tables_and_sees_its_own():
    theirs = Table("invoice", MetaData(), Column("id", Integer, primary_key=True))

    assert not any(
        include_object(None, name, "table", True, None) for name in (*metadata.tables, "agent_run", VERSION_TABLE)
    )
    assert include_object(theirs, "invoice", "table", False, None)
