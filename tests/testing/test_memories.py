"""The in-memory provider where it differs from what the contract already says of every provider."""

import asyncio
import subprocess
import sys
import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onfile.errors import WriteRefused
from onfile.provider import (
    ForgetMemory,
    ListMemories,
    SearchableMemoryProvider,
    SearchMemories,
    StoreMemory,
    can_pin,
    can_search,
    can_write,
    guards_writes,
)
from onfile.records import Actor, MemoryOrigin
from onfile.scopes import ScopeContext
from onfile.testing import InMemoryMemoryProvider
from onfile.testing.overlap import fact_words, query_words
from tests.facts import NOON, fact

ANA = ScopeContext(actor=Actor(id="ana", tenant_ref="acme"))
SCOPES = ("actor:ana", "tenant:acme", "global")


def note(key="units", text="kilometres", author="agent", scope="actor:ana", **more):
    return StoreMemory(key=key, text=text, scope=scope, origin=MemoryOrigin(author=author), ctx=ANA, **more)


async def listed(provider, *scopes):
    return await provider.list(ListMemories(scopes=scopes or SCOPES, ctx=ANA))


async def searched(provider, query, *, limit=None, scopes=SCOPES):
    found = await provider.search(SearchMemories(scopes=scopes, query=query, limit=limit, ctx=ANA))
    return [record.key for record in found]


def test_without_recall_it_does_not_claim_to_search():
    provider = InMemoryMemoryProvider()

    assert can_write(provider)
    assert can_pin(provider)
    assert guards_writes(provider)
    assert not can_search(provider)
    assert not isinstance(provider, SearchableMemoryProvider)


def test_with_recall_it_claims_to_search():
    assert can_search(InMemoryMemoryProvider(recall=True))
    assert isinstance(InMemoryMemoryProvider(True), SearchableMemoryProvider)


async def test_records_given_at_the_start_are_on_file_as_they_are():
    seeds = [fact("units", "kilometres", pinned=True), fact("units", "miles", scope="global", author="human")]

    provider = InMemoryMemoryProvider(records=seeds)
    seeds.clear()

    assert [record.text for record in await listed(provider)] == ["kilometres", "miles"]
    assert (await listed(provider, "actor:ana"))[0].pinned


def test_two_starting_records_at_one_scope_and_key_are_an_error():
    with pytest.raises(ValueError, match="one key at one scope"):
        InMemoryMemoryProvider(records=[fact("Fiscal Year"), fact("fiscal_year")])


async def test_its_times_are_the_clocks_in_utc():
    # given a clock in Kathmandu
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    provider = InMemoryMemoryProvider(clock=lambda: NOON.astimezone(kathmandu))

    # when a fact is written
    record = await provider.write(note())

    # then its time is the same instant, told in UTC
    assert record.updated_at == NOON
    assert record.updated_at.tzinfo is UTC


async def test_a_clock_without_a_zone_is_an_error_and_nothing_is_kept():
    provider = InMemoryMemoryProvider(clock=lambda: datetime(2026, 9, 1))  # noqa: DTZ001  # the mistake under test

    with pytest.raises(ValueError, match="without a zone"):
        await provider.write(note())

    assert await listed(provider) == []


async def test_a_rewrite_moves_the_time_and_the_same_text_does_not():
    # given a clock that goes on by a minute whenever it is read
    ticks = iter(range(100))
    provider = InMemoryMemoryProvider(clock=lambda: NOON + timedelta(minutes=next(ticks)))

    first = await provider.write(note(text="kilometres"))
    same = await provider.write(note(text="kilometres"))
    changed = await provider.write(note(text="miles"))
    taken_over = await provider.write(note(text="miles", author="human"))

    assert (first.updated_at, same.updated_at) == (NOON, NOON)
    assert same.updated_at < changed.updated_at < taken_over.updated_at


async def test_a_write_is_not_interrupted_between_reading_and_writing():
    # given a hundred tasks that each write, forget and write again at one key
    provider = InMemoryMemoryProvider()

    async def churn(number):
        record = await provider.write(note(text=f"answer {number}"))
        await provider.forget(ForgetMemory(id=record.id, ctx=ANA))
        await provider.write(note(text=f"answer {number}", idempotency_key=f"last {number}"))

    await asyncio.gather(*(churn(number) for number in range(100)))

    assert len(await listed(provider)) == 1


async def test_a_search_without_a_match_answers_in_plain_order():
    provider = InMemoryMemoryProvider(
        recall=True,
        records=[
            fact("wide and new", "a", scope="global", minutes=9),
            fact("narrow and old", "b", minutes=1),
            fact("narrow and new", "c", minutes=2),
            fact("narrow and new too", "d", minutes=2),
        ],
    )

    for query in ("nothing of the kind", "?!"):
        assert await searched(provider, query, limit=3) == ["narrow and new", "narrow and new too", "narrow and old"]


async def test_what_matches_leads_and_the_rest_fills_up():
    provider = InMemoryMemoryProvider(
        recall=True,
        records=[fact("units", "kilometres"), fact("labels", "a pallet gets a blue label", scope="global")],
    )

    assert await searched(provider, "PALLET", limit=2) == ["labels", "units"]
    assert await searched(provider, "PALLET", limit=1) == ["labels"]
    assert await searched(provider, "PALLET", limit=0) == []


async def test_a_rare_word_counts_more_than_two_common_ones():
    common = [fact(f"rule {number}", "we ship on a weekday") for number in range(10)]
    provider = InMemoryMemoryProvider(recall=True, records=[*common, fact("labels", "pallets: blue", minutes=-9)])

    assert await searched(provider, "pallets on weekdays, a weekday?", limit=1) == ["labels"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("STRASSE", "Straße 5"),
        ("cafe", "the cafe\u0301"),
        ("Łódź", "łódź depot"),
        ("depot.", "(depot)"),
        ("３", "bay 3"),
        ("税", "税務署"),
        ("請求先はどこ", "請求先"),
        ("ガソリン", "ｶﾞｿﾘﾝ代"),
        ("กรุงเทพ", "ไปกรุงเทพวันนี้"),
        ("कानपुर", "कानपुर में"),
        ("서울", "서울에서"),
        ("ναύλος", "ΝΑΥΛΟΣ"),
    ],
)
async def test_the_same_word_in_another_form_is_the_same_word(query, text):
    provider = InMemoryMemoryProvider(
        recall=True, records=[fact("x", text, minutes=-9), fact("y", "nothing of the kind")]
    )

    assert await searched(provider, query, limit=1) == ["x"]


@pytest.mark.parametrize(("query", "text"), [("か", "が"), ("เก", "เข"), ("C1", "C2"), ("請求", "請負")])
async def test_another_word_is_another_word(query, text):
    provider = InMemoryMemoryProvider(
        recall=True, records=[fact("x", text, minutes=-9), fact("y", "nothing of the kind")]
    )

    assert await searched(provider, query, limit=1) == ["y"]


async def test_a_pinned_match_has_its_place_among_the_matches():
    provider = InMemoryMemoryProvider(
        recall=True,
        records=[
            fact("weak", "a pallet"),
            fact("pinned match", "a pallet label", pinned=True, scope="global"),
            fact("pinned stray", "two signatures", pinned=True),
            fact("none", "kilometres"),
        ],
    )

    assert await searched(provider, "pallet label", limit=2) == ["pinned match", "weak", "none", "pinned stray"]


@given(texts=st.lists(st.text(max_size=30), max_size=6), query=st.text(max_size=30), limit=st.integers(0, 4))
def test_no_text_is_too_odd_to_be_searched(texts, query, limit):
    seeds = [fact(f"key {number}", text) for number, text in enumerate(texts)]
    provider = InMemoryMemoryProvider(recall=True, records=seeds)

    found = asyncio.run(searched(provider, query, limit=limit))

    assert len(found) == min(limit, len(texts))


@given(text=st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12))
def test_a_text_is_found_by_itself_however_it_is_typed(text):
    for form in (
        text,
        text.upper(),
        text.casefold(),
        unicodedata.normalize("NFD", text),
        unicodedata.normalize("NFKC", text),
    ):
        assert query_words(form) <= fact_words(form)
        assert query_words(unicodedata.normalize("NFC", form)) == query_words(unicodedata.normalize("NFD", form))
    assert query_words(text) == query_words(text.casefold()) == query_words(unicodedata.normalize("NFKC", text))


async def test_a_write_at_a_blank_scope_is_refused_in_words():
    provider = InMemoryMemoryProvider()

    for scope in ("", " \t"):
        with pytest.raises(WriteRefused) as refused:
            await provider.write(note(scope=scope, author="human"))
        assert "blank" in refused.value.reason


def test_importing_it_brings_no_database_no_validation_and_no_test_runner():
    loaded = (
        "import sys, onfile.testing; print(sorted({'sqlalchemy', 'pydantic', 'pytest', 'numpy'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
