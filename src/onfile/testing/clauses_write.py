"""Clauses about `write`: one record per question and scope, and who may replace what."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ..errors import WriteRefused
from ..records import Actor, MemoryOrigin, MemoryRecord
from ..scopes import GLOBAL_SCOPE
from .acts import (
    ACME,
    ANNS,
    ANNS_SCOPES,
    BOB,
    BOBS,
    NO_STORE_KEEPS,
    Written,
    agent_notes,
    all_at_once,
    is_aware_utc,
    listed,
    only,
    person_states,
    refusal,
    texts,
)
from .clause import Clause, ClauseFailed, clause, expect

CLAUSES: list[Clause] = []

_APART = (
    "C",
    "C++",
    "C#",
    "1.0",
    "10",
    "請求先",
    "会計年度",
    "請求 先",
    "бюджет",
    "бюджет 2",
    "\U0001f600",
    "\U0001f601",
)
_LONGEST = 255


@clause(CLAUSES, "write", needs=())
async def _write_answers_the_record_that_now_stands(provider: Written) -> None:
    origin = MemoryOrigin(author="agent", thread_id="t", run_id="r", actor_ref="ann")
    record = await agent_notes(provider, "Fiscal Year", "starts in October", origin=origin)
    expect(record == await only(provider, ANNS, "one fact was written"), "write and list answer two different records")
    expect(
        (record.key, record.text, record.scope, record.origin) == ("Fiscal Year", "starts in October", ANNS, origin),
        "write answered another key, text, scope or origin than it was given",
    )
    expect(bool(record.id), "write answered a record without an id")


@clause(CLAUSES, "write", needs=())
async def _every_spelling_of_a_key_is_one_record(provider: Written) -> None:
    spellings = (
        "Fiscal Year",
        "fiscal_year",
        "FISCAL-YEAR",
        "  fiscal \u2014 year ",
        "fiscal\u00a0year",
        "fiscal\u2010year",
    )
    await _write_all_spellings(provider, spellings)


@clause(CLAUSES, "write", needs=())
async def _composed_and_decomposed_keys_are_one_record(provider: Written) -> None:
    await _write_all_spellings(provider, ("caf\u00e9", "cafe\u0301", "CAF\u00c9", "CAFE\u0301"))
    await _write_all_spellings(provider, ("\u30ac\u30bd\u30ea\u30f3", "\u30ab\u3099\u30bd\u30ea\u30f3"))
    await _write_all_spellings(provider, ("stra\u00dfe", "STRASSE", "Stra\u00dfe"))


@clause(CLAUSES, "write", needs=())
async def _keys_that_ask_different_questions_stay_apart(provider: Written) -> None:
    written = [await agent_notes(provider, key, f"the answer to {key}") for key in _APART]
    records = {record.key: record for record in await listed(provider, ANNS)}
    for before in written:
        expect(before.key in records, f"the key {before.key!a} was swallowed by another")
        expect(records[before.key] == before, f"writing other keys changed the record of {before.key!a}")
    expect(len({record.id for record in written}) == len(_APART), "two different keys share one record id")


@clause(CLAUSES, "write", needs=())
async def _one_key_at_two_scopes_is_two_records(provider: Written) -> None:
    mine = await agent_notes(provider, "units", "kilometres")
    ours = await person_states(provider, "units", "kilometres", scope=ACME)
    expect(mine.id != ours.id, "one key at two scopes shares one record")
    await person_states(provider, "units", "miles", scope=ACME)
    expect(await only(provider, ANNS, "one fact was written here") == mine, "writing at one scope changed another")


@clause(CLAUSES, "write", needs=())
async def _a_new_text_replaces_the_old_and_keeps_the_id_and_the_first_spelling(provider: Written) -> None:
    first = await agent_notes(provider, "Fiscal Year", "starts in October")
    later = MemoryOrigin(author="agent", thread_id="thread-2", run_id="run-2", actor_ref="ann")
    second = await agent_notes(provider, "fiscal_year", "starts in January", origin=later)
    expect(second.id == first.id, "a rewritten record got another id")
    expect(second.key == "Fiscal Year", "a rewrite changed the key's first spelling")
    expect(second.text == "starts in January", "a rewrite did not answer the new text")
    expect(second.origin == later, "a rewrite kept the origin of the text that it replaced")
    expect(second.updated_at >= first.updated_at, "a rewrite moved updated_at back")
    expect(await only(provider, ANNS, "one key was written twice") == second, "list answers another record than write")


@clause(CLAUSES, "write", needs=())
async def _the_same_text_again_changes_nothing(provider: Written) -> None:
    first = await agent_notes(provider, "Fiscal Year", "starts in October")
    elsewhere = MemoryOrigin(author="agent", thread_id="thread-2", run_id="run-2", actor_ref="ann")
    again = await agent_notes(provider, "fiscal_year", "starts in October", origin=elsewhere)
    expect(again == first, "the same key and text again moved updated_at or changed the record")
    expect(
        await only(provider, ANNS, "one fact was written twice") == first, "the same text again changed what is listed"
    )


@clause(CLAUSES, "write", needs=())
async def _an_agent_that_says_what_a_person_said_changes_nothing(provider: Written) -> None:
    stated = await person_states(provider, "units", "kilometres", scope=ANNS)
    answer = await agent_notes(provider, "Units", "kilometres")
    expect(answer == stated, "an agent's same text was not answered with the person's record as it stands")
    expect(
        await only(provider, ANNS, "one fact is on file") == stated, "an agent's same text took the person's authorship"
    )


@clause(CLAUSES, "write", needs=())
async def _a_person_who_says_what_an_agent_noted_takes_it_over(provider: Written) -> None:
    noted = await agent_notes(provider, "Units", "kilometres")
    stated = await person_states(provider, "units", "kilometres", scope=ANNS)
    expect(stated.origin.author == "human", "a person confirmed an agent's note and it stayed the agent's")
    expect((stated.id, stated.key) == (noted.id, noted.key), "taking a note over changed its id or its key")
    expect(await only(provider, ANNS, "one fact is on file") == stated, "list answers another record than write")
    again = await person_states(provider, "units", "kilometres", scope=ANNS)
    expect(again == stated, "a person's same text again changed the record")


@clause(CLAUSES, "write", needs=())
async def _an_agent_never_replaces_what_a_person_stated(provider: Written) -> None:
    stated = await person_states(provider, "Preferred Units", "kilometres", scope=ANNS)
    reason = await refusal(agent_notes(provider, "preferred_units", "miles"), "an agent's text over a person's")
    expect("Preferred Units" in reason, "the reason does not name the note that stands by its key")
    expect(ANNS in reason, "the reason does not name the scope of the note that stands")
    expect(await only(provider, ANNS, "one fact is on file") == stated, "a refused write changed the person's record")


@clause(CLAUSES, "write", needs=())
async def _a_person_replaces_what_anyone_wrote(provider: Written) -> None:
    noted = await agent_notes(provider, "units", "kilometres")
    first = await person_states(provider, "units", "miles", scope=ANNS)
    second = await person_states(provider, "units", "metres", scope=ANNS)
    expect(noted.id == first.id == second.id, "a person's correction got another id")
    record = await only(provider, ANNS, "one key was written three times")
    expect((record.text, record.origin.author) == ("metres", "human"), "a person's correction does not stand")


@clause(CLAUSES, "write", needs=())
async def _an_agent_writes_at_its_own_actors_scope_only(provider: Written) -> None:
    for scope in (ACME, GLOBAL_SCOPE, BOBS, "actor:ann ", "actor:Ann", "actor:", "actor:annabel"):
        reason = await refusal(agent_notes(provider, "units", "miles", scope=scope), f"an agent's write at {scope!a}")
        expect(ANNS in reason, "the reason does not name the scope that the agent may write at")
        expect(not await listed(provider, scope), f"an agent's refused write at {scope!a} is on file")


@clause(CLAUSES, "write", needs=())
async def _even_the_same_text_is_refused_an_agent_at_a_wider_scope(provider: Written) -> None:
    stated = await person_states(provider, "units", "miles", scope=GLOBAL_SCOPE)
    await refusal(agent_notes(provider, "units", "miles", scope=GLOBAL_SCOPE), "an agent's write at a wider scope")
    expect(await only(provider, GLOBAL_SCOPE, "one fact is on file") == stated, "a refused write changed the record")


@clause(CLAUSES, "write", needs=())
async def _a_person_is_taken_at_their_word_at_any_scope(provider: Written) -> None:
    for scope in (ANNS, BOBS, ACME, GLOBAL_SCOPE, "depot:north"):
        record = await person_states(provider, "units", "kilometres", scope=scope)
        expect(record.scope == scope, "a person's fact was written at another scope than they named")
        await only(provider, scope, "whether a person may write somewhere is judged before the store is asked")


@clause(CLAUSES, "write", needs=())
async def _what_no_store_can_keep_is_refused_in_words(provider: Written) -> None:
    for text in NO_STORE_KEEPS:
        await refusal(agent_notes(provider, "units", text), f"the text {text!a}")
        await refusal(agent_notes(provider, text, "kilometres"), f"the key {text!a}")
        await refusal(person_states(provider, "units", "kilometres", scope=f"depot:{text}"), f"a scope with {text!a}")
        await refusal(agent_notes(provider, "units", "kilometres", actor=Actor(id=text)), f"the actor id {text!a}")
        origin = MemoryOrigin(author="agent", thread_id=text, run_id="run-1", actor_ref="ann")
        await refusal(agent_notes(provider, "units", "kilometres", origin=origin), f"the thread id {text!a}")
    expect(not await listed(provider, ANNS), "something that was refused is on file")


@clause(CLAUSES, "write", needs=())
async def _a_fact_without_a_scope_is_shown_to_nobody(provider: Written) -> None:
    for scope in ("", "  "):
        with suppress(WriteRefused):
            await person_states(provider, "units", "kilometres", scope=scope)
    shown = await listed(provider, *ANNS_SCOPES, "")
    expect(not shown, "a fact that was written at a blank scope is shown at the scopes of an actor")


@clause(CLAUSES, "write", needs=())
async def _a_key_or_a_scope_over_255_characters_is_refused_and_one_of_255_is_kept(provider: Written) -> None:
    for letter in ("x", "é", "界", "\U0001f69a"):
        key, scope = letter * _LONGEST, f"depot:{letter * (_LONGEST - 6)}"
        await refusal(
            person_states(provider, key + letter, "kilometres", scope="depot:north"), "a key of 256 characters"
        )
        await refusal(person_states(provider, "units", "kilometres", scope=scope + letter), "a scope of 256 characters")
        await person_states(provider, key, "kilometres", scope=scope)
        record = await only(provider, scope, f"a key and a scope of 255 times {letter!a} are kept")
        expect((record.key, record.scope) == (key, scope), f"255 times {letter!a} came back changed")


@clause(CLAUSES, "write", needs=())
async def _a_refused_write_leaves_the_store_as_usable_as_before(provider: Written) -> None:
    await person_states(provider, "units", "kilometres", scope=ANNS)
    for _ in range(20):
        await refusal(agent_notes(provider, "units", "miles"), "an agent's text over a person's")
    await agent_notes(provider, "currency", "euro")
    expect(texts(await listed(provider, ANNS)) == ["euro", "kilometres"], "after twenty refusals a write is not kept")


@clause(CLAUSES, "write", needs=())
async def _seven_writes_at_once_are_all_kept(provider: Written) -> None:
    answers = await all_at_once(
        *(
            agent_notes(provider, f"question {number}", f"answer {number}", idempotency_key=f"{number}")
            for number in range(7)
        )
    )
    _expect_no_error(answers)
    left = texts(await listed(provider, ANNS))
    expect(
        left == [f"answer {number}" for number in range(7)],
        f"seven facts were written at once and {len(left)} are on file",
    )


@clause(CLAUSES, "write", needs=())
async def _one_key_written_seven_times_at_once_is_one_record(provider: Written) -> None:
    answers = await all_at_once(*(agent_notes(provider, "units", f"answer {number}") for number in range(7)))
    _expect_no_error(answers)
    record = await only(provider, ANNS, "one key was written seven times at once")
    ids = {answer.id for answer in answers if isinstance(answer, MemoryRecord)}
    expect(ids == {record.id}, "one key written seven times at once was answered with more than one id")


@clause(CLAUSES, "write", needs=())
async def _a_persons_statement_stands_whatever_agents_write_at_the_same_time(provider: Written) -> None:
    answers = await all_at_once(
        *(agent_notes(provider, "units", f"guess {number}") for number in range(3)),
        person_states(provider, "units", "kilometres", scope=ANNS),
        *(agent_notes(provider, "units", f"guess {number}") for number in range(3, 6)),
    )
    _expect_no_error(answers)
    record = await only(provider, ANNS, "one key was written at once by agents and a person")
    expect(
        (record.text, record.origin.author) == ("kilometres", "human"), "an agent's guess replaced what a person stated"
    )


@clause(CLAUSES, "write", needs=())
async def _two_actors_at_once_do_not_mix(provider: Written) -> None:
    answers = await all_at_once(
        *(agent_notes(provider, f"question {number}", "of ann") for number in range(4)),
        *(agent_notes(provider, f"question {number}", "of bob", actor=BOB) for number in range(4)),
    )
    _expect_no_error(answers)
    expect(
        texts(await listed(provider, ANNS)) == ["of ann"] * 4, "ann's facts were mixed with bob's, who wrote at once"
    )
    expect(
        texts(await listed(provider, BOBS)) == ["of bob"] * 4, "bob's facts were mixed with ann's, who wrote at once"
    )


@clause(CLAUSES, "write", needs=())
async def _write_answers_an_aware_utc_time_also_when_nothing_changes(provider: Written) -> None:
    for _ in range(2):
        record = await agent_notes(provider, "units", "kilometres")
        expect(is_aware_utc(record), "write answered an updated_at that is not timezone-aware UTC")


async def _write_all_spellings(provider: Written, spellings: tuple[str, ...]) -> None:
    before = {record.id for record in await listed(provider, ANNS)}
    first = await agent_notes(provider, spellings[0], f"answer 0 of {spellings[0]}")
    for number, spelling in enumerate(spellings[1:], 1):
        record = await agent_notes(provider, spelling, f"answer {number} of {spellings[0]}")
        expect(record.id == first.id, f"{spelling!a} and {spellings[0]!a} are one question and were kept as two")
        expect(record.key == spellings[0], "the first spelling of a key was replaced by a later one")
    added = [record for record in await listed(provider, ANNS) if record.id not in before]
    expect(len(added) == 1, f"{len(spellings)} spellings of {spellings[0]!a} made {len(added)} records")


def _expect_no_error(answers: Sequence[MemoryRecord | BaseException]) -> None:
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, WriteRefused):
            msg = f"of several writes at once one raised {type(answer).__name__}"
            raise ClauseFailed(msg) from answer
