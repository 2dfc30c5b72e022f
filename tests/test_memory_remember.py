"""The door as a model meets it: one `remember` call over any provider."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onfile import (
    Memory,
    MemoryDigest,
    MemoryOrigin,
    WriteRefused,
    dump_digest,
)
from onfile.testing import InMemoryMemoryProvider
from tests.facts import NOON, fact
from tests.providers import Broken, ListOnly, Writable
from tests.strategies import any_text
from tests.turns import ANA, CALL, over_both, remember, standing


async def test_a_fact_is_kept_at_the_actors_own_scope_as_the_models_own_note_of_this_run():
    provider = Writable()

    outcome = await remember(Memory(provider), run_id="run_1", tool_call_id="c1")

    (request,) = provider.writes
    assert (request.scope, request.key, request.text, request.ctx) == ("actor:ana", "units", "kilometres", ANA)
    assert request.origin == MemoryOrigin(author="agent", thread_id="t1", run_id="run_1", actor_ref="ana")
    assert request.idempotency_key
    assert (outcome.ok, outcome.unchanged, outcome.replaced, outcome.error) == (True, False, None, None)
    assert outcome.record == provider.records[0]


async def test_a_call_without_ids_has_no_idempotency_key():
    provider = Writable()

    await remember(Memory(provider))

    assert provider.writes[0].idempotency_key is None


@over_both
async def test_key_and_fact_are_normalised_before_they_are_kept(provide):
    memory = Memory(provide())

    await remember(memory, {"key": " fiscal\nyear ", "fact": "it\r\nstarts\u2028in\tOctober "})

    assert await standing(memory) == [("actor:ana", "fiscal year", "it starts in October")]


@over_both
async def test_a_correction_under_another_spelling_of_the_key_says_what_it_replaced(provide):
    memory = Memory(provide(fact("Fiscal Year", "October")))

    outcome = await remember(memory, {"key": "fiscal_year", "fact": "January"})

    assert (outcome.replaced, outcome.record.text) == ("October", "January")
    assert await standing(memory) == [("actor:ana", "Fiscal Year", "January")]
    assert "October" in outcome.message
    assert "January" in outcome.message


async def test_a_correction_keeps_id_pin_and_first_spelling():
    before = fact("Fiscal Year", "October", pinned=True)
    memory = Memory(InMemoryMemoryProvider(records=[before]))

    outcome = await remember(memory, {"key": "fiscal_year", "fact": "January"})

    assert (outcome.record.id, outcome.record.key, outcome.record.pinned) == (before.id, "Fiscal Year", True)
    assert outcome.record.text == "January"


@over_both
async def test_the_same_key_and_text_again_is_unchanged_and_writes_nothing(provide):
    before = fact("Fiscal Year", "October")
    memory = Memory(provide(before))

    outcome = await remember(memory, {"key": "fiscal-year", "fact": " October\n"})

    assert (outcome.ok, outcome.unchanged, outcome.replaced, outcome.record) == (True, True, None, before)
    assert "nothing changed" in outcome.message
    assert (await memory.read_back(ANA))[0].origin == before.origin


@over_both
async def test_the_same_text_as_a_persons_is_unchanged_too_and_stays_theirs(provide):
    before = fact(author="human")
    memory = Memory(provide(before))

    outcome = await remember(memory)

    assert (outcome.unchanged, outcome.record) == (True, before)


@over_both
async def test_a_fact_a_person_stated_is_never_replaced_and_the_model_is_told_which_note_stands(provide):
    memory = Memory(provide(fact("Units", "miles", author="human")))

    outcome = await remember(memory)

    assert (outcome.ok, outcome.record, outcome.unchanged) == (False, None, False)
    assert outcome.error in outcome.message
    assert "Units" in outcome.error
    assert "actor:ana" in outcome.error
    assert await standing(memory) == [("actor:ana", "Units", "miles")]


async def test_a_wider_note_of_a_person_does_not_stop_the_models_own():
    memory = Memory(Writable(fact(text="miles", scope="global", author="human")))

    assert (await remember(memory)).ok
    assert len((await memory.read_back(ANA))[0].overrides) == 1


async def test_of_two_rows_at_one_key_the_one_that_stands_is_judged():
    # Naive and aware times among a foreign provider's rows, which do not compare by themselves.
    old = dataclasses.replace(fact(text="old", author="human"), updated_at=(NOON - timedelta(1)).replace(tzinfo=None))
    provider = Writable(old, fact(text="new"))

    outcome = await remember(Memory(provider), {"key": "UNITS", "fact": "new"})

    assert (outcome.unchanged, outcome.record.text) == (True, "new")


async def test_a_read_only_provider_refuses_before_anything_else():
    provider = ListOnly()

    outcome = await Memory(provider).remember({"scope": "global"}, digest=MemoryDigest(scopes=("actor:ana",)), ctx=ANA)

    assert not outcome.ok
    assert "read-only" in outcome.error
    assert provider.asked == []


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (None, "object"),
        ("units: km", "object"),
        ({"key": "units"}, "fact"),
        ({"key": 7, "fact": "km"}, "key"),
        ({**CALL, "scope": "global"}, "scope"),
        ({**CALL, "pinned": True}, "pinned"),
        ({"key": " - ", "fact": "km"}, "key is blank"),
        ({"key": "units", "fact": "\n"}, "fact is blank"),
        ({"key": "units", "fact": "k\x00m"}, "NUL"),
        ({"key": "un\ud800its", "fact": "km"}, "surrogate"),
        ({"key": "k" * 65, "fact": "km"}, "64"),
        ({"key": "units", "fact": "x" * 241}, "240"),
    ],
    ids=repr,
)
async def test_bad_input_is_refused_in_words_and_the_provider_is_not_asked(call, words: str):
    provider = Writable()

    outcome = await Memory(provider).remember(call, digest=MemoryDigest(scopes=("actor:ana",)), ctx=ANA)

    assert (outcome.ok, outcome.record) == (False, None)
    assert words in outcome.error
    assert outcome.error in outcome.message
    assert provider.asked == []


@pytest.mark.parametrize("sent", [None, {}, {"key": "-", "fact": "x"}, {"key": "k", "fact": "x" * 241}], ids=repr)
async def test_whatever_a_model_is_refused_names_its_own_scope_once(sent: object):
    outcome = await remember(Memory(Writable()), sent)

    assert outcome.error.count("[actor:ana]") == 1
    assert outcome.error in outcome.message


async def test_input_is_judged_before_authority():
    shared = MemoryDigest(scopes=("tenant:acme", "global"))
    memory = Memory(Writable())

    assert "blank" in (await memory.remember({"key": "-", "fact": "x"}, digest=shared, ctx=ANA)).error
    assert "240" in (await memory.remember({"key": "k", "fact": "x" * 241}, digest=shared, ctx=ANA)).error


async def test_the_limits_are_the_hosts():
    memory = Memory(Writable(), max_key_chars=5, max_fact_chars=10)

    assert (await remember(memory)).ok
    assert not (await remember(memory, {"key": "units!", "fact": "km"})).ok
    assert not (await remember(memory, {"key": "units", "fact": "kilometres!"})).ok


async def test_a_full_prompt_refuses_no_write():
    memory = Memory(InMemoryMemoryProvider(records=[fact(f"key {n}") for n in range(30)]), max_memories=0)

    assert (await remember(memory)).ok


async def test_a_write_is_judged_by_the_scopes_that_the_run_recorded_and_never_resolved_anew():
    provider = Writable()
    memory = Memory(provider, scopes=lambda _: pytest.fail("resolved anew"))

    refused = await memory.remember(CALL, digest=MemoryDigest(scopes=("tenant:acme", "global")), ctx=ANA)
    kept = await memory.remember(CALL, digest=MemoryDigest(scopes=("actor:ana",)), ctx=ANA)

    assert (refused.ok, kept.ok) == (False, True)
    assert "[actor:ana]" in refused.error
    assert len(provider.writes) == 1


@pytest.mark.parametrize("call", [CALL, {"key": "other", "fact": "x"}])
async def test_what_the_provider_raises_reaches_the_caller(call):
    with pytest.raises(ConnectionError, match="gone"):
        await Memory(Broken(ConnectionError("gone"))).remember(
            call, digest=MemoryDigest(scopes=("actor:ana",)), ctx=ANA
        )


async def test_a_stores_no_is_a_refusal_in_its_words():
    class Full(Writable):
        async def write(self, request):
            raise WriteRefused("the cupboard is full")  # noqa: EM101  # the words are the test

    outcome = await remember(Memory(Full()))

    assert (outcome.ok, outcome.error) == (False, "the cupboard is full")
    assert outcome.message == "Not recorded. the cupboard is full. Nothing was kept at [actor:ana]."


async def test_the_same_call_again_does_nothing_and_answers_what_stands_now():
    memory = Memory(InMemoryMemoryProvider())
    first = await remember(memory, run_id="r", tool_call_id="c")
    await remember(memory, {"key": "units", "fact": "miles"}, run_id="r", tool_call_id="d")

    again = await remember(memory, run_id="r", tool_call_id="c")

    assert (again.ok, again.unchanged, again.record.id, again.record.text) == (True, True, first.record.id, "miles")


async def test_the_same_call_again_does_not_bring_back_what_was_forgotten():
    memory = Memory(InMemoryMemoryProvider())
    first = await remember(memory, run_id="r", tool_call_id="c")
    await memory.forget(first.record.id, ANA)

    again = await remember(memory, run_id="r", tool_call_id="c")

    assert not again.ok
    assert "forgotten" in again.error
    assert "[actor:ana]" in again.error
    assert await standing(memory) == []


async def test_seven_facts_in_one_turn_are_seven_facts():
    memory = Memory(InMemoryMemoryProvider())
    digest = await memory.offer(ANA)
    calls = [{"key": f"key {n}", "fact": "x"} for n in range(7)]

    await asyncio.gather(
        *(memory.remember(call, digest=digest, ctx=ANA, run_id="r", tool_call_id=call["key"]) for call in calls)
    )

    assert len(await standing(memory)) == 7


async def test_remembering_changes_no_digest():
    memory = Memory(InMemoryMemoryProvider())
    digest = await memory.offer(ANA)
    before = dump_digest(digest)

    await memory.remember(CALL, digest=digest, ctx=ANA)

    assert dump_digest(digest) == before


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["key", "fact", "x"]), inner | any_text, max_size=3)
    ),
)


@given(json_values)
async def test_nothing_that_a_model_sends_is_an_exception_and_nothing_is_kept_wider_than_the_actor(sent):
    memory = Memory(InMemoryMemoryProvider())

    outcome = await remember(memory, sent, run_id="r", tool_call_id="c")

    assert len(outcome.message.splitlines()) == 1
    assert {scope for scope, _, _ in await standing(memory)} <= {"actor:ana"}
    assert outcome.ok == bool(await standing(memory))
