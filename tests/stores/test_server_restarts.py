"""A database server that is started anew: whoever was connected to it goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from bench.databases import Databases, installed
from onfile.memory import Memory
from onfile.runs.assistant import Assistant
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.stores import SqlMemoryProvider
from tests.conftest import missing
from tests.runs.script import CTX, Script, remember
from tests.stores.desk import Desk


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    with Databases() as databases:
        yield databases


@pytest.fixture(params=["postgresql", "psycopg", "mariadb"])
def name(request: pytest.FixtureRequest) -> str:
    if not list(installed([request.param])):
        missing(f"a {request.param} server that can be stopped")
    return request.param


@pytest.fixture
async def desk(databases: Databases, name: str) -> AsyncIterator[Desk]:
    store = SqlMemoryProvider.from_url(databases.fresh(name))
    await store.setup()
    yield Desk(store)
    await store.aclose()


async def restart(databases: Databases, name: str) -> None:
    for step in (databases.server(name).kill, databases.server(name).start):
        await asyncio.to_thread(step)


async def test_after_a_restart_a_store_reads_and_writes_as_before_on_every_connection_of_its_pool(
    desk, databases, name
):
    await asyncio.gather(*(desk.write(f"key {number}") for number in range(5)))

    async def restarted() -> None:
        await asyncio.gather(*(desk.list() for _ in range(20)))
        assert desk.store.engine.pool.checkedin() > 1
        await restart(databases, name)

    await restarted()
    assert [len(found) for found in await asyncio.gather(*(desk.list() for _ in range(5)))] == [5] * 5
    await restarted()
    await asyncio.gather(*(desk.write(f"key {number}", text="miles") for number in range(5)))

    assert {record.text for record in await desk.list()} == {"miles"}


async def test_after_a_restart_a_turn_runs_as_before(desk, databases, name):
    journal = SqlJournal(desk.store.engine)
    await journal.setup()

    async def turn(run_id: str, fact: str) -> str | None:
        script = Script([[remember(key="drink", fact=fact)], "Noted."])
        assistant = Assistant(model=script.model(), base_prompt="BASE", memory=Memory(desk.store))
        return (await TurnRunner(assistant, journal).start("hello", ctx=CTX, run_id=run_id)).text

    assert await turn("r1", "tea") == "Noted."
    await restart(databases, name)
    assert await turn("r2", "sencha") == "Noted."

    assert await desk.texts(f"actor:{CTX.actor.id}") == {"drink": "sencha"}
