"""Deleted text leaves every byte of every file of a SQLite database, while the store stays open."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import aiosqlite
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.records import Actor, MemoryOrigin
from onfile.stores import EditMemory, SqlMemoryProvider, StoredMemory
from tests.facts import fact
from tests.stores.desk import Desk

SCRIPT = Path(__file__).parent / "erasure_run.py"
# A build whose secure_delete is off by default. It takes the standard library's place before anything
# imports that: two copies of SQLite in one process break each other's locks.
SWAPPED = (
    "import runpy, sys, pysqlite3, pysqlite3.dbapi2\n"
    "sys.modules['sqlite3'], sys.modules['sqlite3.dbapi2'] = pysqlite3, pysqlite3.dbapi2\n"
    "sys.argv = sys.argv[1:]\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
SECRET = "planted-7c41e0"


def holds(folder: Path, secret: str) -> bool:
    return any(secret.encode() in path.read_bytes() for path in folder.iterdir())


async def gone_within(folder: Path, secret: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while holds(folder, secret):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.05)
    return True


@pytest.fixture
async def store(tmp_path):
    store = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db")
    await store.setup()
    yield store
    await store.aclose()


@pytest.mark.parametrize("build", ["built-in", "pysqlite3"])
@pytest.mark.parametrize("kind", ["engine", "from_url"])
def test_of_hundreds_of_facts_every_deleted_and_every_replaced_one_is_gone(tmp_path, kind, build):
    if build == "pysqlite3" and importlib.util.find_spec("pysqlite3") is None:
        pytest.skip("pysqlite3-binary, whose secure_delete is off by default, is not installed here")
    python = [sys.executable, *(["-c", SWAPPED] if build == "pysqlite3" else []), SCRIPT]

    done = subprocess.run([*python, tmp_path, "7", kind], capture_output=True, text=True, check=False, timeout=120)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["left"], found["left_of_all"]) == (0, 0)
    # and the test can see what it looks for
    assert found["gone"] > 200
    assert found["seen"] == found["standing"] > 0
    if build == "pysqlite3":
        assert found["secure_delete"] == 0


async def test_a_forgotten_fact_is_gone_as_soon_as_forget_returns(store, tmp_path):
    desk = Desk(store)
    record = await desk.write(text=SECRET)
    assert holds(tmp_path, SECRET)

    await desk.forget(record.id)

    assert not holds(tmp_path, SECRET)


async def test_a_replaced_text_is_gone_too(store, tmp_path):
    desk = Desk(store)
    await desk.write(text=SECRET)

    await desk.write(text="something else")

    assert not holds(tmp_path, SECRET)


async def test_bytes_that_a_foreign_reader_holds_go_once_it_is_done(store, tmp_path):
    desk = Desk(store)
    record = await desk.write(text=SECRET)
    async with aiosqlite.connect(tmp_path / "onfile.db") as reader:
        await reader.execute("BEGIN")
        await reader.execute_fetchall("SELECT * FROM agent_memory")

        assert await desk.forget(record.id)

        assert holds(tmp_path, SECRET)
        # nobody waits for the reader: others still write
        await desk.write("colour", "red")
        await reader.rollback()
        assert await gone_within(tmp_path, SECRET, 2)


async def test_closing_the_store_finishes_what_is_left(tmp_path):
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/onfile.db")
    store = SqlMemoryProvider(engine)
    await store.setup()
    desk = Desk(store)
    record = await desk.write(text=SECRET)
    async with aiosqlite.connect(tmp_path / "onfile.db") as reader:
        await reader.execute("BEGIN")
        await reader.execute_fetchall("SELECT * FROM agent_memory")
        await desk.forget(record.id)
        await reader.rollback()

        await store.aclose()

        assert not holds(tmp_path, SECRET)
    await engine.dispose()


async def test_a_cancelled_forget_still_leaves_no_bytes(store, tmp_path):
    desk = Desk(store)
    for delay in (0, 0.0005, 0.001, 0.002, 0.003, 0.004, 0.006, 0.01):
        record = await desk.write(text=SECRET)
        task = asyncio.create_task(desk.forget(record.id))
        await asyncio.sleep(delay)
        task.cancel()
        await asyncio.wait([task])

        if await store.get(record.id) is None:
            assert await gone_within(tmp_path, SECRET, 2)


async def test_a_restore_that_replaces_leaves_no_bytes_of_the_old_text(store, tmp_path):
    desk = Desk(store)
    kept = await store.get((await desk.write(text="first")).id)
    await desk.write(text=SECRET)

    await store.restore([kept], on_conflict="replace")

    assert not holds(tmp_path, SECRET)
    assert await desk.texts() == {"units": "first"}


@pytest.mark.parametrize("act", ["forget_all", "erase", "remove", "sweep", "edit"])
async def test_every_other_way_to_delete_reaches_the_bytes_too(tmp_path, act):
    desk = Desk(store=None)
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/onfile.db")
    desk.store = SqlMemoryProvider(engine, clock=desk.clock)
    await desk.store.setup()
    record = await desk.write(text=SECRET)
    for number in range(200):
        await desk.write(f"key {number}", f"{SECRET} {number}" if act in ("forget_all", "erase") else "and so on")
    await desk.store.expire(id=record.id, expires_at=desk.now)

    acts = {
        "forget_all": lambda: desk.store.forget_all(actor=Actor(id="ana")),
        "erase": lambda: desk.store.erase(scope="actor:ana", elevated=True),
        "remove": lambda: desk.store.remove(id=record.id),
        "sweep": desk.store.sweep,
        "edit": lambda: desk.store.edit(
            EditMemory(id=record.id, text="other", origin=MemoryOrigin(author="human"), seen_at=record.updated_at)
        ),
    }
    assert await acts[act]()

    assert not holds(tmp_path, SECRET)
    await engine.dispose()


async def test_a_history_keeps_what_was_replaced_and_goes_with_its_fact(tmp_path):
    store = SqlMemoryProvider.from_url(f"sqlite:///{tmp_path}/onfile.db", history=True, audit=True)
    await store.setup()
    desk = Desk(store)
    record = await desk.write("units-5d1f", SECRET)
    await desk.write("units-5d1f", "something else")
    assert holds(tmp_path, SECRET)

    await desk.forget(record.id)

    assert not holds(tmp_path, SECRET)
    assert not holds(tmp_path, "units-5d1f")
    assert [one.memory_id for one in await store.deletions()] == [record.id]
    await store.aclose()


async def test_a_receipt_tells_nothing_of_what_was_forgotten(store, tmp_path):
    desk = Desk(store)
    record = await desk.write("units-5d1f", SECRET, idempotency_key="run-77aa call-1")

    await desk.forget(record.id)

    assert not holds(tmp_path, "units-5d1f")
    assert not holds(tmp_path, "run-77aa")


@pytest.mark.parametrize("seed", [1, 2, 4])
async def test_no_copy_that_sqlite_left_while_the_fact_still_stood_outlives_it(store, tmp_path, seed):
    # With these texts SQLite leaves a part of one in the unused middle of a page whose rows it spread anew.
    chance = random.Random(seed)
    texts: dict[str, list[str]] = {}
    kept: list[StoredMemory] = []
    for number in range(2_000):
        text = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(20, 400)))
        one = fact(f"key {number}", text, scope=f"tenant:{chance.randrange(40)}", id=f"mem_{number}")
        texts.setdefault(one.scope, []).append(text)
        kept.append(StoredMemory(record=one, created_at=one.updated_at))
    await store.restore(kept)
    scopes = list(texts)
    chance.shuffle(scopes)

    for scope in scopes[:30]:
        await store.erase(scope=scope, elevated=True)

        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        pieces = (text[start : start + 16] for text in texts[scope] for start in range(0, len(text) - 15, 8))
        assert not any(piece.encode() in files for piece in pieces)


async def test_a_file_with_tables_of_the_hosts_own_keeps_their_row_numbers(store):
    async with store.engine.begin() as conn:
        await conn.exec_driver_sql("CREATE TABLE theirs (word TEXT)")
        await conn.exec_driver_sql("INSERT INTO theirs VALUES ('a'), ('b'), ('c')")
        await conn.exec_driver_sql("DELETE FROM theirs WHERE word = 'a'")
    desk = Desk(store)
    record = await desk.write("key", SECRET)

    assert await desk.forget(record.id)

    async with store.engine.connect() as conn:
        rows = (await conn.exec_driver_sql("SELECT rowid, word FROM theirs ORDER BY rowid")).all()
    assert [tuple(row) for row in rows] == [(2, "b"), (3, "c")]
