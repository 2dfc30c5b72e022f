"""The door as people meet it: reading back, forgetting, publishing and pinning over any provider."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given

from onfile import (
    DigestEntry,
    ListMemories,
    Memory,
    MemoryOrigin,
)
from onfile.testing import InMemoryMemoryProvider
from tests.facts import fact
from tests.providers import Leaky, ListOnly, Searchable, Writable
from tests.strategies import any_text
from tests.turns import ANA, BOB, over_both, remember, standing

# Reading back


async def test_a_person_reads_back_every_entry_whatever_the_ceiling_and_never_searched():
    provider = Searchable(*(fact(f"key {n:03}") for n in range(301)))

    entries = await Memory(provider, max_memories=2).read_back(ANA)

    assert len(entries) == 301
    assert all(isinstance(entry, DigestEntry) for entry in entries)
    assert isinstance(provider.asked[0], ListMemories)


async def test_reading_back_names_the_same_winner_as_the_block():
    memory = Memory(ListOnly(fact(text="mine"), fact(text="everyone's", scope="global", author="human")))

    assert await memory.read_back(ANA) == (await memory.offer(ANA)).entries


# Forgetting


async def test_a_persons_own_is_forgotten():
    memory = Memory(ListOnly(fact(id="mine"), fact("other", id="other")))

    outcome = await memory.forget("mine", ANA)

    assert (outcome.status, outcome.ok, outcome.reason) == ("forgotten", True, "")
    assert [key for _, key, _ in await standing(memory)] == ["other"]


async def test_what_a_person_stated_about_themselves_can_be_forgotten_too():
    assert (await Memory(ListOnly(fact(id="mine", author="human", pinned=True))).forget("mine", ANA)).ok


async def test_a_wider_one_is_forbidden_with_the_reason_as_winner_and_as_beaten_value():
    provider = ListOnly(fact(id="mine"), fact(id="beaten", scope="tenant:acme"), fact("a", id="winner", scope="global"))
    memory = Memory(provider)

    for wide, scope in (("beaten", "[tenant:acme]"), ("winner", "[global]")):
        outcome = await memory.forget(wide, ANA)
        assert (outcome.status, outcome.ok) == ("forbidden", False)
        assert scope in outcome.reason
        assert wide not in outcome.reason
    assert len(provider.records) == 3


async def test_an_id_the_actor_cannot_see_is_missing_exactly_as_an_unknown_one_is():
    provider = Leaky(fact(id="anas"))

    unseen = await Memory(provider).forget("anas", BOB)

    assert unseen.status == "not_found"
    assert unseen == await Memory(provider).forget("unknown", BOB)
    assert len(provider.records) == 1


@given(any_text)
async def test_any_text_is_a_legal_id_that_nothing_has(id: str):
    assert (await Memory(ListOnly(fact(id="mem_1 of its own"))).forget(id, ANA)).status == "not_found"


async def test_forgetting_twice_says_missing_the_second_time():
    memory = Memory(ListOnly(fact(id="mine")))

    assert [(await memory.forget("mine", ANA)).status for _ in range(2)] == ["forgotten", "not_found"]


async def test_one_that_goes_while_it_is_being_forgotten_is_missing():
    class Racing(ListOnly):
        async def forget(self, request) -> bool:
            return False

    assert (await Memory(Racing(fact(id="mine"))).forget("mine", ANA)).status == "not_found"


async def test_forgetting_ana_leaves_bob_whole():
    provider = InMemoryMemoryProvider(records=[fact(id="a"), fact(id="b", scope="actor:bob")])
    memory = Memory(provider)

    await memory.forget("a", ANA)
    await memory.forget("b", ANA)

    assert await standing(memory, BOB) == [("actor:bob", "units", "kilometres")]


# Publishing and pinning


@over_both
async def test_a_person_writes_at_their_own_scope_without_anybodys_permission(provide):
    memory = Memory(provide())

    outcome = await memory.publish(scope="actor:ana", key=" units ", text="miles\n", ctx=ANA)

    assert (outcome.ok, outcome.error, outcome.record.key, outcome.record.text) == (True, None, "units", "miles")
    assert outcome.record.origin == MemoryOrigin(author="human", thread_id="t1", actor_ref="ana")


@over_both
async def test_a_person_writes_wider_only_where_the_host_says_so(provide):
    memory = Memory(provide())

    refused = await memory.publish(scope="tenant:acme", key="units", text="miles", ctx=ANA)
    kept = await memory.publish(scope="tenant:acme", key="units", text="miles", ctx=ANA, elevated=True)

    assert (refused.ok, refused.record, kept.ok) == (False, None, True)
    assert "[tenant:acme]" in refused.error
    assert await standing(memory, BOB) == [("tenant:acme", "units", "miles")]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"key": None}, "key must"),
        ({"key": b"k"}, "key must"),
        ({"text": 7}, "fact must"),
        ({"scope": None}, "scope must"),
    ],
    ids=repr,
)
async def test_what_is_no_text_is_refused_in_words(wrong: dict, words: str):
    provider = Writable()

    outcome = await Memory(provider).publish(**{"scope": "actor:ana", "key": "k", "text": "t", "ctx": ANA} | wrong)

    assert (outcome.ok, provider.writes) == (False, [])
    assert words in outcome.error


@pytest.mark.parametrize(("key", "text"), [("-", "x"), ("k", " "), ("k" * 65, "x"), ("k", "\ud800")])
async def test_whatever_a_person_is_refused_names_the_scope(key: str, text: str):
    outcome = await Memory(Writable()).publish(scope="global", key=key, text=text, ctx=ANA, elevated=True)

    assert outcome.error.endswith("Nothing was kept at [global].")


@pytest.mark.parametrize("scope", ["tenant:other", "actor:bob", "", "tenant:ACME", "actor:ana "])
async def test_nobody_publishes_outside_their_scopes_however_elevated(scope: str):
    provider = Writable()

    outcome = await Memory(provider).publish(scope=scope, key="units", text="km", ctx=ANA, elevated=True)

    assert not outcome.ok
    assert provider.writes == []


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("-", "x", "blank"),
        ("k", " ", "blank"),
        ("k", "\x00", "NUL"),
        ("\ud800", "x", "surrogate"),
        ("k" * 65, "x", "64"),
        ("k", "x" * 241, "240"),
    ],
    ids=ascii,
)
async def test_the_limits_hold_for_people_as_well(key: str, text: str, words: str):
    provider = Writable()

    outcome = await Memory(provider).publish(scope="actor:ana", key=key, text=text, ctx=ANA)

    assert words in outcome.error
    assert provider.writes == []


@over_both
async def test_a_person_replaces_what_stands_whoever_wrote_it(provide):
    for author in ("agent", "human"):
        memory = Memory(provide(fact(author=author)))

        outcome = await memory.publish(scope="actor:ana", key="units", text="miles", ctx=ANA)

        assert (outcome.ok, outcome.unchanged, outcome.replaced) == (True, False, "kilometres")
        assert outcome.record.origin.author == "human"


@over_both
async def test_the_same_text_again_in_a_persons_name_is_unchanged(provide):
    before = fact(author="human")
    memory = Memory(provide(before))

    outcome = await memory.publish(scope="actor:ana", key="Units", text="kilometres", ctx=ANA)

    assert (outcome.ok, outcome.unchanged, outcome.replaced, outcome.record) == (True, True, None, before)


@over_both
async def test_a_person_who_states_what_the_model_noted_makes_it_their_own_and_replaces_no_text(provide):
    memory = Memory(provide(fact()))

    outcome = await memory.publish(scope="actor:ana", key="units", text="kilometres", ctx=ANA)

    assert (outcome.ok, outcome.unchanged, outcome.replaced) == (True, False, None)
    assert outcome.record.origin.author == "human"
    assert not (await remember(memory, {"key": "units", "fact": "miles"})).ok


async def test_a_read_only_provider_publishes_nothing():
    assert "read-only" in (await Memory(ListOnly()).publish(scope="actor:ana", key="a", text="b", ctx=ANA)).error


async def test_a_person_pins_their_own_without_moving_its_date():
    before = fact(id="mine")
    memory = Memory(InMemoryMemoryProvider(records=[before]))

    outcome = await memory.pin("mine", pinned=True, ctx=ANA)

    assert (outcome.ok, outcome.unchanged) == (True, False)
    assert outcome.record == dataclasses.replace(before, pinned=True)
    (entry,) = await memory.read_back(ANA)
    assert (entry.pinned, entry.updated_at) == (True, before.updated_at)
    assert (await memory.pin("mine", pinned=True, ctx=ANA)).unchanged
    assert (await memory.pin("mine", pinned=False, ctx=ANA)).record == before


async def test_a_pin_is_judged_as_a_write_is():
    memory = Memory(
        InMemoryMemoryProvider(records=[fact(id="wide", scope="tenant:acme"), fact(id="bobs", scope="actor:bob")])
    )

    refused = await memory.pin("wide", pinned=True, ctx=ANA)

    assert not refused.ok
    assert "[tenant:acme]" in refused.error
    assert (await memory.pin("wide", pinned=True, ctx=ANA, elevated=True)).ok
    unseen = await memory.pin("bobs", pinned=True, ctx=ANA, elevated=True)
    assert unseen == await memory.pin("unknown", pinned=True, ctx=ANA, elevated=True)
    assert not unseen.ok


async def test_a_provider_that_cannot_pin_says_so():
    assert "cannot pin" in (await Memory(Writable(fact(id="mine"))).pin("mine", pinned=True, ctx=ANA)).error
