"""Clauses about `search`: only the scopes asked for, the best keys, and each of them whole."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

from ..keys import fold_key
from ..provider import SearchableMemoryProvider
from ..records import MemoryRecord
from ..scopes import GLOBAL_SCOPE
from .acts import (
    ACME,
    ANNS,
    ANNS_SCOPES,
    BOB,
    BOBS,
    NO_STORE_KEEPS,
    PinnedAndSearched,
    Searched,
    agent_notes,
    forgotten,
    is_aware_utc,
    listed,
    person_states,
    searched,
)
from .clause import Clause, clause, expect

CLAUSES: list[Clause] = []

_STRAY = (
    ("billing address", "invoices go to the Rotterdam office"),
    ("currency", "amounts are quoted in euro"),
    ("fiscal year", "the books close in October"),
    ("language", "letters are written in Dutch"),
    ("carrier", "parcels travel with a courier from Utrecht"),
)
"""Facts without one word in common with a query of these clauses."""
_ODD_QUERIES = (
    *(
        "?",
        "!!! ...",
        "'",
        '"',
        "`",
        '"unbalanced',
        "a' OR '1'='1",
        "%",
        "_",
        "*",
        "pallet*",
        "^pallet",
        "NEAR(",
        "NEAR(a b, 2)",
    ),
    *(
        "AND",
        "OR",
        "NOT",
        "a AND",
        "-pallet",
        "+",
        "key:pallet",
        "text : pallet",
        "(",
        ")",
        "[]",
        "{}",
        "\\",
        "a\\",
        "||",
        "<->",
    ),
    *(
        "\U0001f69a",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "\u200b",
        "\u00a0.",
        "\u0301",
        "、。？",
        "SELECT 1; --",
        ":param",
        "$1",
    ),
    *("x" * 10_000, "pallet " * 2_000),
)


@clause(CLAUSES, "search", needs=())
async def _a_search_of_what_holds_nothing_finds_nothing(provider: SearchableMemoryProvider) -> None:
    for scopes in ((), ("onfile-contract:a scope that nobody uses",), NO_STORE_KEEPS, ("long " + "x" * 300,)):
        records = await searched(provider, "pallet", *scopes, limit=5)
        expect(not records, f"search found {len(records)} records where there are none")


@clause(CLAUSES, "search", needs=())
async def _a_query_of_any_text_raises_nothing(provider: SearchableMemoryProvider) -> None:
    for query in (*_ODD_QUERIES, *NO_STORE_KEEPS):
        await searched(provider, query, *ANNS_SCOPES, limit=3)


@clause(CLAUSES, "search")
async def _the_fact_with_the_querys_words_leads(provider: Searched) -> None:
    await _plant_strays(provider)
    await agent_notes(provider, "labels", "every pallet gets a blue label")
    await _expect_first(provider, "how do we mark a pallet?", "labels")


@clause(CLAUSES, "search")
async def _a_fact_is_found_by_its_key(provider: Searched) -> None:
    await agent_notes(provider, "pallet-label", "blue, on the short side")
    await _plant_strays(provider)
    await _expect_first(provider, "which label", "pallet-label")


@clause(CLAUSES, "search")
async def _the_fact_with_more_of_the_querys_words_leads(provider: Searched) -> None:
    await agent_notes(provider, "frozen", "a frozen pallet travels overnight to Bergen")
    await agent_notes(provider, "labels", "every pallet gets a blue label")
    await _plant_strays(provider)
    await _expect_first(provider, "frozen pallet overnight Bergen", "frozen")


@clause(CLAUSES, "search")
async def _case_never_matters_to_a_match(provider: Searched) -> None:
    await agent_notes(provider, "depot", "the depot stands in \u00c5lesund by the STRASSENBAHN")
    await _plant_strays(provider)
    for query in ("\u00e5lesund", "\u00c5LESUND", "strassenbahn", "Stra\u00dfenbahn", "DEPOT"):
        await _expect_first(provider, query, "depot")


@clause(CLAUSES, "search")
async def _unicode_form_never_matters_to_a_match(provider: Searched) -> None:
    await agent_notes(provider, "composed", "meet at the caf\u00e9 by the harbour")
    await agent_notes(provider, "taken apart", "bring the re\u0301sume\u0301 along")
    await agent_notes(provider, "full width", "the code is \uff21\uff22\uff237")
    await agent_notes(provider, "half width", "\uff76\uff9e\uff7f\uff98\uff9d is refunded")
    await _plant_strays(provider)
    for query, key in (
        ("cafe\u0301", "composed"),
        ("r\u00e9sum\u00e9", "taken apart"),
        ("abc7", "full width"),
        ("\u30ac\u30bd\u30ea\u30f3", "half width"),
    ):
        await _expect_first(provider, query, key)


@clause(CLAUSES, "search")
async def _scripts_without_spaces_are_found_inside_a_sentence(provider: Searched) -> None:
    for key, text in (
        ("請求先", "東京本社の経理部"),
        ("会計年度", "四月に始まる"),
        ("仓库", "北京的仓库周末关门"),
        ("ที่อยู่", "ส่งสินค้าไปกรุงเทพ"),
    ):
        await agent_notes(provider, key, text)
    await _plant_strays(provider)
    for query, key in (
        ("請求先はどこ", "請求先"),
        ("会計年度はいつ始まる？", "会計年度"),
        ("周末关门吗", "仓库"),
        ("กรุงเทพ", "ที่อยู่"),
    ):
        await _expect_first(provider, query, key)


@clause(CLAUSES, "search")
async def _search_filters_to_the_scopes_before_it_ranks(provider: Searched) -> None:
    await agent_notes(provider, "weight", "a pallet weighs 20 kg")
    for number in range(30):
        await agent_notes(provider, f"pallet label {number}", "pallet label pallet label", actor=BOB)
    for limit in (1, 3):
        found = await searched(provider, "pallet label", ANNS, limit=limit)
        expect(
            all(record.scope == ANNS for record in found), "search answered a record at a scope that was not asked for"
        )
        expect(
            [record.key for record in found] == ["weight"], "another scope's better matches took the places of ann's"
        )


@clause(CLAUSES, "search")
async def _search_compares_scopes_byte_for_byte(provider: Searched) -> None:
    near = ("actor:ann ", "actor:Ann", "actor:annabel", "actor:an_", "actor:%", "actor:")
    for scope in near:
        await person_states(provider, "pallet", "a pallet gets a label", scope=scope)
    for asked in (ANNS, "actor:an%", "actor:*", "", "%"):
        found = await searched(provider, "pallet", asked, limit=None)
        expect(not found, f"asked for the scope {asked!a}, search answered {[record.scope for record in found]!a}")


@clause(CLAUSES, "search")
async def _one_key_at_three_scopes_takes_one_place_and_comes_whole(provider: Searched) -> None:
    for scope, spelling in ((ANNS, "Pallet Label"), (ACME, "pallet-label"), (GLOBAL_SCOPE, "PALLET_LABEL")):
        await person_states(provider, spelling, f"a pallet gets a label, says {scope}", scope=scope)
    await agent_notes(provider, "pallet", "is counted daily")
    await _plant_strays(provider)
    one = await searched(provider, "pallet label", *ANNS_SCOPES, limit=1)
    expect(_identities(one) == {"pallet-label"}, "the key that matches best was not the one key found")
    expect(len(one) == 3, f"a key is on file at three of the scopes, and {len(one)} of its records were returned")
    two = await searched(provider, "pallet label", *ANNS_SCOPES, limit=2)
    expect(_identities(two) == {"pallet-label", "pallet"}, "one key at three scopes took more than one place")


@clause(CLAUSES, "search")
async def _a_key_comes_whole_when_only_its_widest_record_matches(provider: Searched) -> None:
    await agent_notes(provider, "marking", "orange")
    await person_states(provider, "Marking", "every pallet gets a blue label", scope=GLOBAL_SCOPE)
    await _plant_strays(provider)
    found = await searched(provider, "pallet label", *ANNS_SCOPES, limit=1)
    expect(_identities(found) == {"marking"}, "the key whose wider record matches was not found")
    expect(len(found) == 2, "the narrower record that beats the match was not returned with it")


@clause(CLAUSES, "search")
async def _search_never_returns_more_unpinned_keys_than_the_limit(provider: Searched) -> None:
    for number in range(12):
        await agent_notes(provider, f"pallet {number}", f"pallet number {number} gets a label")
    for query in ("pallet label", "nothing of the kind", *_ODD_QUERIES):
        for limit in (1, 5):
            found = _identities(await searched(provider, query, *ANNS_SCOPES, limit=limit))
            expect(len(found) <= limit, f"search was asked for {limit} keys and returned {len(found)}")


@clause(CLAUSES, "search")
async def _without_a_limit_every_match_is_returned(provider: Searched) -> None:
    for number in range(60):
        await agent_notes(provider, f"pallet {number}", f"pallet number {number} gets a label")
    found = await searched(provider, "pallet", *ANNS_SCOPES, limit=None)
    expect(
        len(_identities(found)) == 60, f"60 keys match, there is no limit, and {len(_identities(found))} were returned"
    )


@clause(CLAUSES, "search")
async def _the_same_search_gives_the_same_answer_in_the_same_order(provider: Searched) -> None:
    for number in range(15):
        await agent_notes(provider, f"pallet {number}", "a pallet gets a label")
    first = await searched(provider, "pallet label", *ANNS_SCOPES, limit=7)
    for _ in range(2):
        again = await searched(provider, "pallet label", *ANNS_SCOPES, limit=7)
        expect(list(again) == list(first), "equally good matches came in another order the second time")


@clause(CLAUSES, "search")
async def _no_record_is_returned_twice(provider: Searched) -> None:
    for number in range(5):
        await agent_notes(provider, f"pallet {number}", "pallet, pallet and pallet")
    found = await searched(provider, "pallet pallet", ANNS, GLOBAL_SCOPE, ANNS, limit=None)
    expect(len(found) == len({record.id for record in found}), "search returned a record twice")


@clause(CLAUSES, "search")
async def _what_search_returns_is_what_is_on_file(provider: Searched) -> None:
    await agent_notes(provider, "Pallet Label", "blue, on the short side")
    found = await searched(provider, "pallet", ANNS, limit=1)
    expect(list(found) == list(await listed(provider, ANNS)), "search and list answer two different records")
    expect(
        all(is_aware_utc(record) for record in found), "search answered an updated_at that is not timezone-aware UTC"
    )
    if isinstance(found, MutableSequence):
        found.clear()
    again = await searched(provider, "pallet", ANNS, limit=1)
    expect(len(again) == 1, "the answer of search is the caller's to change, but emptying it emptied the store")


@clause(CLAUSES, "search")
async def _an_overwritten_text_is_not_found(provider: Searched) -> None:
    await agent_notes(provider, "marking", "zebra zebra stripes on the zebra pallet")
    await agent_notes(provider, "marking", "a plain orange dot")
    await agent_notes(provider, "animals", "no zebra travels by road")
    await _plant_strays(provider)
    found = await _expect_first(provider, "zebra stripes", "animals")
    expect(all("stripes" not in record.text for record in found), "search answered a text that was overwritten")
    await _expect_first(provider, "orange dot", "marking")


@clause(CLAUSES, "search")
async def _a_text_that_a_person_replaced_is_not_found(provider: Searched) -> None:
    await agent_notes(provider, "marking", "zebra zebra stripes on the zebra pallet")
    await person_states(provider, "Marking", "a plain orange dot", scope=ANNS)
    await agent_notes(provider, "animals", "no zebra travels by road")
    await _expect_first(provider, "zebra stripes", "animals")


@clause(CLAUSES, "search")
async def _a_forgotten_fact_is_not_found(provider: Searched) -> None:
    record = await agent_notes(provider, "marking", "zebra stripes on the pallet")
    await agent_notes(provider, "units", "kilometres")
    await forgotten(provider, record.id)
    for query in ("zebra stripes", "marking"):
        found = await searched(provider, query, *ANNS_SCOPES, limit=None)
        expect(all(other.id != record.id for other in found), "search returned a record that was forgotten")
    anew = await agent_notes(provider, "marking", "a plain orange dot")
    await agent_notes(provider, "animals", "no zebra travels by road")
    await _expect_first(provider, "zebra stripes", "animals")
    found = await searched(provider, "orange dot", *ANNS_SCOPES, limit=1)
    expect(
        [other.id for other in found[:1]] == [anew.id], "the new answer to a forgotten key was not found by its words"
    )


@clause(CLAUSES, "search", needs=("write", "pin"))
async def _a_pinned_record_is_returned_whatever_is_asked(provider: PinnedAndSearched) -> None:
    pinned = await person_states(provider, "policy", "refunds need two signatures", scope=GLOBAL_SCOPE)
    await provider.pin(id=pinned.id, pinned=True)
    for number in range(6):
        await agent_notes(provider, f"pallet {number}", "a pallet gets a label")
    for query in ("pallet label", "nothing of the kind", "?", "請求先はどこ"):
        found = await searched(provider, query, *ANNS_SCOPES, limit=2)
        expect(pinned.id in {record.id for record in found}, f"a pinned record is missing from the answer to {query!a}")
        expect(len(_identities(found) - {"policy"}) <= 2, "with a pinned key search returned more keys than the limit")
    found = await searched(provider, "pallet label", *ANNS_SCOPES, limit=2)
    expect(len(_identities(found) - {"policy"}) >= 1, "a pinned record without a match left no place for what matches")


@clause(CLAUSES, "search", needs=("write", "pin"))
async def _a_pinned_key_comes_with_all_its_records(provider: PinnedAndSearched) -> None:
    wide = await person_states(provider, "Refund Policy", "two signatures", scope=GLOBAL_SCOPE)
    narrow = await agent_notes(provider, "refund-policy", "one signature is enough for ann")
    await provider.pin(id=wide.id, pinned=True)
    await _plant_strays(provider)
    await agent_notes(provider, "labels", "every pallet gets a blue label")
    found = {record.id for record in await searched(provider, "pallet", *ANNS_SCOPES, limit=1)}
    expect(wide.id in found, "a pinned record is missing from the answer")
    expect(narrow.id in found, "a pinned record came without the narrower record of its key, which beats it")


@clause(CLAUSES, "search", needs=("write", "pin"))
async def _a_pinned_record_without_a_match_comes_last(provider: PinnedAndSearched) -> None:
    pinned = await person_states(provider, "policy", "refunds need two signatures", scope=GLOBAL_SCOPE)
    await provider.pin(id=pinned.id, pinned=True)
    await agent_notes(provider, "labels", "every pallet gets a blue label")
    found = await searched(provider, "pallet label", *ANNS_SCOPES, limit=3)
    expect(bool(found) and found[0].key == "labels", "a pinned record without a match came before the match")
    expect(found[-1].id == pinned.id, "a pinned record without a match did not come last")


@clause(CLAUSES, "search", needs=("write", "pin"))
async def _a_pin_at_a_scope_that_was_not_asked_for_stays_there(provider: PinnedAndSearched) -> None:
    theirs = await person_states(provider, "pallet", "a pallet gets a label", scope=BOBS)
    await provider.pin(id=theirs.id, pinned=True)
    await agent_notes(provider, "units", "kilometres")
    found = await searched(provider, "pallet label", *ANNS_SCOPES, limit=None)
    expect(all(record.scope in ANNS_SCOPES for record in found), "search returned another person's pinned record")


async def _plant_strays(provider: Searched) -> None:
    for key, text in _STRAY:
        await agent_notes(provider, key, text)


async def _expect_first(provider: Searched, query: str, key: str) -> list[MemoryRecord]:
    found = list(await searched(provider, query, *ANNS_SCOPES, limit=1))
    leads = [record.key for record in found[:1]]
    expect(leads == [key], f"asked {query!r}, search put {leads!r} first; the fact that matches is {key!r}")
    return found


def _identities(records: Sequence[MemoryRecord]) -> set[str]:
    return {fold_key(record.key) for record in records}
