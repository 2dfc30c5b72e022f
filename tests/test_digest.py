"""The digest: precedence, pins, selection and order, for any records in any order."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta, timezone

import pytest

from onfile import DigestEntry, MemoryDigest, OverriddenMemory, ScopeError, fold_key, resolve_memory_digest
from tests.facts import NOON, fact
from tests.strategies import SCOPES


def resolve(*facts, scopes=SCOPES, **options) -> MemoryDigest:
    return resolve_memory_digest(records=facts, scopes=scopes, **options)


def texts(digest: MemoryDigest) -> list[str]:
    return [entry.text for entry in digest.entries]


def keys(digest: MemoryDigest) -> list[str]:
    return [entry.key for entry in digest.entries]


# Scopes


@pytest.mark.parametrize(
    "scope",
    [
        "tenant:acme-corp",
        "tenant:ACME",
        "tenant:acm",
        "tenant:acme ",
        " tenant:acme",
        "tenant:%",
        "tenant_acme",
        "*",
        "",
        "tenant:acme\x00",
        "tenant:ａcme",
    ],
)
def test_a_record_at_a_scope_outside_is_dropped_whatever_the_provider_says(scope: str):
    digest = resolve(fact(scope=scope), fact(key="depot", text="Kiel", scope="tenant:acme"), scopes=["tenant:acme"])

    assert texts(digest) == ["Kiel"]
    assert digest.omitted == 0


@pytest.mark.parametrize("scope", ["tenant:%", "actor:user_1", "actor:*", "tenant:[a]", "tenant:a.b"])
def test_no_character_in_a_scope_is_a_pattern(scope: str):
    assert (
        resolve(fact(scope="tenant:acme"), fact(scope="actor:userX1"), fact(scope="tenant:a"), scopes=[scope]).entries
        == ()
    )
    assert texts(resolve(fact(scope=scope), scopes=[scope])) == ["kilometres"]


@pytest.mark.parametrize("blank", ["", "  "])
def test_a_record_without_a_scope_is_visible_nowhere(blank: str):
    assert resolve(fact(scope=blank), scopes=[blank, "global"]).entries == ()


def test_no_scopes_see_nothing():
    assert resolve(fact(), scopes=[]).entries == ()


def test_a_bare_string_is_no_list_of_scopes():
    with pytest.raises(ScopeError):
        resolve(fact(), scopes="global")


def test_the_digest_records_the_scopes_in_order_and_each_once():
    assert resolve(scopes=["b", "a", "b"]).scopes == ("b", "a")


# Precedence


def test_the_most_specific_scope_wins_and_the_others_ride_along_widest_last():
    digest = resolve(
        fact(text="in stone", scope="global", author="human", id="g"),
        fact(text="in pallets", scope="tenant:acme", id="t"),
        fact(text="in tonnes", scope="actor:ana", id="a"),
        fact(text="in crates", scope="depot:north", author="human", id="d"),
    )

    (entry,) = digest.entries
    assert (entry.id, entry.text, entry.scope) == ("a", "in tonnes", "actor:ana")
    assert entry.overrides == (
        OverriddenMemory(id="d", scope="depot:north", text="in crates", author="human"),
        OverriddenMemory(id="t", scope="tenant:acme", text="in pallets", author="agent"),
        OverriddenMemory(id="g", scope="global", text="in stone", author="human"),
    )


def test_the_order_of_the_scopes_is_the_whole_of_precedence():
    facts = fact(text="mine"), fact(text="everyone's", scope="global", author="human", minutes=9, pinned=True)

    assert texts(resolve(*facts, scopes=["actor:ana", "global"])) == ["mine"]
    assert texts(resolve(*facts, scopes=["global", "actor:ana"])) == ["everyone's"]


def test_a_scope_that_is_listed_twice_counts_at_its_first_place():
    facts = fact(text="mine"), fact(text="everyone's", scope="global")

    assert texts(resolve(*facts, scopes=["actor:ana", "global", "actor:ana"])) == ["mine"]
    assert texts(resolve(*facts, scopes=["global", "actor:ana", "global"])) == ["everyone's"]


def test_an_entry_that_beat_nothing_has_an_empty_tuple_of_overrides():
    assert resolve(fact()).entries[0].overrides == ()


def test_an_entry_carries_everything_of_its_record():
    record = fact(author="human", pinned=True)

    (entry,) = resolve(record).entries

    assert isinstance(entry, DigestEntry)
    assert {f.name: getattr(entry, f.name) for f in dataclasses.fields(record)} == {
        f.name: getattr(record, f.name) for f in dataclasses.fields(record)
    }


def test_spellings_of_one_key_are_one_question_shown_as_the_winner_spells_it():
    digest = resolve(fact("Fiscal Year", scope="global", text="October"), fact("fiscal_year", text="January"))

    (entry,) = digest.entries
    assert (entry.key, entry.text) == ("fiscal_year", "January")
    assert [beaten.text for beaten in entry.overrides] == ["October"]


def test_keys_in_a_script_without_case_stay_apart():
    assert len(resolve(fact("請求先"), fact("会計年度")).entries) == 2


def test_of_two_records_at_one_scope_and_key_the_newest_wins_and_the_other_is_dropped():
    (entry,) = resolve(fact(text="old", minutes=1), fact(text="new", minutes=2), fact(text="older")).entries

    assert entry.text == "new"
    assert entry.overrides == ()


def test_of_two_records_of_one_date_the_greater_id_wins():
    assert texts(resolve(fact(text="b", id="b"), fact(text="a", id="a"))) == ["b"]
    assert texts(resolve(fact(text="a", id="a"), fact(text="b", id="b"))) == ["b"]


def test_two_rows_that_a_provider_gave_one_id_and_date_settle_alike_whichever_arrives_first():
    for changed in ({"text": "b"}, {"key": "UNITS"}, {"author": "human"}):
        one, other = fact(id="x"), fact(**({"id": "x"} | changed))

        assert resolve(one, other) == resolve(other, one)


def test_dates_are_compared_as_instants_whatever_their_zone():
    there = timezone(timedelta(hours=2))
    early = dataclasses.replace(fact(text="early"), updated_at=datetime(2026, 9, 1, 13, 59, tzinfo=there))
    late = fact(text="late")  # noon in UTC is two hours later there

    assert texts(resolve(late, early)) == texts(resolve(early, late)) == ["late"]


def test_a_naive_time_of_a_foreign_provider_is_read_as_utc_and_crashes_nothing():
    naive = dataclasses.replace(fact(text="naive"), updated_at=(NOON + timedelta(minutes=1)).replace(tzinfo=None))

    (entry,) = resolve(fact(text="aware"), naive).entries

    assert entry.text == "naive"
    assert entry.updated_at == NOON + timedelta(minutes=1)


def test_a_microsecond_decides_even_in_a_far_year():
    far = datetime(7026, 1, 1, tzinfo=UTC)
    old = dataclasses.replace(fact(text="old", id="z"), updated_at=far)
    new = dataclasses.replace(fact(text="new", id="a"), updated_at=far + timedelta(microseconds=1))

    assert texts(resolve(old, new)) == ["new"]


def test_of_beaten_records_at_one_scope_only_the_newest_rides_along():
    (entry,) = resolve(fact(), fact(text="old", scope="global"), fact(text="new", scope="global", minutes=1)).entries

    assert [beaten.text for beaten in entry.overrides] == ["new"]


# Pins


def test_a_pin_belongs_to_the_question_so_a_beaten_record_pins_the_entry():
    (entry,) = resolve(fact(), fact(scope="global", pinned=True)).entries

    assert (entry.scope, entry.pinned) == ("actor:ana", True)


def test_a_pin_of_a_dropped_record_still_counts():
    (entry,) = resolve(fact(text="old", pinned=True), fact(text="new", minutes=1)).entries

    assert (entry.text, entry.pinned) == ("new", True)


def test_a_pin_at_a_scope_outside_does_not_count():
    assert not resolve(fact(), fact(scope="actor:bob", pinned=True)).entries[0].pinned


# Selection


def test_the_ceiling_is_twenty_keys_by_default():
    digest = resolve(*(fact(f"key {number}") for number in range(23)))

    assert (len(digest.entries), digest.omitted, digest.pinned_omitted) == (20, 3, 0)


def test_the_ceiling_counts_keys_and_not_records():
    facts = [fact(key, scope=scope) for key in ("a", "b", "c") for scope in SCOPES]

    digest = resolve(*facts, max_memories=2)

    assert (keys(digest), digest.omitted) == (["a", "b"], 1)
    assert all(len(entry.overrides) == 3 for entry in digest.entries)


def test_without_a_ceiling_everything_is_in():
    digest = resolve(*(fact(f"key {number}") for number in range(50)), max_memories=None)

    assert (len(digest.entries), digest.omitted) == (50, 0)


def test_under_a_ceiling_of_nothing_everything_is_omitted():
    digest = resolve(fact("a", pinned=True), fact("b"), max_memories=0)

    assert (digest.entries, digest.omitted, digest.pinned_omitted) == ((), 2, 1)


def test_a_negative_ceiling_is_an_error():
    with pytest.raises(ValueError, match="max_memories"):
        resolve(max_memories=-1)


@pytest.mark.parametrize("ranked", [False, True])
def test_pinned_entries_are_selected_first_also_when_ranked(ranked: bool):
    digest = resolve(
        fact("a", minutes=9),
        fact("b", minutes=8),
        fact("policy", scope="global", pinned=True),
        max_memories=2,
        ranked=ranked,
    )

    assert keys(digest) == ["policy", "a"]


def test_among_pinned_entries_the_narrowest_then_the_newest_then_the_key_is_selected():
    wide = fact("wide", scope="global", minutes=9, pinned=True)
    old, new = fact("old", pinned=True), fact("new", minutes=1, pinned=True)
    b, a = fact("B", minutes=1, pinned=True), fact("a", minutes=1, pinned=True)

    def selected(*facts, ceiling: int) -> set[str]:
        return set(keys(resolve(*facts, max_memories=ceiling, ranked=True)))

    assert selected(wide, old, ceiling=1) == {"old"}
    assert selected(old, new, ceiling=1) == {"new"}
    assert selected(b, a, ceiling=1) == {"a"}
    assert selected(wide, old, new, b, a, ceiling=3) == {"new", "a", "B"}


def test_the_rest_is_selected_by_the_narrowest_then_the_newest_then_the_key():
    wide, old = fact("wide", scope="global", minutes=9), fact("old")
    new, b, a = fact("new", minutes=1), fact("B", minutes=1), fact("a", minutes=1)

    assert keys(resolve(wide, old, max_memories=1)) == ["old"]
    assert keys(resolve(old, new, max_memories=1)) == ["new"]
    assert keys(resolve(b, a, max_memories=1)) == ["a"]


def test_when_ranked_the_rest_is_selected_by_arrival_and_not_by_scope_or_date():
    digest = resolve(
        fact("best", scope="global"),
        fact("second", scope="tenant:acme"),
        fact("last", minutes=9),
        max_memories=2,
        ranked=True,
    )

    assert set(keys(digest)) == {"best", "second"}


def test_when_ranked_a_group_is_placed_by_its_best_record():
    digest = resolve(fact("a", scope="global"), fact("b"), fact("c"), fact("A"), max_memories=1, ranked=True)

    (entry,) = digest.entries
    assert (entry.key, entry.scope) == ("A", "actor:ana")


def test_the_better_rank_of_a_dropped_record_still_counts():
    digest = resolve(fact("a", text="old"), fact("b"), fact("a", text="new", minutes=1), max_memories=1, ranked=True)

    assert texts(digest) == ["new"]


def test_pinned_entries_that_found_no_room_are_counted():
    digest = resolve(*(fact(f"policy {number}", pinned=True) for number in range(5)), fact("other"), max_memories=3)

    assert (len(digest.entries), digest.omitted, digest.pinned_omitted) == (3, 3, 2)


def test_a_digest_is_recalled_when_its_records_came_from_a_search():
    assert resolve(fact(), ranked=True).recalled
    assert not resolve(fact()).recalled


# Order


def test_the_order_is_pinned_first_then_scope_then_key():
    digest = resolve(
        fact("b", scope="global"),
        fact("d"),
        fact("c", scope="global", pinned=True),
        fact("a", scope="tenant:acme"),
        fact("e", pinned=True),
        fact("a2", scope="tenant:acme"),
    )

    assert keys(digest) == ["e", "c", "d", "a", "a2", "b"]


def test_keys_are_ordered_by_folded_identity_and_code_point():
    digest = resolve(*(fact(key) for key in ["é", "z", "Ä", "請求先", "B", "a", "10", "9", "_c"]))

    assert keys(digest) == sorted(keys(digest), key=fold_key) == ["10", "9", "a", "B", "_c", "z", "Ä", "é", "請求先"]


@pytest.mark.parametrize("ranked", [False, True])
def test_neither_recency_nor_rank_orders_what_is_rendered(ranked: bool):
    facts = [fact("a", minutes=1), fact("b", minutes=3), fact("c", minutes=2)]

    assert keys(resolve(*reversed(facts), ranked=ranked)) == keys(resolve(*facts, ranked=ranked)) == ["a", "b", "c"]


def test_a_correction_does_not_reshuffle():
    before = [fact("a"), fact("b"), fact("c", scope="global")]
    after = [before[0], fact("b", text="corrected", minutes=9), before[2]]

    assert keys(resolve(*before)) == keys(resolve(*after))


def test_a_digest_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        resolve(fact()).omitted = 1
