"""A host's SQLite engine is used as it is, whatever it is like, and handed back as it was."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import pytest
from sqlalchemy import event, pool, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from onfile.errors import StoreError, WriteRefused
from onfile.stores import SqlMemoryProvider, sqlite
from onfile.stores.in_one_go import go
from tests.stores.desk import Desk


def plain(url: str) -> AsyncEngine:
    return create_async_engine(url)


def autocommit(url: str) -> AsyncEngine:
    return create_async_engine(url, isolation_level="AUTOCOMMIT")


def never_rolling_back(url: str) -> AsyncEngine:
    return create_async_engine(url, isolation_level="AUTOCOMMIT", pool_reset_on_return=None)


def beginning_by_itself(url: str) -> AsyncEngine:
    """The recipe of SQLAlchemy's own documentation for SQLite."""
    engine = create_async_engine(url)

    @event.listens_for(engine.sync_engine, "connect")
    def leave_begin_to_us(connection, record):
        connection.isolation_level = None

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection):
        connection.exec_driver_sql("BEGIN")

    return engine


def without_a_pool(url: str) -> AsyncEngine:
    return create_async_engine(url, poolclass=pool.NullPool)


def one_connection(url: str) -> AsyncEngine:
    return create_async_engine(url, poolclass=pool.StaticPool)


def impatient(url: str) -> AsyncEngine:
    return create_async_engine(url, connect_args={"timeout": 0})


def always_in_a_transaction(url: str) -> AsyncEngine:
    """The transaction control of PEP 249, which Python has since 3.12."""
    return create_async_engine(url, connect_args={"autocommit": False})


ENGINES = [plain, autocommit, never_rolling_back, beginning_by_itself, without_a_pool, one_connection, impatient]
if sys.version_info >= (3, 12):
    ENGINES.append(always_in_a_transaction)


@pytest.fixture(params=ENGINES, ids=lambda build: build.__name__)
def build(request) -> Callable[[str], AsyncEngine]:
    return request.param


@pytest.fixture
async def engine(build, tmp_path):
    engine = build(f"sqlite+aiosqlite:///{tmp_path}/onfile.db")
    yield engine
    await engine.dispose()


@pytest.fixture
async def desk(engine):
    desk = Desk(SqlMemoryProvider(engine))
    await desk.store.setup()
    yield desk
    await desk.store.aclose()


async def pragmas(engine: AsyncEngine) -> list[object]:
    async with engine.connect() as conn:
        return [
            (await conn.execute(text(f"PRAGMA {name}"))).scalar()
            for name in ("foreign_keys", "secure_delete", "busy_timeout")
        ]


async def test_facts_are_kept_replaced_and_forgotten_on_any_engine(desk):
    record = await desk.write()
    await desk.write(text="miles", author="human")
    await desk.store.pin(id=record.id, pinned=True)
    assert await desk.texts() == {"units": "miles"}

    assert await desk.forget(record.id)
    assert await desk.list() == []


async def test_writers_at_once_lose_nothing_on_any_engine(desk):
    await asyncio.gather(*(desk.write(f"key {number}") for number in range(30)), *(desk.list() for _ in range(30)))

    assert len(await desk.list()) == 30


async def test_a_failed_write_leaves_no_transaction_open_on_any_engine(desk, engine):
    # a host's clock that breaks within the transaction
    broken = Desk(SqlMemoryProvider(engine, clock=lambda: 1 / 0))

    with pytest.raises(ZeroDivisionError):
        await broken.write()

    other = Desk(SqlMemoryProvider(engine))
    await other.write("colour", "red")
    assert await other.texts() == {"colour": "red"}


async def test_a_write_goes_as_well_with_a_driver_that_takes_statements_only(desk, monkeypatch):
    monkeypatch.setattr(sqlite, "can_go", lambda driver: False)

    await desk.write(idempotency_key="call-1")
    await desk.write(text="miles", author="human")
    with pytest.raises(WriteRefused):
        await desk.write(text="feet")
    assert (await desk.write(idempotency_key="call-1")).text == "miles"

    assert await desk.texts() == {"units": "miles"}


async def test_a_write_is_done_in_one_go_by_the_driver_that_onfile_installs(desk, engine, monkeypatch):
    went: list[object] = []
    monkeypatch.setattr(sqlite, "go", lambda driver, *rest, **named: went.append(driver) or go(driver, *rest, **named))

    await desk.write()
    await desk.write(text="miles")

    assert len(went) == 2


async def test_a_write_that_fails_in_the_drivers_thread_says_what_to_do_and_no_fact(tmp_path):
    desk = Desk(SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db"))

    with pytest.raises(StoreError, match=r"call `await provider.setup\(\)`") as raised:
        await desk.write(text="planted-secret")

    chain = [raised.value, raised.value.__cause__, raised.value.__context__]
    assert not any("planted-secret" in repr(error) for error in chain)
    await desk.store.aclose()


@pytest.mark.parametrize("secure_delete", ["OFF", "ON", "FAST"])
async def test_a_connection_goes_back_with_the_pragmas_of_its_owner(tmp_path, secure_delete):
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/onfile.db", connect_args={"timeout": 1.234})

    @event.listens_for(engine.sync_engine, "connect")
    def set_pragmas(connection, record):
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA secure_delete={secure_delete}")
        cursor.close()

    before = await pragmas(engine)
    desk = Desk(SqlMemoryProvider(engine))
    await desk.store.setup()
    record = await desk.write()
    await desk.forget(record.id)

    assert await pragmas(engine) == before == [0, ["OFF", "ON", "FAST"].index(secure_delete), 1234]
    await desk.store.aclose()
    await engine.dispose()


async def test_no_listener_is_put_on_a_hosts_engine(engine, desk):
    listened = [name for name in ("connect", "checkout", "checkin") if getattr(engine.sync_engine.pool.dispatch, name)]
    fresh = create_async_engine(engine.url)

    assert "checkout" not in listened
    assert (
        listened
        == [name for name in ("connect", "checkout", "checkin") if getattr(fresh.sync_engine.pool.dispatch, name)]
        or engine.sync_engine.dispatch.begin
    )
    await fresh.dispose()


async def test_the_callers_own_uncommitted_work_is_not_touched(tmp_path):
    engine = plain(f"sqlite+aiosqlite:///{tmp_path}/onfile.db")
    desk = Desk(SqlMemoryProvider(engine))
    await desk.store.setup()
    async with engine.begin() as conn:
        await conn.execute(text("CREATE TABLE mine (x)"))

    async with engine.connect() as conn:
        await conn.execute(text("SELECT count(*) FROM mine"))
        await desk.write()
        await conn.execute(text("INSERT INTO mine VALUES (1)"))
        await conn.rollback()
        assert (await conn.execute(text("SELECT count(*) FROM mine"))).scalar() == 0

    await engine.dispose()


async def test_closing_a_store_leaves_a_callers_engine_open(engine, desk):
    await desk.write()

    await desk.store.aclose()

    assert len(await desk.list()) == 1


async def test_a_store_from_a_url_disposes_its_engine(tmp_path):
    store = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db")
    await store.setup()
    await Desk(store).write()
    assert store.engine.sync_engine.pool.checkedin() > 0

    await store.aclose()

    assert store.engine.sync_engine.pool.checkedin() == 0


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "sqlite+aiosqlite:///file:x?mode=memory&cache=shared&uri=true"]
)
@pytest.mark.filterwarnings("ignore:Selection of the StaticPool:DeprecationWarning")
async def test_a_database_in_memory_works_with_many_at_once(url):
    store = SqlMemoryProvider.from_url(url)
    await store.setup()
    desk = Desk(store)

    await asyncio.gather(*(desk.write(f"key {number}") for number in range(50)), *(desk.list() for _ in range(50)))

    assert len(await desk.list()) == 50
    await store.aclose()


async def test_a_cancelled_call_does_not_cost_a_database_in_memory():
    store = SqlMemoryProvider.from_url("sqlite://")
    await store.setup()
    desk = Desk(store)
    await desk.write()

    for delay in (0, 0.0003, 0.0006, 0.001, 0.0015, 0.002):
        for call in (desk.list(), desk.write(f"key {delay}")):
            task = asyncio.create_task(call)
            await asyncio.sleep(delay)
            task.cancel()
            await asyncio.wait([task])

    assert "units" in await desk.texts()
    await store.aclose()


async def test_a_database_that_stays_locked_is_one_sentence(tmp_path, monkeypatch):
    from onfile.stores import sqlite

    monkeypatch.setattr(sqlite, "BUSY_MS", 100)
    engine = plain(f"sqlite+aiosqlite:///{tmp_path}/onfile.db")
    desk = Desk(SqlMemoryProvider(engine))
    await desk.store.setup()
    async with engine.connect() as conn:
        await conn.exec_driver_sql("BEGIN IMMEDIATE")

        with pytest.raises(StoreError, match="locked"):
            await desk.write()

        await conn.rollback()
    await desk.write()
    assert await desk.texts() == {"units": "kilometres"}
    await engine.dispose()


async def test_setting_up_switches_to_a_write_ahead_log(tmp_path):
    engine = plain(f"sqlite+aiosqlite:///{tmp_path}/onfile.db")

    await SqlMemoryProvider(engine).setup()

    async with engine.connect() as conn:
        assert (await conn.execute(text("PRAGMA journal_mode"))).scalar() == "wal"
    await engine.dispose()
