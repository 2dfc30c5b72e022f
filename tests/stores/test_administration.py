"""What an administrator does with a store: look through it, put it right, delete with a true count."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from onfile.errors import ScopeError, WriteRefused
from onfile.memory import Memory
from onfile.provider import SearchMemories
from onfile.records import Actor, MemoryOrigin
from onfile.stores import (
    BrowseMemories,
    EditMemory,
    MemoryAdmin,
    SqlMemoryProvider,
    StoredMemory,
    SweepReport,
)
from tests.facts import NOON, fact
from tests.stores.desk import Desk, context

BY_BEA = MemoryOrigin(author="human", actor_ref="bea")


@pytest.fixture
async def keeping(engine):
    """A store that keeps a history and an audit of deletions."""
    desk = Desk(store=None)
    desk.store = SqlMemoryProvider(engine, clock=desk.clock, history=True, audit=True)
    await desk.store.setup()
    return desk


async def filled(desk: Desk, count: int, *, scope: str = "actor:ana") -> None:
    await desk.store.restore(
        [
            StoredMemory(
                record=fact(f"key {number:04d}", f"text {number}", scope=scope, minutes=number % 7), created_at=NOON
            )
            for number in range(count)
        ]
    )


def test_a_sql_store_is_an_admin(desk):
    assert isinstance(desk.store, MemoryAdmin)


# Deleting many at once.


async def test_forgetting_all_of_ones_own_answers_how_many_there_were(desk):
    await filled(desk, 1203)
    await filled(desk, 3, scope="actor:bob")
    await filled(desk, 2, scope="tenant:acme")

    assert await desk.store.forget_all(actor=Actor(id="ana")) == 1203
    assert await desk.store.forget_all(actor=Actor(id="ana")) == 0

    assert await desk.list() == []
    assert await desk.store.count() == 5


async def test_erasing_a_scope_leaves_every_other_whole(desk):
    scopes = ["tenant:acme", "tenant:acme-corp", "tenant:ACME", "tenant:acme ", "tenant:%", "tenant:acm_"]
    for scope in scopes:
        await filled(desk, 2, scope=scope)

    assert await desk.store.erase(scope="tenant:acme", elevated=True) == 2
    assert await desk.store.erase(scope="tenant:%", elevated=True) == 2
    assert await desk.store.erase(scope="tenant", elevated=True) == 0

    assert await desk.store.count() == 8


@pytest.mark.parametrize("scope", ["", "  ", "\t"])
async def test_a_blank_scope_is_an_error_and_never_all(desk, scope):
    await filled(desk, 1)

    with pytest.raises(ScopeError):
        await desk.store.erase(scope=scope, elevated=True)
    with pytest.raises(ScopeError):
        await desk.store.forget_all(actor=Actor(id=""))

    assert await desk.store.count() == 1


async def test_erasing_needs_a_person_who_may(desk):
    await filled(desk, 1)

    with pytest.raises(WriteRefused):
        await desk.store.erase(scope="actor:ana", elevated=False)

    assert await desk.store.count() == 1


@pytest.mark.parametrize("scope", ["a\0", "\ud800", "x" * 256])
async def test_a_scope_that_no_row_can_have_holds_nothing_to_erase(desk, scope):
    assert await desk.store.erase(scope=scope, elevated=True) == 0


async def test_what_was_erased_is_not_brought_back_by_a_replayed_run(desk):
    await desk.write(idempotency_key="call-1")
    await desk.store.forget_all(actor=Actor(id="ana"))

    with pytest.raises(WriteRefused):
        await desk.write(idempotency_key="call-1")

    assert await desk.list() == []


async def test_an_administrator_removes_at_any_scope(desk):
    record = await desk.write(scope="tenant:acme", author="human")

    assert await desk.store.remove(id=record.id)
    assert not await desk.store.remove(id=record.id)
    assert not await desk.store.remove(id="\0")


async def test_a_sweep_drops_receipts_too_old_to_be_asked_for_again(desk):
    await desk.write(idempotency_key="old")
    desk.now += timedelta(days=40)
    await desk.write("colour", "red", idempotency_key="new")

    assert await desk.store.sweep(keep_receipts=timedelta(days=30)) == SweepReport(expired=0, receipts=1)
    assert await desk.store.sweep(keep_receipts=timedelta(days=30)) == SweepReport(expired=0, receipts=0)


# Editing.


async def test_an_edit_in_view_of_the_latest_version_stands(desk):
    seen = await desk.write(text="one")

    outcome = await desk.store.edit(EditMemory(id=seen.id, text="two", origin=BY_BEA, seen_at=seen.updated_at))

    assert outcome.status == "edited"
    assert outcome.record == (await desk.store.get(seen.id)).record
    assert (outcome.record.text, outcome.record.origin, outcome.record.id) == ("two", BY_BEA, seen.id)


async def test_an_edit_of_what_somebody_changed_meanwhile_is_a_conflict_with_what_stands(desk):
    seen = await desk.write(text="one")
    theirs = await desk.write(text="two", author="human")

    outcome = await desk.store.edit(EditMemory(id=seen.id, text="three", origin=BY_BEA, seen_at=seen.updated_at))

    assert (outcome.status, outcome.record) == ("conflict", theirs)
    assert await desk.texts() == {"units": "two"}


async def test_two_edits_of_one_version_cannot_both_stand_even_under_a_clock_that_stands_still(engine):
    store = SqlMemoryProvider(engine, clock=lambda: NOON)
    await store.setup()
    seen = await Desk(store).write(text="one")

    first = await store.edit(EditMemory(id=seen.id, text="two", origin=BY_BEA, seen_at=seen.updated_at))
    second = await store.edit(EditMemory(id=seen.id, text="three", origin=BY_BEA, seen_at=seen.updated_at))

    assert (first.status, second.status) == ("edited", "conflict")


async def test_an_edit_of_what_is_gone_finds_nothing(desk):
    outcome = await desk.store.edit(EditMemory(id="mem_1", text="x", origin=BY_BEA, seen_at=NOON))

    assert (outcome.status, outcome.record) == ("not_found", None)


async def test_an_edit_is_a_persons_and_keepable(desk):
    seen = await desk.write()
    for text, origin in (("x", MemoryOrigin(author="agent")), ("a\0", BY_BEA)):
        with pytest.raises(WriteRefused):
            await desk.store.edit(EditMemory(id=seen.id, text=text, origin=origin, seen_at=seen.updated_at))


async def test_an_edit_to_the_same_words_changes_nothing(desk):
    seen = await desk.write(author="human")

    outcome = await desk.store.edit(EditMemory(id=seen.id, text=seen.text, origin=BY_BEA, seen_at=seen.updated_at))

    assert (outcome.status, outcome.record) == ("unchanged", seen)


# Looking through.


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("sort_by", ["updated_at", "created_at", "scope", "key"])
async def test_pages_hold_everything_once_and_in_order(desk, sort_by, descending):
    for scope in ("actor:ana", "tenant:acme", "é"):
        await filled(desk, 25, scope=scope)
    request = BrowseMemories(sort_by=sort_by, descending=descending, size=10)

    page = await desk.store.browse(request)
    seen = list(page.memories)
    while page.next is not None:
        page = await desk.store.browse(replace(request, after=page.next))
        seen += page.memories

    assert len(seen) == 75
    assert len({memory.record.id for memory in seen}) == 75
    values = [getattr(memory if sort_by == "created_at" else memory.record, sort_by) for memory in seen]
    assert values == sorted(values, reverse=descending)


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("sort_by", ["updated_at", "created_at", "scope", "key"])
async def test_a_page_far_in_costs_no_more_than_the_first(tmp_path, sort_by, descending):
    # One connection, on which SQLite counts its own steps: no clock has a say in it.
    engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path / 'facts.db'}", pool_size=1, max_overflow=0)
    desk = Desk(store=SqlMemoryProvider(engine))
    await desk.store.setup()
    for number in range(4):
        await filled(desk, 1_000, scope=f"actor:{number}")
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    async with engine.connect() as conn:
        driver = (await conn.get_raw_connection()).driver_connection
        await driver.set_progress_handler(count, 20)
    request = BrowseMemories(sort_by=sort_by, descending=descending, size=10)

    first = page = await desk.store.browse(request)
    cost_of_first = steps
    for _ in range(3):
        page = await desk.store.browse(replace(request, after=page.next, size=1_000))
    steps = 0
    far = await desk.store.browse(replace(request, after=page.next))
    await engine.dispose()

    assert len(first.memories) == len(far.memories) == 10
    assert steps < 3 * cost_of_first


async def test_filters_narrow_what_is_shown(desk):
    noted = await desk.write("Delivery Window", "before 50% of noon", origin=MemoryOrigin(author="agent", run_id="r7"))
    stated = await desk.write("dock", "Nord_Tor", author="human", scope="depot:north")
    await desk.store.pin(id=stated.id, pinned=True)

    async def found(**fields) -> list[str]:
        return [memory.record.key for memory in (await desk.store.browse(BrowseMemories(**fields))).memories]

    assert await found(scopes=["depot:north"]) == ["dock"]
    assert await found(scopes=[]) == await found(scopes=["\0"]) == []
    assert await found(author="agent") == ["Delivery Window"]
    assert await found(pinned=True) == ["dock"]
    assert await found(run_id="r7") == ["Delivery Window"]
    assert await found(run_id="\0") == await found(contains="\ud800") == []
    assert await found(contains="NORD_tor") == ["dock"]
    assert await found(contains="delivery w") == ["Delivery Window"]
    assert await found(contains="%") == ["Delivery Window"]
    assert await found(contains="_") == ["dock"]
    assert await found(updated_from=stated.updated_at) == ["dock"]
    assert await found(updated_before=stated.updated_at) == ["Delivery Window"]
    assert [memory.record for memory in await desk.store.written_by(run_id="r7")] == [noted]


@pytest.mark.parametrize("after", ["", "x", "!!", "W10=", "WzEsMl0="])
async def test_a_page_after_nonsense_is_a_clear_error(desk, after):
    with pytest.raises(ValueError, match="next"):
        await desk.store.browse(BrowseMemories(after=after))


async def test_a_fact_whose_expiry_a_person_takes_back_meanwhile_stands(keeping, monkeypatch):
    stated = await keeping.write(text="a person's", author="human")
    await keeping.store.expire(id=stated.id, expires_at=NOON)
    database = keeping.store._database
    look = database.play

    async def look_and_be_overtaken(steps, **scopes):
        try:
            return await look(steps, **scopes)
        finally:
            await keeping.store.expire(id=stated.id, expires_at=None)

    monkeypatch.setattr(database, "play", look_and_be_overtaken)
    with pytest.raises(WriteRefused):
        await keeping.write(text="a guess")

    assert await keeping.texts() == {"units": "a person's"}


# History.


async def test_a_history_tells_who_changed_what_when(keeping):
    record = await keeping.write(text="one")
    await keeping.write(text="two", author="human")
    memory = Memory(keeping.store)
    await memory.pin(record.id, pinned=True, ctx=context("ana"))
    await keeping.store.pin(id=record.id, pinned=False)
    await keeping.store.expire(id=record.id, expires_at=datetime(2030, 1, 1, tzinfo=UTC), by=BY_BEA)
    await keeping.store.expire(id=record.id, expires_at=None, by=BY_BEA)
    latest = (await keeping.store.get(record.id)).record
    await keeping.store.edit(EditMemory(id=record.id, text="three", origin=BY_BEA, seen_at=latest.updated_at))

    changes = await keeping.store.history(record.id)

    assert [(change.change, change.text, change.author, change.actor_ref) for change in changes] == [
        ("written", "one", "agent", "ana"),
        ("replaced", "two", "human", "ana"),
        ("pinned", "two", "human", "ana"),
        ("unpinned", "two", "human", None),  # an operator's act: nobody was named
        ("expiry set", "two", "human", "bea"),
        ("expiry cleared", "two", "human", "bea"),
        ("replaced", "three", "human", "bea"),
    ]
    assert [change.changed_at for change in changes] == sorted(change.changed_at for change in changes)


async def test_a_person_who_pins_an_agents_note_is_named_and_not_the_agent(keeping):
    record = await keeping.write(text="one")

    await Memory(keeping.store).pin(record.id, pinned=True, ctx=context("ana"))

    [_, pinned] = await keeping.store.history(record.id)
    assert (pinned.change, pinned.author, pinned.actor_ref, pinned.run_id) == ("pinned", "human", "ana", None)


async def test_what_a_runs_calls_wrote_is_in_the_history_once_however_often_they_came(keeping):
    record = await keeping.write(text="one", idempotency_key="call-1")
    for _ in range(2):
        await keeping.write(text="two", idempotency_key="call-2")

    changes = await keeping.store.history(record.id)

    assert [(change.change, change.text, change.run_id) for change in changes] == [
        ("written", "one", "r1"),
        ("replaced", "two", "r1"),
    ]


async def test_there_is_no_history_unless_asked_for(desk):
    record = await desk.write()

    assert await desk.store.history(record.id) == []
    assert await desk.store.history("\0") == []
    assert await desk.store.deletions() == []


async def test_a_history_goes_with_its_record_also_when_it_is_no_longer_kept(keeping, engine):
    record = await keeping.write(text="one")
    await keeping.write(text="two")

    await Desk(SqlMemoryProvider(engine)).forget(record.id)

    assert await keeping.store.history(record.id) == []


async def test_a_deletion_leaves_its_bare_fact_if_asked_for(keeping):
    first, second = await keeping.write(), await keeping.write("colour", "red", scope="tenant:acme", author="human")
    await keeping.forget(first.id)
    await keeping.store.erase(scope="tenant:acme", elevated=True)

    deletions = await keeping.store.deletions()

    assert [(one.memory_id, one.deletion) for one in deletions] == [(first.id, "forgotten"), (second.id, "erased")]
    assert await keeping.store.deletions(after=deletions[0].position) == deletions[1:]


# Expiry.


async def test_an_expired_fact_is_read_no_more_and_uncovers_nothing_of_itself(desk):
    record = await desk.write()
    await desk.write("colour", "red")
    assert await desk.store.expire(id=record.id, expires_at=desk.now + timedelta(hours=1))
    assert await desk.texts() == {"units": "kilometres", "colour": "red"}

    desk.now += timedelta(hours=2)

    assert await desk.texts() == {"colour": "red"}
    assert (await desk.store.get(record.id)).expires_at is not None


async def test_a_search_shows_no_expired_fact_and_fills_its_place(desk):
    for number in range(4):
        record = await desk.write(f"pallet {number}", "label the pallet on its long side")
        if number < 2:
            await desk.store.expire(id=record.id, expires_at=desk.now + timedelta(hours=1))
    desk.now += timedelta(hours=2)

    found = await desk.store.search(SearchMemories(scopes=["actor:ana"], query="pallet", limit=2, ctx=context("ana")))

    assert {record.key for record in found} == {"pallet 2", "pallet 3"}


async def test_an_expired_statement_stands_in_nobodys_way(desk):
    stated = await desk.write(text="miles", author="human")
    await desk.store.pin(id=stated.id, pinned=True)
    await desk.store.expire(id=stated.id, expires_at=desk.now + timedelta(hours=1))
    desk.now += timedelta(hours=2)

    noted = await desk.write(text="kilometres", author="agent")

    assert noted.id != stated.id
    assert not noted.pinned
    assert await desk.store.get(stated.id) is None


async def test_an_expiry_can_be_taken_back_and_needs_a_timezone(desk):
    record = await desk.write()
    await desk.store.expire(id=record.id, expires_at=desk.now)
    assert await desk.list() == []

    assert await desk.store.expire(id=record.id, expires_at=None)

    assert await desk.list() == [record]
    assert not await desk.store.expire(id="nobody", expires_at=None)
    with pytest.raises(ValueError, match="timezone"):
        await desk.store.expire(id=record.id, expires_at=NOON.replace(tzinfo=None))


async def test_a_sweep_really_deletes_what_has_expired(desk):
    for number in range(3):
        record = await desk.write(f"key {number}")
        await desk.store.expire(id=record.id, expires_at=desk.now + timedelta(hours=number))
    desk.now += timedelta(minutes=90)

    assert (await desk.store.sweep()).expired == 2
    assert await desk.store.count() == 1


async def test_an_expiry_survives_an_export_and_a_restore(desk):
    record = await desk.write()
    await desk.store.expire(id=record.id, expires_at=NOON + timedelta(days=9, microseconds=1))
    [memory] = [memory async for memory in desk.store.export()]

    await desk.store.remove(id=record.id)
    await desk.store.restore([memory])

    assert await desk.store.get(record.id) == memory
    assert memory.expires_at == NOON + timedelta(days=9, microseconds=1)
