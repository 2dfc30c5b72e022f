"""Clauses about a write that is made again: a replayed run changes nothing and brings nothing back."""

from __future__ import annotations

from ..provider import WriteReport
from ..records import MemoryRecord
from .acts import (
    ANN,
    ANNS,
    BOB,
    BOBS,
    Written,
    agent_notes,
    all_at_once,
    forgotten,
    listed,
    only,
    person_states,
    refusal,
    texts,
)
from .clause import Clause, clause, expect

CLAUSES: list[Clause] = []

_NEAR_KEYS = (
    *("run:call", "run:call ", " run:call", "RUN:CALL", "run:cal", "run%call", "run_call", '["run","call"]'),
    *("caf\u00e9", "cafe\u0301", "\U0001f600", "\U0001f601", "it's", 'a "b"', "\\", "請求先", "x" * 200, "x" * 201),
)


@clause(CLAUSES, "write", needs=())
async def _the_same_write_again_changes_nothing(provider: Written) -> None:
    first = await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    again = await agent_notes(provider, "Units", "kilometres", idempotency_key="run-1:call-1")
    expect(again == first, "a retried write was not answered with the record that it made")
    expect(await only(provider, ANNS, "one write was made twice") == first, "a retried write changed the record")


@clause(CLAUSES, "write", needs=())
async def _a_retry_does_not_undo_what_was_written_since(provider: Written) -> None:
    await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    since = await agent_notes(provider, "units", "miles", idempotency_key="run-2:call-1")
    again = await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    expect(again == since, "a retry was not answered with the record that now stands at its key")
    expect(await only(provider, ANNS, "one key is on file") == since, "a retry brought an overwritten text back")


@clause(CLAUSES, "write", needs=())
async def _a_retry_after_a_person_corrected_it_answers_the_correction(provider: Written) -> None:
    await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    stated = await person_states(provider, "units", "miles", scope=ANNS)
    again = await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    expect(again == stated, "a retry is looked up before the guards, and answers what a person stated since")


@clause(CLAUSES, "write", needs=())
async def _a_retry_does_not_bring_back_what_was_forgotten(provider: Written) -> None:
    record = await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    await forgotten(provider, record.id)
    await refusal(
        agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1"),
        "a retry of what was forgotten since",
    )
    expect(not await listed(provider, ANNS), "a retry brought a forgotten fact back")


@clause(CLAUSES, "write", needs=())
async def _a_retry_answers_what_was_written_anew_after_the_forgetting(provider: Written) -> None:
    record = await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    await forgotten(provider, record.id)
    anew = await agent_notes(provider, "units", "miles", idempotency_key="run-2:call-1")
    again = await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    expect(again == anew, "a retry was not answered with the record that now stands at its key")


@clause(CLAUSES, "write", needs=())
async def _a_write_that_changed_nothing_leaves_a_receipt_too(provider: Written) -> None:
    await agent_notes(provider, "units", "kilometres")
    await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    since = await agent_notes(provider, "units", "miles")
    again = await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    expect(again == since, "a write that found its text there already was done a second time when it was retried")


@clause(CLAUSES, "write", needs=())
async def _a_refused_write_leaves_no_receipt(provider: Written) -> None:
    stated = await person_states(provider, "units", "kilometres", scope=ANNS)
    await refusal(
        agent_notes(provider, "units", "miles", idempotency_key="run-1:call-1"), "an agent's text over a person's"
    )
    await forgotten(provider, stated.id)
    record = await agent_notes(provider, "units", "miles", idempotency_key="run-1:call-1")
    expect(record.text == "miles", "a write that was refused once is taken for one that was made")


@clause(CLAUSES, "write", needs=())
async def _one_idempotency_key_for_another_key_is_another_write(provider: Written) -> None:
    await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    await agent_notes(provider, "currency", "euro", idempotency_key="run-1:call-1")
    expect(
        texts(await listed(provider, ANNS)) == ["euro", "kilometres"], "a write of another key was taken for a retry"
    )


@clause(CLAUSES, "write", needs=())
async def _one_idempotency_key_at_another_scope_is_another_write(provider: Written) -> None:
    await agent_notes(provider, "units", "kilometres", actor=ANN, idempotency_key="run-1:call-1")
    record = await agent_notes(provider, "units", "miles", actor=BOB, idempotency_key="run-1:call-1")
    expect((record.scope, record.text) == (BOBS, "miles"), "a write at another scope was taken for a retry")
    await only(provider, ANNS, "ann's fact stays when bob writes under the same idempotency key")


@clause(CLAUSES, "write", needs=())
async def _idempotency_keys_of_any_characters_stay_apart(provider: Written) -> None:
    for key in _NEAR_KEYS:
        record = await agent_notes(provider, "units", f"by {key}", idempotency_key=key)
        expect(record.text == f"by {key}", f"the idempotency key {key[:20]!a} was taken for an earlier one")
    last = await only(provider, ANNS, "one key was written many times")
    for key in _NEAR_KEYS:
        again = await agent_notes(provider, "units", f"by {key}", idempotency_key=key)
        expect(again == last, f"a retry under the idempotency key {key[:20]!a} was done a second time")


@clause(CLAUSES, "write", needs=())
async def _the_same_write_made_seven_times_at_once_is_made_once(provider: Written) -> None:
    answers = await all_at_once(
        *(agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1") for _ in range(7))
    )
    record = await only(provider, ANNS, "one write was made seven times at once")
    for answer in answers:
        expect(isinstance(answer, MemoryRecord), f"one write made seven times at once raised {type(answer).__name__}")
    expect(all(answer == record for answer in answers), "one write made seven times at once was answered differently")


@clause(CLAUSES, "write", needs=())
async def _without_an_idempotency_key_nothing_is_taken_for_a_retry(provider: Written) -> None:
    first = await agent_notes(provider, "units", "kilometres")
    await agent_notes(provider, "units", "miles")
    await agent_notes(provider, "units", "kilometres")
    record = await only(provider, ANNS, "one key was written three times")
    expect(record.text == "kilometres", "a write without an idempotency key was taken for a retry")
    await forgotten(provider, first.id)
    await agent_notes(provider, "units", "kilometres")
    await only(provider, ANNS, "a forgotten key was written again without an idempotency key")


@clause(CLAUSES, "report")
async def _a_report_tells_the_text_that_was_replaced(provider: Written) -> None:
    report = WriteReport()
    await agent_notes(provider, "units", "kilometres", report=report)
    expect((report.replaced, report.unchanged) == (None, False), "the report of a new fact says it replaced something")
    report = WriteReport()
    await agent_notes(provider, "Units", "miles", report=report)
    expect((report.replaced, report.unchanged) == ("kilometres", False), "the report does not tell the replaced text")
    report = WriteReport()
    await person_states(provider, "units", "metres", scope=ANNS, report=report)
    expect(report.replaced == "miles", "the report of a person's write does not tell the replaced text")


@clause(CLAUSES, "report")
async def _a_report_tells_when_nothing_was_written(provider: Written) -> None:
    await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1")
    report = WriteReport()
    await agent_notes(provider, "units", "kilometres", report=report)
    expect((report.replaced, report.unchanged) == (None, True), "the report of the same text again is not `unchanged`")
    report = WriteReport()
    await agent_notes(provider, "units", "kilometres", idempotency_key="run-1:call-1", report=report)
    expect((report.replaced, report.unchanged) == (None, True), "the report of a retry is not `unchanged`")


@clause(CLAUSES, "report")
async def _a_report_tells_that_a_person_who_takes_a_note_over_writes(provider: Written) -> None:
    await agent_notes(provider, "units", "kilometres")
    report = WriteReport()
    await person_states(provider, "units", "kilometres", scope=ANNS, report=report)
    expect(report.unchanged is False, "a person took a note over, which is written, and the report says unchanged")
    report = WriteReport()
    await person_states(provider, "units", "kilometres", scope=ANNS, report=report)
    expect(report.unchanged is True, "a person's same text again is not reported as unchanged")
