"""What a store promises, on every database."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import create_engine

from onfile.errors import OnfileError, ScopeError, StoreError, WriteRefused
from onfile.provider import can_pin, can_write, guards_writes
from onfile.records import MemoryOrigin
from onfile.stores import SqlMemoryProvider, managed_tables
from tests.facts import NOON
from tests.stores.desk import Desk


async def test_a_store_claims_to_write_to_pin_and_to_guard_its_writes(desk):
    assert can_write(desk.store)
    assert can_pin(desk.store)
    assert guards_writes(desk.store)


async def test_a_fact_comes_back_as_it_was_written(desk):
    origin = MemoryOrigin(author="agent", thread_id="t/1", run_id="r:1", actor_ref="дмитрий")

    written = await desk.write("Fiscal Year", "the year starts in October", origin=origin)

    assert await desk.list() == [written]
    assert (written.key, written.text, written.scope, written.origin, written.pinned) == (
        "Fiscal Year",
        "the year starts in October",
        "actor:ana",
        origin,
        False,
    )
    assert written.id.startswith("mem_")
    assert len(written.id) == 30


@pytest.mark.parametrize("microsecond", [0, 1, 999_999, 123_456])
async def test_a_time_comes_back_to_the_microsecond_and_in_utc(engine, microsecond):
    tokyo = timezone(timedelta(hours=9))
    moment = datetime(2026, 9, 1, 3, 0, 0, microsecond, tzinfo=tokyo)
    store = SqlMemoryProvider(engine, clock=lambda: moment)
    await store.setup()

    record = await Desk(store).write()

    [listed] = await Desk(store).list()
    assert record.updated_at == listed.updated_at == moment
    assert record.updated_at.utcoffset() == listed.updated_at.utcoffset() == timedelta(0)


async def test_a_clock_without_a_timezone_is_named_as_the_mistake(engine):
    store = SqlMemoryProvider(engine, clock=lambda: datetime(2026, 9, 1))  # noqa: DTZ001  # the mistake itself
    await store.setup()

    with pytest.raises(ValueError, match="timezone"):
        await Desk(store).write()


async def test_an_upsert_leaves_id_spelling_pin_and_creation_alone(desk):
    first = await desk.write("Fiscal Year", "October")
    await desk.store.pin(id=first.id, pinned=True)
    created = (await desk.store.get(first.id)).created_at

    second = await desk.write("fiscal_year", "April")

    assert (second.id, second.key, second.text, second.pinned) == (first.id, "Fiscal Year", "April", True)
    assert second.updated_at > first.updated_at
    assert (await desk.store.get(first.id)).created_at == created == first.updated_at
    assert await desk.list() == [second]
    assert desk.reports[-1].replaced == "October"


async def test_a_pin_does_not_move_the_date_of_the_text(desk):
    written = await desk.write()

    assert await desk.store.pin(id=written.id, pinned=True)
    assert await desk.store.pin(id=written.id, pinned=True)

    [pinned] = await desk.list()
    assert pinned.pinned
    assert pinned.updated_at == written.updated_at


@pytest.mark.parametrize("id", ["nobody", "", "a\0b", "\ud800", "x" * 256, "mem_'; drop table agent_memory; --"])
async def test_an_id_that_is_not_on_file_is_simply_not_there(desk, id):
    assert await desk.store.pin(id=id, pinned=True) is False
    assert await desk.forget(id) is False
    assert await desk.store.get(id) is None


async def test_the_same_text_again_writes_nothing(desk):
    first = await desk.write()

    again = await desk.write()

    assert again == first
    assert (desk.reports[-1].unchanged, desk.reports[-1].replaced) == (True, None)


async def test_a_persons_statement_is_never_replaced_by_an_agent(desk):
    stated = await desk.write("Units", "miles", author="human")

    with pytest.raises(WriteRefused) as refused:
        await desk.write("units", "kilometres", author="agent")

    assert "Units" in refused.value.reason
    assert "[actor:ana]" in refused.value.reason
    assert "Units" not in str(refused.value)
    assert await desk.list() == [stated]


async def test_an_agent_repeating_a_persons_words_changes_nothing(desk):
    stated = await desk.write(author="human")

    assert await desk.write(author="agent") == stated
    assert desk.reports[-1].unchanged


async def test_a_person_repeating_the_agents_words_makes_them_their_own(desk):
    noted = await desk.write(author="agent")

    stated = await desk.write(author="human")

    assert (stated.id, stated.origin.author) == (noted.id, "human")
    assert stated.updated_at > noted.updated_at
    assert (desk.reports[-1].unchanged, desk.reports[-1].replaced) == (False, None)


@pytest.mark.parametrize("scope", ["tenant:acme", "global", "actor:ana ", "actor:ANA", "actor:bob"])
async def test_an_agent_writes_nowhere_but_at_its_own_actors_scope(desk, scope):
    with pytest.raises(WriteRefused, match="refused"):
        await desk.write(scope=scope, author="agent")

    assert await desk.store.count() == 0


async def test_a_person_may_write_wider(desk):
    await desk.write(scope="tenant:acme", author="human")

    assert await desk.texts("tenant:acme") == {"units": "kilometres"}


async def test_scopes_are_compared_byte_for_byte(desk):
    scopes = [
        "tenant:acme",
        "tenant:acme-corp",
        "tenant:ACME",
        "tenant:acme ",
        " tenant:acme",
        "tenant:acm_",
        "tenant:%",
    ]
    scopes += [
        "actor:user_1",
        "actor:userX1",
        "actor:café",
        "actor:cafe\u0301",
        "actor:cafe",
        "actor:ß",
        "actor:ss",
        "*",
        "[a-z]",
    ]
    for scope in scopes:
        await desk.write(text=scope, scope=scope, author="human")

    for scope in scopes:
        assert [record.text for record in await desk.list(scope)] == [scope]
    assert await desk.list("tenant:", "actor", "_", "%", "", " ") == []


async def test_ids_are_compared_byte_for_byte(desk):
    written = await desk.write()

    for other in (written.id.lower(), written.id + " ", " " + written.id, written.id[:-1], "%", written.id[:-1] + "_"):
        assert await desk.forget(other) is False
        assert await desk.store.pin(id=other, pinned=True) is False
    assert await desk.list() == [written]


async def test_a_scope_that_no_row_can_have_matches_nothing(desk):
    await desk.write()

    assert await desk.list("\ud800", "a\0", "x" * 256, "") == []
    assert len(await desk.list("\ud800", "actor:ana", "actor:ana")) == 1


async def test_many_scopes_are_read_at_once(desk):
    for number in (0, 700, 1999):
        await desk.write(text=f"fact {number}", scope=f"depot:{number}", author="human")

    records = await desk.list(*(f"depot:{number}" for number in range(2000)))

    assert sorted(record.text for record in records) == ["fact 0", "fact 1999", "fact 700"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("請求先", "会計年度"), ("C", "C++"), ("1.0", "10"), ("ab", "a b"), ("é", "e"), ("ı", "i")],
)
async def test_keys_that_ask_different_things_are_two_facts(desk, one, other):
    await desk.write(one, "first")
    await desk.write(other, "second")

    assert await desk.texts() == {one: "first", other: "second"}


@pytest.mark.parametrize(
    ("first", "again"),
    [("café", "cafe\u0301"), ("fiscal_year", "Fiscal Year"), ("Straße", "STRASSE")],
)
async def test_the_first_spelling_of_a_key_stays(desk, first, again):
    await desk.write(first, "one")
    await desk.write(again, "two")

    assert await desk.texts() == {first: "two"}


async def test_the_longest_keys_keep_their_identity_however_much_folding_lengthens_them(desk):
    # each of these folds to three code points of four bytes
    key = "\U0001d160" * 255

    first = await desk.write(key, "one", actor="x" * 249)
    second = await desk.write(key, "two", actor="x" * 249)
    await desk.write(key[:-1] + "a", "three", actor="x" * 249)

    assert second.id == first.id
    assert len(await desk.list("actor:" + "x" * 249)) == 2


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"key": "a\0b"}, "NUL"),
        ({"text": "a\0b"}, "NUL"),
        ({"text": "\ud83d"}, "surrogate"),
        ({"scope": "tenant:\ud83d"}, "surrogate"),
        ({"scope": "x" * 256}, "255"),
        ({"key": "x" * 256}, "255"),
        ({"scope": " "}, "blank"),
        ({"origin": MemoryOrigin(author="human", run_id="r\0")}, "run"),
        ({"text": 7}, "string"),
        ({"origin": MemoryOrigin(author="robot")}, "author"),
    ],
)
async def test_what_no_database_can_keep_is_refused_in_words(desk, fields, word):
    with pytest.raises(WriteRefused) as refused:
        await desk.write(**{"author": "human", **fields})

    assert word in refused.value.reason
    assert await desk.store.count() == 0


@pytest.mark.parametrize(
    "text", ["'; drop table agent_memory; --", "👩‍👩‍👧", "a" * 100_000, "x\\y%z", "\u2028", "🏳️‍🌈 請求先 سلام", " "]
)
async def test_any_other_text_is_kept_as_it_is(desk, text):
    await desk.write(text=text)

    assert await desk.texts() == {"units": text}


@pytest.mark.parametrize("actor", ["ana@example.org", "a:b/c", "дмитрий", ".", "a b", "%"])
async def test_any_text_is_a_legal_actor(desk, actor):
    record = await desk.write(actor=actor)

    assert await desk.list(f"actor:{actor}") == [record]
    assert await desk.forget(record.id, actor=actor)


async def test_forgetting_deletes_at_the_callers_own_scope_only(desk):
    mine = await desk.write(actor="ana")
    wide = await desk.write(scope="tenant:acme", author="human")

    assert await desk.forget(mine.id, actor="bob") is False
    assert await desk.forget(wide.id) is False
    assert await desk.forget(mine.id) is True
    assert await desk.forget(mine.id) is False

    assert await desk.list("actor:ana", "tenant:acme") == [wide]


async def test_an_actor_without_an_id_is_an_error_before_the_store_is_touched(engine):
    desk = Desk(SqlMemoryProvider(engine))  # never set up: touching it would be another error

    with pytest.raises(ScopeError):
        await desk.forget("mem_1", actor="")
    with pytest.raises(ScopeError):
        await desk.write(scope="global", author="human", actor="")


async def test_a_retry_does_nothing_and_answers_with_what_stands_now(desk):
    await desk.write(text="one", idempotency_key="call-1")
    await desk.write(text="two", idempotency_key="call-2")

    retried = await desk.write(text="one", idempotency_key="call-1")

    assert retried.text == "two"
    assert desk.reports[-1].unchanged
    assert await desk.texts() == {"units": "two"}


async def test_a_retry_of_a_fact_that_was_forgotten_since_is_refused(desk):
    record = await desk.write(idempotency_key="call-1")
    await desk.forget(record.id)

    with pytest.raises(WriteRefused) as refused:
        await desk.write(idempotency_key="call-1")

    assert "forgotten" in refused.value.reason
    assert await desk.list() == []


async def test_a_write_that_changed_nothing_leaves_its_receipt_too(desk):
    record = await desk.write()
    await desk.write(idempotency_key="call-1")
    await desk.forget(record.id)

    with pytest.raises(WriteRefused):
        await desk.write(idempotency_key="call-1")


async def test_a_refused_write_leaves_no_receipt(desk):
    stated = await desk.write(text="miles", author="human")
    with pytest.raises(WriteRefused):
        await desk.write(idempotency_key="call-1")
    await desk.forget(stated.id)

    assert (await desk.write(idempotency_key="call-1")).text == "kilometres"


async def test_one_idempotency_key_names_one_write_at_each_scope_and_key(desk):
    await desk.write("units", idempotency_key="call-1")
    await desk.write("colour", "red", idempotency_key="call-1")
    await desk.write("units", "miles", actor="bob", idempotency_key="call-1")

    assert await desk.texts() == {"units": "kilometres", "colour": "red"}
    assert await desk.texts("actor:bob") == {"units": "miles"}


async def test_an_idempotency_key_may_hold_any_character(desk):
    for idempotency_key in ("", "\0", "\ud800", "x" * 5000, "'"):
        await desk.write(f"key {idempotency_key!r}"[:50], idempotency_key=idempotency_key)

    assert await desk.store.count() == 5


async def test_seven_writes_at_once_are_seven_facts(desk):
    await asyncio.gather(*(desk.write(f"key {number}") for number in range(7)))

    assert len(await desk.list()) == 7


async def test_writers_of_one_key_at_once_leave_one_whole_row(desk):
    await asyncio.gather(*(desk.write(text=f"text {number}") for number in range(20)))

    [record] = await desk.list()
    assert record.text.startswith("text ")
    assert sum(report.replaced is None for report in desk.reports) == 1


async def test_an_agent_that_races_a_person_never_ends_up_over_their_statement(desk):
    for round_ in range(10):
        await asyncio.gather(
            desk.write(f"key {round_}", "a guess", author="agent"),
            desk.write(f"key {round_}", "stated", author="human"),
            desk.write(f"key {round_}", "another guess", author="agent"),
            return_exceptions=True,
        )

    records = await desk.list()
    assert {(record.text, record.origin.author) for record in records} == {("stated", "human")}
    assert len(records) == 10


async def test_one_write_sent_by_eight_at_once_happens_once(desk):
    records = await asyncio.gather(*(desk.write(idempotency_key="call-1") for _ in range(8)))

    assert len({record.id for record in records}) == 1
    assert sum(not report.unchanged for report in desk.reports) == 1


async def test_two_hundred_reads_at_once_all_finish(desk):
    await desk.write()

    answers = await asyncio.gather(*(desk.list() for _ in range(200)))

    assert all(len(answer) == 1 for answer in answers)


async def test_without_its_tables_a_store_says_what_to_run(engine):
    desk = Desk(SqlMemoryProvider(engine))

    for call in (desk.list, desk.write, desk.store.count, lambda: desk.forget("mem_1")):
        with pytest.raises(StoreError, match=r"setup\(\)") as raised:
            await call()
        assert "kilometres" not in repr(raised.value)
        assert raised.value.__context__ is None


async def test_setting_up_twice_keeps_what_is_there(desk):
    written = await desk.write()

    await desk.store.setup()

    assert await desk.list() == [written]


def test_the_managed_tables_are_named_for_a_hosts_migrations():
    assert {"agent_memory", "agent_memory_receipt"} <= set(managed_tables())


@pytest.mark.parametrize("wrong", [create_engine("sqlite://"), "sqlite://", None])
def test_anything_but_an_async_engine_is_a_type_error_that_says_what_to_build(wrong):
    with pytest.raises(TypeError, match="create_async_engine"):
        SqlMemoryProvider(wrong)


@pytest.mark.parametrize(
    "bad", ["", "nonsense", "nope://x", "sqlite+pysqlite:///x.db", "oracle://scott:tiger-secret@db/x"]
)
def test_a_url_that_cannot_be_used_is_one_sentence_without_its_password(bad):
    with pytest.raises((OnfileError, TypeError)) as raised:
        SqlMemoryProvider.from_url(bad)

    assert "tiger-secret" not in str(raised.value)


async def test_ids_rise_with_the_writes(desk):
    records = [await desk.write(f"key {number}") for number in range(20)]

    assert [record.id for record in records] == sorted(record.id for record in records)


def test_the_clock_is_utc_by_default():
    from onfile.stores.keeping import utc_now

    assert utc_now().tzinfo is UTC
    assert utc_now() > NOON


@pytest.mark.parametrize("standing", [None, "one"], ids=["a new key", "a correction"])
async def test_one_call_that_arrives_ten_times_at_once_writes_once(desk, standing):
    if standing is not None:
        await desk.write(text=standing)
    before = len(desk.reports)

    records = await asyncio.gather(*(desk.write(text="two", idempotency_key="call-1") for _ in range(10)))

    assert {record.text for record in records} == {"two"}
    assert [report.unchanged for report in desk.reports[before:]].count(False) == 1
    assert [report.replaced for report in desk.reports[before:] if not report.unchanged] == [standing]


async def test_calls_at_once_that_correct_one_fact_each_write_once_and_one_stands_last(desk):
    first = await desk.write(text="0")

    records = await asyncio.gather(*(desk.write(text=str(n), idempotency_key=f"call-{n}") for n in range(1, 20)))

    assert {record.id for record in records} == {first.id}
    assert [report.unchanged for report in desk.reports].count(False) == 20
    replaced = [report.replaced for report in desk.reports[1:]]
    [standing] = (await desk.texts()).values()
    assert sorted([*replaced, standing], key=int) == [str(n) for n in range(20)]
