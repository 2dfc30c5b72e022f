"""Clauses about `forget`: the actor's own record is gone, and nobody else's ever is."""

from __future__ import annotations

import asyncio

from ..provider import MemoryProvider
from ..records import Actor
from ..scopes import GLOBAL_SCOPE, actor_scope
from .acts import (
    ACME,
    ANN,
    ANNS,
    BOB,
    BOBS,
    NO_STORE_KEEPS,
    Written,
    agent_notes,
    forgotten,
    listed,
    only,
    person_states,
)
from .clause import Clause, clause, expect

CLAUSES: list[Clause] = []

_ANY_ID = ("", " ", "mem_%", "%", "*", "' OR '1'='1", "дмитрий", "\U0001f600", "a/b?c#d", "x" * 5_000, *NO_STORE_KEEPS)
_ANY_ACTOR = (
    *("ann", "ann ", "Ann", "an_", "an%", "a.b@example.org", "a:b/c", "дмитрий", ".", "'", "\U0001f600", "\U0001f601"),
    *("caf\u00e9", "cafe\u0301"),
)


@clause(CLAUSES, "forget", needs=())
async def _an_unknown_id_of_any_text_answers_false_and_raises_nothing(provider: MemoryProvider) -> None:
    for id in ("mem_00000000000000000000000000", *_ANY_ID):  # noqa: A001  # the record's own field name
        expect(await forgotten(provider, id) is False, f"forget of the unknown id {id[:20]!a} did not answer False")


@clause(CLAUSES, "forget", needs=())
async def _an_actor_that_no_store_can_keep_forgets_nothing_and_raises_nothing(provider: MemoryProvider) -> None:
    for name in (*NO_STORE_KEEPS, "x" * 300):
        answer = await forgotten(provider, "mem_00000000000000000000000000", actor=Actor(id=name))
        expect(answer is False, "forget for an actor whose id no store can keep did not answer False")


@clause(CLAUSES, "forget")
async def _a_forgotten_record_is_gone_and_the_others_stay(provider: Written) -> None:
    going = await agent_notes(provider, "units", "kilometres")
    staying = await agent_notes(provider, "currency", "euro")
    expect(await forgotten(provider, going.id) is True, "forget of the actor's own record did not answer True")
    left = await only(provider, ANNS, "of two records one was forgotten, so one is left")
    expect(left == staying, "forgetting one record changed the other")
    expect(await forgotten(provider, going.id) is False, "forget answered True for a record that was gone already")


@clause(CLAUSES, "forget")
async def _what_a_person_stated_about_themselves_is_theirs_to_forget(provider: Written) -> None:
    record = await person_states(provider, "units", "kilometres", scope=ANNS)
    expect(
        await forgotten(provider, record.id) is True, "a person's own statement at their own scope was not forgotten"
    )
    expect(not await listed(provider, ANNS), "forget answered True and the record is still listed")


@clause(CLAUSES, "forget")
async def _somebody_elses_id_is_not_enough(provider: Written) -> None:
    record = await agent_notes(provider, "units", "kilometres", actor=ANN)
    expect(await forgotten(provider, record.id, actor=BOB) is False, "forget did not answer False for a foreign id")
    expect(await only(provider, ANNS, "bob sent the id of ann's record") == record, "a foreign record was changed")


@clause(CLAUSES, "forget")
async def _a_record_held_wider_stays(provider: Written) -> None:
    for scope in (ACME, GLOBAL_SCOPE):
        record = await person_states(provider, "units", "kilometres", scope=scope)
        expect(await forgotten(provider, record.id) is False, "forget did not answer False for a wider record")
        await only(provider, scope, "forget deletes at the actor's own scope and nowhere else")


@clause(CLAUSES, "forget")
async def _an_id_compares_byte_for_byte(provider: Written) -> None:
    record = await agent_notes(provider, "units", "kilometres")
    for near in (record.id.swapcase(), f"{record.id} ", f" {record.id}", record.id[:-1], f"{record.id[:-1]}_", "%"):
        if near != record.id:
            expect(await forgotten(provider, near) is False, f"forget took {near!a} for the id {record.id!a}")
    await only(provider, ANNS, "no other id than the record's own deletes it")


@clause(CLAUSES, "forget")
async def _erasing_one_person_leaves_everybody_else_whole(provider: Written) -> None:
    actors = [Actor(id=name) for name in _ANY_ACTOR]
    for actor in actors:
        for key in ("units", "currency", "language"):
            await agent_notes(provider, key, f"{key} of {actor.id}", actor=actor)
    erased, others = actors[0], actors[1:]
    for record in await listed(provider, actor_scope(erased)):
        await forgotten(provider, record.id, actor=erased)
    expect(
        not await listed(provider, actor_scope(erased)), "every record of one person was forgotten and some are left"
    )
    for actor in others:
        left = await listed(provider, actor_scope(actor), actor=actor)
        expect(len(left) == 3, f"erasing the actor 'ann' left {len(left)} of the 3 records of the actor {actor.id!a}")


@clause(CLAUSES, "forget")
async def _any_text_is_an_actor_id(provider: Written) -> None:
    for name in _ANY_ACTOR:
        actor = Actor(id=name)
        record = await agent_notes(provider, "units", f"for {name}", actor=actor)
        expect(record.scope == f"actor:{name}", f"the record of the actor {name!a} is held at {record.scope!a}")
        expect(await forgotten(provider, record.id, actor=actor) is True, f"the actor {name!a} could not forget")


@clause(CLAUSES, "forget")
async def _of_two_who_forget_one_record_at_once_one_is_told_true(provider: Written) -> None:
    record = await agent_notes(provider, "units", "kilometres")
    answers = await asyncio.gather(forgotten(provider, record.id), forgotten(provider, record.id))
    expect(sorted(answers) == [False, True], f"one record was forgotten twice at once, and the answers were {answers}")


@clause(CLAUSES, "forget")
async def _a_forgotten_key_may_be_answered_again_by_a_new_record(provider: Written) -> None:
    first = await agent_notes(provider, "units", "kilometres")
    await forgotten(provider, first.id)
    second = await agent_notes(provider, "Units", "miles")
    expect(second.id != first.id, "a record that was forgotten came back under its old id")
    record = await only(provider, ANNS, "a key was forgotten and answered anew")
    expect((record.key, record.text) == ("Units", "miles"), "the new answer was mixed with the forgotten one")


@clause(CLAUSES, "forget")
async def _one_persons_record_may_be_forgotten_while_another_keeps_the_same_answer(provider: Written) -> None:
    mine = await agent_notes(provider, "units", "kilometres", actor=ANN)
    theirs = await agent_notes(provider, "units", "kilometres", actor=BOB)
    expect(mine.id != theirs.id, "two people's records share one id")
    await forgotten(provider, mine.id)
    await only(provider, BOBS, "ann forgot her record, and bob's with the same words stays")
