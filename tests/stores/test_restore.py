"""An operator's export and restore: exact, or not at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from onfile.errors import WriteRefused
from onfile.records import MemoryOrigin
from onfile.stores import RestoreConflict, RestoreReport, StoredMemory
from tests.facts import NOON, fact


def stored(key: str = "units", text: str = "kilometres", **fields) -> StoredMemory:
    return StoredMemory(record=fact(key, text, **fields), created_at=NOON - timedelta(days=1, microseconds=1))


async def exported(store, **arguments) -> list[StoredMemory]:
    return [memory async for memory in store.export(**arguments)]


async def test_a_round_trip_is_exact(desk):
    memories = [
        stored(id="any text at all", pinned=True, minutes=0.123456),
        stored("請求先", "本社", scope="tenant:acme", author="human", origin=MemoryOrigin(author="human")),
        stored("Fiscal Year", scope="tenant:acme"),
    ]

    report = await desk.store.restore(memories)

    assert report == RestoreReport(inserted=3, replaced=0, skipped=0)
    assert await exported(desk.store) == [memories[0], memories[2], memories[1]]
    assert await desk.store.get("any text at all") == memories[0]


async def test_an_export_comes_in_the_order_of_scopes_and_folded_keys_however_many_there_are(desk):
    keys = [f"Key {number}" for number in range(1203)]
    await desk.store.restore([stored(key, scope=scope) for key in keys for scope in ("b", "B", "a", "é")])

    places = [
        (memory.record.scope, memory.record.key.lower().replace(" ", "-")) for memory in await exported(desk.store)
    ]

    assert len(places) == 4 * 1203
    assert places == sorted(places)


async def test_an_export_of_some_scopes_holds_those_and_no_others(desk):
    await desk.store.restore([stored(scope=scope) for scope in ("a", "a ", "A", "ab", "b")])

    assert [memory.record.scope for memory in await exported(desk.store, scopes=["b", "a", "a", "\0", "%"])] == [
        "a",
        "b",
    ]
    assert await exported(desk.store, scopes=[]) == []


async def test_an_export_that_is_broken_off_leaves_no_connection_behind(desk):
    await desk.store.restore([stored(f"key {number}") for number in range(600)])

    for _ in range(50):
        async for _ in desk.store.export():
            break

    assert await desk.store.count() == 600


async def test_a_conflict_stops_a_restore_says_where_and_writes_nothing(desk):
    await desk.store.restore([stored(id="one"), stored("colour", id="two")])
    memories = [
        stored("new", id="three"),
        stored("elsewhere", id="one"),
        stored("COLOUR", id="four"),
        stored("NEW", id="five"),
    ]

    with pytest.raises(RestoreConflict) as raised:
        await desk.store.restore(memories)

    assert raised.value.positions == (1, 2, 3)
    assert "elsewhere" not in str(raised.value)
    assert await desk.store.count() == 2


async def test_every_conflict_of_a_long_restore_is_named(desk):
    await desk.store.restore([stored(f"key {number}") for number in range(1000)])

    with pytest.raises(RestoreConflict) as raised:
        await desk.store.restore([stored(f"key {number}") for number in range(990, 1500)])

    assert raised.value.positions == tuple(range(10))
    assert await desk.store.count() == 1000


async def test_skipping_keeps_what_is_on_file(desk):
    standing = stored(id="one")
    await desk.store.restore([standing])

    report = await desk.store.restore(
        [stored("UNITS", "miles", id="two"), stored("new", id="three")], on_conflict="skip"
    )

    assert report == RestoreReport(inserted=1, replaced=0, skipped=1)
    assert await desk.store.get("one") == standing
    assert await desk.store.get("two") is None


async def test_replacing_puts_the_restored_fact_in_place_of_all_that_stood_in_its_way(desk):
    await desk.store.restore([stored(id="one"), stored("colour", id="two"), stored("size", id="three")])
    # the id of one and the key of another
    newcomer = stored("Colour", "red", id="one", author="human")

    report = await desk.store.restore([newcomer], on_conflict="replace")

    assert report == RestoreReport(inserted=0, replaced=1, skipped=0)
    assert await desk.store.get("one") == newcomer
    assert await desk.store.get("two") is None
    assert await desk.store.count() == 2


async def test_of_two_facts_for_one_key_in_one_restore_the_later_replaces_the_earlier(desk):
    memories = [stored(text="first", id="one"), stored(text="second", id="two"), stored("colour", id="three")]

    report = await desk.store.restore(memories, on_conflict="replace")

    assert report == RestoreReport(inserted=2, replaced=1, skipped=0)
    assert await desk.store.get("one") is None
    assert await desk.store.get("two") == memories[1]


async def test_authority_does_not_judge_a_restore(desk):
    await desk.store.restore([stored(author="agent", scope="tenant:acme")])

    assert await desk.texts("tenant:acme") == {"units": "kilometres"}


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (stored(text="a\0"), "NUL"),
        (stored("x" * 256), "255"),
        (stored(id="x" * 256), "id"),
        (stored(scope=""), "blank"),
        (stored(origin=MemoryOrigin(author="robot")), "author"),
        (replace(stored(), created_at=datetime(2026, 9, 1)), "timezone"),  # noqa: DTZ001  # the mistake itself
    ],
)
async def test_what_no_database_can_keep_is_refused_by_its_place_and_nothing_is_written(desk, wrong, word):
    with pytest.raises(WriteRefused) as refused:
        await desk.store.restore([stored("good"), wrong])

    assert "fact 1" in refused.value.reason
    assert word in refused.value.reason
    assert await desk.store.count() == 0


async def test_a_time_with_another_offset_comes_back_as_the_same_moment_in_utc(desk):
    moment = datetime(2026, 9, 1, 3, 0, 0, 1, tzinfo=timezone(timedelta(hours=-7, minutes=-30)))
    await desk.store.restore([StoredMemory(record=replace(fact(), updated_at=moment), created_at=moment)])

    [memory] = await exported(desk.store)

    assert memory.record.updated_at == memory.created_at == moment
    assert memory.created_at.utcoffset() == timedelta(0)
