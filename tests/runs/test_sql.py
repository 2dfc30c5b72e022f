"""A run's journal beside the facts: one transaction, one owner, and nothing left of what was forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.digest import MemoryDigest
from onfile.errors import StoreError
from onfile.memory import Memory
from onfile.provider import ForgetMemory, StoreMemory
from onfile.records import Actor, MemoryOrigin
from onfile.runs.assistant import Assistant
from onfile.runs.journal import NewRun, RunFenced, RunUnavailable, ThreadEntry
from onfile.runs.runner import TurnRunner
from onfile.runs.sql import SqlJournal
from onfile.runs.tools import action_tool
from onfile.scopes import ScopeContext
from onfile.stores import SqlMemoryProvider, StoredMemory
from onfile.stores.dialects import database_of
from onfile.stores.journals import erase_from_journals, pending_erasures
from onfile.testing import InMemoryMemoryProvider
from onfile.wire.digests import load_digest
from onfile.wire.redaction import Erasure, fact_mark
from tests.facts import fact
from tests.runs.conftest import Place, sql_url
from tests.runs.script import ANA, CTX, Script, call, names, remember, value

SECRET = "prefers-the-quiet-carriage"


@action_tool
def ship(order: str) -> str:
    """Ship an order."""
    return f"shipped {order}"


def runner(place: Place, script: Script, **parts) -> TurnRunner:
    return TurnRunner(Assistant(model=script.model(), base_prompt="BASE", **parts), place.journal)


def on_file(key: str, said: str) -> StoreMemory:
    return StoreMemory(key=key, text=said, scope="actor:ana", origin=MemoryOrigin(author="human"), ctx=CTX)


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "psycopg", "mariadb"])
async def test_without_its_tables_a_journal_names_its_own_setup(request: pytest.FixtureRequest, kind: str):
    # given the tables of facts, which the provider's setup makes
    engine = create_async_engine(await sql_url(request, kind))
    await SqlMemoryProvider(engine).setup()

    with pytest.raises(StoreError, match=r"no tables for runs; call `await journal\.setup\(\)`"):
        await SqlJournal(engine).create(NewRun(id="r1", text="hello", ctx=CTX))

    await engine.dispose()


async def test_a_fact_and_its_checkpoint_are_one_transaction(sqlite: Place):
    memory = Memory(sqlite.provider)
    await sqlite.journal.create(NewRun(id="r1", text="hello", ctx=CTX))
    held = await sqlite.journal.claim("r1", owner="a")

    async def write_and_be_cancelled(unit):
        digest = MemoryDigest(scopes=("actor:ana",))
        outcome = await unit.memory(memory).remember({"key": "units", "fact": "miles"}, digest=digest, ctx=CTX)
        assert outcome.ok
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await held.tx("tool:c1", write_and_be_cancelled)

    assert await memory.read_back(CTX) == ()
    assert await names(sqlite.journal) == []


async def test_an_event_is_told_once_and_only_of_what_was_kept(sqlite: Place):
    told: list[str] = []
    memory = Memory(sqlite.provider, on_event=lambda happened: told.append(happened.name))
    script = Script([[remember()], [call("ship", "c2", order="o1")], "Done."])
    turns = runner(sqlite, script, memory=memory, tools=[ship])

    await turns.start("hello", ctx=CTX, run_id="r1")
    await turns.decide("r1", "c2", approved=True)
    await turns.resume("r1")

    assert told == ["aviary:agent:memory.resolved", "aviary:agent:memory.written"]


async def test_a_provider_elsewhere_is_written_to_outside_the_journals_transaction(sqlite: Place):
    elsewhere = InMemoryMemoryProvider()

    result = await runner(sqlite, Script([[remember()], "Noted."]), memory=Memory(elsewhere)).start(
        "hello", ctx=CTX, run_id="r1"
    )

    assert result.text == "Noted."
    assert [entry.text for entry in await Memory(elsewhere).read_back(CTX)] == ["kilometres"]


async def test_of_two_that_claim_one_run_only_the_last_can_commit(place: Place):
    await place.journal.create(NewRun(id="r1", text="hello", ctx=CTX))
    first = await place.journal.claim("r1", owner="a")
    second = await place.journal.claim("r1", owner="b")

    async def effect(unit):
        await unit.add(ThreadEntry(thread_id="t1", run_id="r1", kind="user", content={"text": "hello"}))
        return {}

    with pytest.raises(RunFenced):
        await first.tx("persist:user", effect)
    await second.tx("persist:user", effect)

    assert len(await place.journal.read_thread("t1")) == 1


async def test_a_run_that_a_newer_onfile_wrote_is_refused_in_words(sqlite: Place):
    await sqlite.journal.create(NewRun(id="r1", text="hello", ctx=CTX))
    async with sqlite.engine.begin() as conn:
        await conn.execute(text("UPDATE agent_run SET format = 99"))

    with pytest.raises(RunUnavailable, match="format 99 and this onfile reads 1"):
        await sqlite.journal.claim("r1", owner="a")


@pytest.mark.parametrize("bad", ["", "a\x00b", "\ud800", "x" * 256])
async def test_an_id_that_no_database_can_keep_is_refused_in_words(sqlite: Place, bad: str):
    with pytest.raises(RunUnavailable, match="cannot be kept"):
        await sqlite.journal.create(NewRun(id=bad, text="hello", ctx=CTX))
    with pytest.raises(RunUnavailable, match="cannot be kept"):
        await sqlite.journal.create(NewRun(id="r1", text="hello", ctx=ScopeContext(actor=ANA, thread_id=bad or "\x00")))
    assert await sqlite.journal.get(bad) is None


@pytest.mark.parametrize("bad", ["a\x00b", "\ud800", "x" * 256])
async def test_a_run_that_no_database_can_have_is_as_missing_as_any_other(shared: Place, bad: str):
    assert await shared.journal.get(bad) is None
    assert await shared.journal.checkpoints(bad) == []
    assert await shared.journal.cancel(bad) is False
    assert await shared.journal.signal(bad, "approval:c1", {"approved": True}) is False
    assert await shared.journal.delete_thread(bad) == 0
    with pytest.raises(RunUnavailable, match="there is no run"):
        await shared.journal.claim(bad, owner="local")


async def test_what_people_and_models_say_comes_back_whatever_it_holds(place: Place):
    said = "a\x00b \ud800 🚚 \u2028"
    called = said.replace("\ud800", "")  # Pydantic AI itself cannot write one out
    turns = runner(place, Script([[call("nothing", "c\x00", order=called)], "Done."]))

    await turns.start(said, ctx=CTX, run_id="r1")

    thread = await place.journal.read_thread("t1")
    assert thread[0].content == {"text": said}
    assert thread[1].content["message"]["parts"][0]["args"] == {"order": called}


# Erasure: what was forgotten is gone from runs and threads, and what was erased is marked so.


async def bytes_of(place: Place, folder: Path) -> bytes:
    await place.provider.aclose()
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())


async def forget(place: Place, key: str) -> None:
    memory = Memory(place.provider)
    [entry] = [entry for entry in await memory.read_back(CTX) if entry.key == key]
    assert (await memory.forget(entry.id, CTX)).ok


async def test_a_forgotten_fact_is_gone_from_the_bytes_of_facts_runs_and_threads(sqlite: Place, tmp_path: Path):
    await sqlite.provider.write(on_file("greeting", "they like it short"))
    memory = Memory(sqlite.provider)
    first = Script([[remember(key=f"seat {SECRET}", fact=f"fact {SECRET}")], "Noted."])
    await runner(sqlite, first, memory=memory).start("hello", ctx=CTX, run_id="r1")
    # The next run of the thread has the fact in its block, and the call in its history.
    await runner(sqlite, Script(["Hello."]), memory=memory).start("hello again", ctx=CTX, run_id="r2")
    assert SECRET in (await value(sqlite.journal, "memory:digest", "r2"))["block"]
    assert SECRET in str(await value(sqlite.journal, "load:thread", "r2"))

    await forget(sqlite, f"seat {SECRET}")

    assert SECRET.encode() not in await bytes_of(sqlite, tmp_path)
    digest = await value(sqlite.journal, "memory:digest", "r2")
    assert digest["erased"] == 1
    assert "- [actor:ana] [erased]: [erased]" in digest["block"]
    assert "- [actor:ana] greeting: they like it short" in digest["block"]
    assert len(load_digest(digest).entries) == 2
    assert (await value(sqlite.journal, "tool:c1", "r1"))["message"] == "[erased]"


async def test_a_beaten_value_is_erased_and_what_beat_it_stays(sqlite: Place):
    narrow, own = fact(text="metres", scope="desk:1"), fact(text="miles", scope="actor:ana")
    await sqlite.provider.restore([StoredMemory(record=one, created_at=one.updated_at) for one in (narrow, own)])
    memory = Memory(sqlite.provider, scopes=lambda ctx: ["desk:1", "actor:ana"])
    await runner(sqlite, Script(["Hello."]), memory=memory).start("hello", ctx=CTX, run_id="r1")

    await sqlite.provider.forget(ForgetMemory(id=own.id, ctx=CTX))

    digest = await value(sqlite.journal, "memory:digest")
    assert "- [desk:1] units: metres\n    ↳ [actor:ana] instead has: [erased]" in digest["block"]
    assert digest["erased"] == 1


async def test_a_run_under_way_keeps_its_digest_until_it_ends_and_is_redacted_then(sqlite: Place, tmp_path: Path):
    await sqlite.provider.write(on_file(f"seat {SECRET}", f"fact {SECRET}"))
    script = Script([[call("ship", order="o1")], "Shipped."])
    turns = runner(sqlite, script, memory=Memory(sqlite.provider), tools=[ship])
    await turns.start("hello", ctx=CTX, run_id="r1")

    await forget(sqlite, f"seat {SECRET}")
    assert await pending_erasures(sqlite.engine) == ["r1"]
    await turns.decide("r1", "c1", approved=True)
    assert (await turns.resume("r1")).status == "done"

    assert script.prompts[0] == script.prompts[1]
    assert SECRET in script.prompts[1]
    assert await pending_erasures(sqlite.engine) == []
    assert SECRET.encode() not in await bytes_of(sqlite, tmp_path)


async def test_a_fact_that_is_forgotten_while_its_run_ends_is_erased_as_well(shared: Place):
    await shared.provider.write(on_file("seat", f"fact {SECRET}"))
    memory = Memory(shared.provider)
    await runner(shared, Script([[call("ship", order="o1")], "Shipped."]), memory=memory, tools=[ship]).start(
        "hello", ctx=CTX, run_id="r1"
    )
    await shared.journal.signal("r1", "approval:c1", {"approved": True})
    held = await shared.journal.claim("r1", owner="a")
    for checkpoint in await shared.journal.checkpoints("r1"):
        await held.step(checkpoint.name, lambda: None)
    [entry] = await memory.read_back(CTX)
    looked = asyncio.Event()

    async def forget_slowly(transaction):
        mark = fact_mark(scope=entry.scope, key=entry.key)
        await erase_from_journals(transaction, Erasure(record_id=entry.id, mark=mark), now=entry.updated_at)
        looked.set()
        await asyncio.sleep(0.5)  # long enough for the run to end in between, if it could

    async def end():
        await looked.wait()
        await held.tx("persist:run:end", lambda unit: ended(unit))

    async def ended(unit):
        await unit.end({"text": "Shipped.", "stopped": "answer"})
        return {}

    await asyncio.gather(database_of(shared.engine).transact(forget_slowly), end())

    assert await pending_erasures(shared.engine) == []
    assert SECRET not in str(await value(shared.journal, "memory:digest"))


async def test_a_call_that_was_refused_for_a_persons_note_is_erased_with_the_note(sqlite: Place, tmp_path: Path):
    await sqlite.provider.write(on_file("seat", f"fact {SECRET}"))
    script = Script([[remember(key="Seat", fact=f"not {SECRET}")], "A person said otherwise."])
    await runner(sqlite, script, memory=Memory(sqlite.provider)).start("hello", ctx=CTX, run_id="r1")

    await forget(sqlite, "seat")

    assert SECRET.encode() not in await bytes_of(sqlite, tmp_path)


async def test_another_persons_fact_of_the_same_key_stays_in_their_runs(sqlite: Place):
    bo = ScopeContext(actor=Actor(id="bo"), thread_id="t2")
    memory = Memory(sqlite.provider)
    for ctx, id_, said in ((CTX, "r1", "kilometres"), (bo, "r2", "furlongs")):
        await runner(sqlite, Script([[remember(fact=said)], "Noted."]), memory=memory).start(
            "hello", ctx=ctx, run_id=id_
        )

    await forget(sqlite, "units")

    assert (await value(sqlite.journal, "persist:toolcall:c1", "r1"))["args"] == {"key": "[erased]", "fact": "[erased]"}
    assert (await value(sqlite.journal, "persist:toolcall:c1", "r2"))["args"] == {"key": "units", "fact": "furlongs"}


async def test_what_the_conversation_said_stays_until_its_thread_is_deleted(sqlite: Place, tmp_path: Path):
    turns = runner(sqlite, Script(["Hello."]), memory=Memory(sqlite.provider))
    await turns.start(f"I said {SECRET}", ctx=CTX, run_id="r1")

    assert await sqlite.journal.delete_thread("t1") == 2

    assert await sqlite.journal.get("r1") is None
    assert SECRET.encode() not in await bytes_of(sqlite, tmp_path)


def test_a_journal_that_is_given_a_url_says_what_it_takes():
    with pytest.raises(TypeError, match=r"SqlJournal takes an AsyncEngine, not str; .* give it provider\.engine"):
        SqlJournal("sqlite:///onfile.db")
