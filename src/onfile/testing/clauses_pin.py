"""Clauses about `pin`: an operator's act on one record, which says nothing about its text."""

from __future__ import annotations

from dataclasses import replace

from ..provider import PinningMemoryProvider
from ..scopes import GLOBAL_SCOPE
from .acts import ANNS, NO_STORE_KEEPS, Pinned, agent_notes, forgotten, listed, only, person_states
from .clause import Clause, clause, expect

CLAUSES: list[Clause] = []


@clause(CLAUSES, "pin", needs=())
async def _to_pin_an_unknown_id_of_any_text_answers_false(provider: PinningMemoryProvider) -> None:
    for id in ("mem_00000000000000000000000000", "", "%", "' OR 1=1", "x" * 5_000, *NO_STORE_KEEPS):  # noqa: A001  # the record's own field name
        for pinned in (True, False):
            answer = await provider.pin(id=id, pinned=pinned)
            expect(answer is False, f"pin of the unknown id {id[:20]!a} did not answer False")


@clause(CLAUSES, "pin")
async def _a_pin_is_set_and_cleared_at_any_scope(provider: Pinned) -> None:
    for scope in (ANNS, GLOBAL_SCOPE):
        record = await person_states(provider, "units", "kilometres", scope=scope)
        for pinned in (True, True, False, False):
            expect(await provider.pin(id=record.id, pinned=pinned) is True, "pin of a known id did not answer True")
            now = await only(provider, scope, "one record was written and pinned")
            expect(now.pinned is pinned, f"pin(pinned={pinned}) left the record pinned={now.pinned}")


@clause(CLAUSES, "pin")
async def _a_pin_moves_nothing_but_the_pin(provider: Pinned) -> None:
    record = await agent_notes(provider, "units", "kilometres")
    await provider.pin(id=record.id, pinned=True)
    pinned = await only(provider, ANNS, "one record was written and pinned")
    expect(pinned.updated_at == record.updated_at, "pin moved updated_at, which tells when the text was written")
    expect(pinned == replace(record, pinned=True), "pin changed more than the pin")


@clause(CLAUSES, "pin")
async def _one_pin_pins_one_record(provider: Pinned) -> None:
    mine = await agent_notes(provider, "units", "kilometres")
    await agent_notes(provider, "currency", "euro")
    await person_states(provider, "units", "miles", scope=GLOBAL_SCOPE)
    await provider.pin(id=mine.id, pinned=True)
    pinned = [record.id for record in await listed(provider, ANNS, GLOBAL_SCOPE) if record.pinned]
    expect(pinned == [mine.id], f"one record was pinned and {len(pinned)} are")


@clause(CLAUSES, "pin")
async def _a_rewritten_record_stays_pinned(provider: Pinned) -> None:
    first = await agent_notes(provider, "units", "kilometres")
    await provider.pin(id=first.id, pinned=True)
    second = await agent_notes(provider, "UNITS", "miles")
    expect(second.id == first.id, "a rewritten record got another id")
    expect(second.pinned is True, "write answered an unpinned record for one that is pinned")
    third = await person_states(provider, "units", "metres", scope=ANNS)
    expect(third.pinned is True, "a person's correction took the pin away")
    expect(
        (await only(provider, ANNS, "one key was written three times")).pinned is True, "a rewrite took the pin away"
    )


@clause(CLAUSES, "pin")
async def _a_pinned_record_may_be_forgotten_and_its_pin_with_it(provider: Pinned) -> None:
    first = await agent_notes(provider, "units", "kilometres")
    await provider.pin(id=first.id, pinned=True)
    expect(await forgotten(provider, first.id) is True, "a pinned record was not forgotten")
    expect(await provider.pin(id=first.id, pinned=True) is False, "a forgotten record could be pinned")
    second = await agent_notes(provider, "units", "kilometres")
    expect(second.pinned is False, "the pin of a forgotten record came back with a new one")
