"""A fact that is forgotten while a run is just recording what it resolved leaves that run like any other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import select

from onfile.memory import Memory
from onfile.provider import ForgetMemory
from onfile.runs.assistant import Assistant
from onfile.runs.inline import InlineJournal
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.stores import SqlMemoryProvider, StoredMemory
from onfile.stores.dialects import database_of
from onfile.stores.journals import agent_run, pending_erasures
from onfile.stores.transactions import Transaction
from onfile.testing import InMemoryMemoryProvider
from onfile.wire.redaction import erasure_of
from tests.facts import fact
from tests.runs.conftest import Place, sql_place, sql_url
from tests.runs.script import CTX, Script, remember, value
from tests.stores.guarded import APP, DESK, guarded

SECRET = "the quiet carriage"
SEAT, UNITS = fact("seat", f"in {SECRET}"), fact("units", f"miles in {SECRET}")
"""One that is shown, and one that a narrower one beats."""
NARROW, WIDE = fact("units", "metres", scope="desk:1"), fact("greeting", "short", scope="tenant:acme")
A_MOMENT = 0.4
"""Long enough for whoever does not wait for a lock."""


@asynccontextmanager
async def held_to_scopes(url: str) -> AsyncIterator[tuple[Place, SqlMemoryProvider]]:
    async with guarded(url) as place:
        provider, desk = place.store(APP), place.store(DESK)
        yield Place(SqlJournal(provider.engine), provider, provider.engine), desk
        await desk.aclose()
        await provider.aclose()


@pytest.fixture(params=["sqlite", "postgres", "mariadb", "row-level security"])
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """Facts of ana's and wider ones, beside the runs."""
    facts = [StoredMemory(record=one, created_at=one.updated_at) for one in (SEAT, UNITS, NARROW, WIDE)]
    if request.param == "row-level security":
        async with held_to_scopes(await sql_url(request, "postgres")) as (place, desk):
            await desk.restore(facts)
            yield place
        return
    async for place in sql_place(await sql_url(request, request.param)):
        await place.provider.restore(facts)
        yield place


async def forget_both(provider: SqlMemoryProvider) -> None:
    for one in (SEAT, UNITS):
        assert await provider.forget(ForgetMemory(id=one.id, ctx=CTX))


async def turn(place: Place, meanwhile: Callable[[], Awaitable[None]]) -> Script:
    """Answer one message; between the reading of the facts and their checkpoint something happens."""

    async def resolved(_: object) -> None:
        await meanwhile()

    memory = Memory(place.provider, scopes=lambda _: ["desk:1", "actor:ana", "tenant:acme"], on_event=resolved)
    script = Script(["Hello."])
    turns = TurnRunner(Assistant(model=script.model(), base_prompt="BASE", memory=memory), place.journal)
    assert (await turns.start("hello", ctx=CTX, run_id="r1")).status == "done"
    return script


async def assert_forgotten(place: Place, script: Script) -> None:
    assert SECRET in script.prompts[0]  # it was resolved, so this run was answered from it
    digest = await value(place.journal, "memory:digest")
    assert digest["erased"] == 2
    assert SECRET not in json.dumps([one.value for one in await place.journal.checkpoints("r1")])
    assert "- [tenant:acme] greeting: short" in digest["block"]
    assert await pending_erasures(place.engine) == []


async def test_a_fact_that_was_forgotten_since_it_was_read_leaves_the_run_when_it_ends(place: Place):
    pending: list[str] = []

    async def meanwhile() -> None:
        await forget_both(place.provider)
        pending.extend(await pending_erasures(place.engine))

    script = await turn(place, meanwhile)

    assert pending == []  # nobody could know yet that the run holds it
    await assert_forgotten(place, script)


async def test_a_run_that_records_a_fact_waits_for_whoever_is_forgetting_it(place: Place):
    deleted = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def forget_slowly(transaction: Transaction) -> None:
        await forget_both(place.provider.within(transaction))
        deleted.set()
        await asyncio.sleep(A_MOMENT)

    async def meanwhile() -> None:
        tasks.append(asyncio.create_task(database_of(place.engine).transact(forget_slowly)))
        await deleted.wait()

    script = await turn(place, meanwhile)

    await asyncio.gather(*tasks)
    await assert_forgotten(place, script)


async def test_whoever_forgets_a_fact_waits_for_a_run_that_is_recording_it(place: Place):
    standing_still = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def hold_the_run_up(transaction: Transaction) -> None:
        await transaction.conn.execute(select(agent_run.c.id).with_for_update())
        standing_still.set()
        await asyncio.sleep(2 * A_MOMENT)

    async def forget_in_a_moment() -> None:
        await asyncio.sleep(A_MOMENT)  # the run has its facts by now, and cannot record them yet
        await forget_both(place.provider)

    async def meanwhile() -> None:
        tasks.append(asyncio.create_task(database_of(place.engine).transact(hold_the_run_up)))
        tasks.append(asyncio.create_task(forget_in_a_moment()))
        await standing_still.wait()

    # Whoever came first to the facts, the run may have ended before the other was through.
    script = await turn(place, meanwhile)

    await asyncio.gather(*tasks)
    await assert_forgotten(place, script)


async def test_what_stands_at_any_scope_of_the_run_is_not_taken_for_forgotten(place: Place):
    async def meanwhile() -> None:
        """Nothing happens."""

    await turn(place, meanwhile)

    digest = await value(place.journal, "memory:digest")
    assert "erased" not in digest
    assert [entry["text"] for entry in digest["entries"]] == ["metres", SEAT.text, "short"]


async def test_a_question_that_was_forgotten_answered_anew_and_forgotten_again_leaves_the_run(place: Place):
    await place.provider.forget(ForgetMemory(id=SEAT.id, ctx=CTX))
    provider = place.provider
    first = Script([[remember(key="seat", fact=f"first {SECRET}")], "Noted."])
    assistant = Assistant(model=first.model(), base_prompt="BASE", memory=Memory(provider))
    await TurnRunner(assistant, place.journal).start("hello", ctx=CTX, run_id="r0")

    async def forget() -> None:
        [seat] = [entry for entry in await Memory(provider).read_back(CTX) if entry.key == "seat"]
        assert await provider.forget(ForgetMemory(id=seat.id, ctx=CTX))

    async def answered_anew(_: object) -> str:
        # The run has read the thread, and not yet the facts.
        await forget()
        said = await Memory(provider).publish(scope="actor:ana", key="seat", text=f"again {SECRET}", ctx=CTX)
        assert said.ok
        return ""

    async def forgotten_again(_: object) -> None:
        await forget()

    memory = Memory(provider, on_event=forgotten_again)
    script = Script(["Hello."])
    assistant = Assistant(model=script.model(), base_prompt="BASE", memory=memory, contributors=[answered_anew])
    await TurnRunner(assistant, place.journal).start("hello", ctx=CTX, run_id="r1")

    kept = json.dumps([one.value for one in await place.journal.checkpoints("r1")])
    assert f"first {SECRET}" not in kept
    assert f"again {SECRET}" not in kept


async def assert_not_handed_on(place: Place, *, forget: Callable[[], Awaitable[None]]) -> None:
    memory = Memory(place.provider)
    broken = Script([[remember(fact=f"miles in {SECRET}")]])  # it has no answer to what comes back
    first = TurnRunner(Assistant(model=broken.model(), base_prompt="BASE", memory=memory), place.journal)
    with pytest.raises(IndexError):
        await first.start("hello", ctx=CTX, run_id="r1")

    await forget()
    script = Script(["Hello."])
    then = TurnRunner(Assistant(model=script.model(), base_prompt="BASE", memory=memory), place.journal)
    await then.start("hello again", ctx=CTX, run_id="r2")

    assert "remember" in str(script.requests)
    assert SECRET not in str(script.requests)
    assert SECRET not in json.dumps([one.value for one in await place.journal.checkpoints("r2")])
    # The run that never ended can be resumed, and keeps till then what it resolved.
    assert SECRET in json.dumps([one.value for one in await place.journal.checkpoints("r1")])


async def test_a_turn_is_not_shown_what_was_forgotten_by_a_run_of_its_thread_that_never_ended(shared: Place):
    async def forget() -> None:
        [entry] = await Memory(shared.provider).read_back(CTX)
        assert await shared.provider.forget(ForgetMemory(id=entry.id, ctx=CTX))

    await assert_not_handed_on(shared, forget=forget)


async def test_a_turn_in_this_processs_memory_is_not_shown_it_either():
    journal, provider = InlineJournal(), InMemoryMemoryProvider()

    async def forget() -> None:
        [entry] = await Memory(provider).read_back(CTX)
        assert await provider.forget(ForgetMemory(id=entry.id, ctx=CTX))
        await journal.erase(erasure_of(record_id=entry.id, scope=entry.scope, key=entry.key))

    await assert_not_handed_on(Place(journal, provider), forget=forget)
